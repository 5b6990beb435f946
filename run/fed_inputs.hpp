// SPDX-License-Identifier: Apache-2.0
// What a network is fed with: its Input layers, of numbers and of integers. A sample lies as all inputs of its kind one
// after the other; layers read each input of a whole step by itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/network.hpp"

namespace rehearse::run {

/// One Input layer of a network. Its data set is called as the layer, or as the one that is fed the same.
struct FedInput {
    int layer = 0;
    Input op{};
    std::string data_set;                // what it is called where it is fed in
    std::vector<std::int32_t> places{};  // elements of a sample there that are taken; none: all, as they lie
    bool integers() const { return op.vocabulary > 0; }
    std::int64_t size() const { return elements(op.shape); }
};

/// In the order of the layers.
std::vector<FedInput> fed_inputs(const Network& network);
/// Those of one kind.
std::vector<FedInput> fed_inputs(const Network& network, bool integers);

/// From samples that lie one after the other, each with all its inputs, the input that begins at `first` of a sample
/// of `all`: as many values a sample as `to` has for each.
template <typename Number>
void gather_input(std::span<const Number> samples, std::int64_t all, std::int64_t first, std::span<Number> to) {
    const std::size_t count = samples.size() / static_cast<std::size_t>(all), size = to.size() / count;
    for (std::size_t i = 0; i < count; ++i) {
        const auto from = samples.subspan(i * static_cast<std::size_t>(all) + static_cast<std::size_t>(first), size);
        std::copy(from.begin(), from.end(), to.begin() + static_cast<std::ptrdiff_t>(i * size));
    }
}

}  // namespace rehearse::run
