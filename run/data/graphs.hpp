// SPDX-License-Identifier: Apache-2.0
// Graphs that can be learned from and need no file, for networks that read them by the names of models/zoo/graphs.cpp.
// Communities: nodes of a class like to link with each other, and use its words (a stochastic block model, Holland et
// al. 1983); some nodes of each class have a label. Molecules: atoms about as far apart as bonds are long, with an
// energy that is a sum over atoms and over pairs.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/network.hpp"
#include "run/fed_inputs.hpp"

namespace rehearse::run {

class Graphs {
public:
    /// InputError where the network reads no such graphs. Nodes without a label have `left_out`.
    Graphs(const Network& network, std::uint64_t seed);

    /// As Samples::fill. Sample `index` is the same whoever makes it.
    void fill(std::int64_t index, std::span<float> input, std::span<std::int32_t> ids,
              std::span<std::int32_t> labels) const;

private:
    struct Links {
        std::span<float> from, to;
    };
    std::span<float> named(std::string_view name, std::span<float> input) const;
    void fill_communities(std::uint64_t key, std::span<float> input, std::span<std::int32_t> labels) const;
    void fill_words(std::uint64_t key, std::span<const std::int32_t> classes, std::span<float> features) const;
    void fill_links(std::uint64_t key, std::span<const std::int32_t> classes, Links links,
                    std::span<float> weights) const;
    void fill_molecule(std::uint64_t key, std::span<float> input, std::span<std::int32_t> ids) const;

    std::vector<FedInput> numbers_;
    bool molecules_ = false;
    std::uint64_t seed_;
    std::int64_t classes_ = 0;
};

}  // namespace rehearse::run
