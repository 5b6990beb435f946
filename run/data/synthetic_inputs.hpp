// SPDX-License-Identifier: Apache-2.0
// Made-up samples of a network's inputs, and of what its loss asks for.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/network.hpp"
#include "run/data/data.hpp"
#include "run/data/labels.hpp"
#include "run/fed_inputs.hpp"

namespace rehearse::run {

/// The first layer, where it takes numbers, and the integers whose number the labels have (else the first) are of a
/// task that can be learned (SyntheticTask, SyntheticTokens). Other numbers are uniform from 0 to 1 (they may be masks,
/// or what is asked for), numbers of rows (of a graph's nodes) any of those; other integers tell nothing.
class SyntheticInputs {
public:
    SyntheticInputs(const Network& network, std::uint64_t seed);

    /// As Samples::fill.
    void fill(std::int64_t sample, std::span<float> input, std::span<std::int32_t> ids, std::span<std::int32_t> labels);

private:
    void fill_labels(std::int64_t sample, std::span<std::int32_t> ids, std::span<std::int32_t> labels);
    void fill_others(std::int64_t sample, std::span<float> input, std::span<std::int32_t> ids);
    bool follows() const { return labels_ && rows_ > 1 && tokens_ && tokens_size_ == rows_; }

    std::uint64_t seed_;
    std::optional<Labels> labels_;
    std::int64_t rows_ = 1;  // labels of a sample that are no pixels
    std::vector<FedInput> numbers_, integers_;
    std::vector<std::int64_t> rows_named_;  // of each of the numbers: how many rows there are that it names; else 0
    std::optional<SyntheticTask> pictures_;
    std::optional<SyntheticTokens> tokens_;
    std::int64_t tokens_first_ = 0, tokens_size_ = 0;  // where they lie among the ids
    std::vector<std::int32_t> ids_, next_;             // of one sample, where only the other is of use
};

}  // namespace rehearse::run
