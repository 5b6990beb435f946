// SPDX-License-Identifier: Apache-2.0
// A task that can be learned and needs no file: each class is a smooth random picture, each sample its class's picture
// under noise. Where every pixel has a label, a class is a level of each channel, a sample a smooth map of classes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/op.hpp"

namespace rehearse::run {

class SyntheticTask {
public:
    /// Samples of this shape ({channels, (depth,) height, width}, or {features} as one row) and that many classes. With
    /// an image, the sample's own size without its channels, one label a pixel; InputError for any other size.
    SyntheticTask(const Shape& sample, std::int64_t classes, std::uint64_t seed, const Shape& image = {});

    /// Sample `index` is the same whoever makes it, so that a global batch does not depend on the number of ranks.
    std::int32_t label(std::int64_t index) const;
    void fill(std::int64_t index, std::span<float> sample) const;
    /// One label, or one of each pixel.
    void fill_labels(std::int64_t index, std::span<std::int32_t> labels) const;

private:
    void add_wave(std::uint64_t wave_key, std::span<float> plane) const;

    void add_picture(std::int64_t index, std::span<float> sample) const;
    void add_levels(std::int64_t index, std::span<float> sample) const;

    std::int64_t channels_ = 1, height_ = 1, width_ = 1, classes_;
    std::int64_t pixels_ = 0;  // that have a label; 0: the sample has one
    std::uint64_t seed_;
};

}  // namespace rehearse::run
