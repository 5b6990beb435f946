// SPDX-License-Identifier: Apache-2.0
// Tasks that can be learned and need no file. Pictures: each class is a smooth random picture, each sample its class's
// picture under noise; where every pixel has a label, a class is a level of each channel, a sample a smooth map of
// classes. Tokens: a language in which most tokens have one that likes to follow, or ids by class.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/op.hpp"

namespace rehearse::run {

/// Of sample `index`: all classes alike.
std::int32_t synthetic_label(std::int64_t index, std::int64_t classes, std::uint64_t seed);

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

/// Ids in [0, vocabulary), small ones more often than large ones, as words are. Sample `index` is the same whoever
/// makes it.
class SyntheticTokens {
public:
    SyntheticTokens(std::int64_t vocabulary, std::uint64_t seed);

    /// A sequence and what follows each of its tokens: three times in four the one that likes to follow it. (Attention
    /// that is not causal sees that too: it learns to look.)
    void fill(std::int64_t index, std::span<std::int32_t> tokens, std::span<std::int32_t> next) const;
    /// Ids that tell the label: every other one is the one that the label likes at this place.
    void fill_class(std::int64_t index, std::int32_t label, std::span<std::int32_t> ids) const;

private:
    std::int32_t pick(double uniform) const;

    std::int64_t vocabulary_;
    std::uint64_t seed_;
};

}  // namespace rehearse::run
