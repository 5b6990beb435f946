// SPDX-License-Identifier: Apache-2.0
// A task that can be learned and needs no file: each class is a smooth random picture, each sample its class's picture
// under noise.
#pragma once

#include <cstdint>
#include <span>

#include "core/op.hpp"

namespace rehearse::run {

class SyntheticTask {
public:
    /// Samples of this shape ({channels, height, width}, or {features} as one row) and that many classes.
    SyntheticTask(const Shape& sample, std::int64_t classes, std::uint64_t seed);

    /// Sample `index` is the same whoever makes it, so that a global batch does not depend on the number of ranks.
    std::int32_t label(std::int64_t index) const;
    void fill(std::int64_t index, std::span<float> sample) const;

private:
    void add_wave(std::uint64_t wave_key, std::span<float> plane) const;

    std::int64_t channels_ = 1, height_ = 1, width_ = 1, classes_;
    std::uint64_t seed_;
};

}  // namespace rehearse::run
