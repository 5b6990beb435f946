// SPDX-License-Identifier: Apache-2.0
// The loops of direct convolution that are compiled once a SIMD target. Images are blocks of `lanes` channels,
// {block, pixel, lane}; weights, and what is summed up, are panels of 1, 2 or 4 vectors of channels.
#pragma once

#include <cstdint>

#include "kernels/cpu/conv/tap_at.hpp"
#include "kernels/cpu/rows/sweep.hpp"

namespace rehearse::kernels::cpu {

/// out {rows * columns, vectors * lanes} (+)= sum over channels and taps of src x weights.
struct SumOverTaps {
    const float* src;      // of the first output pixel
    std::int64_t block;    // floats from one block of channels to the next
    std::int64_t src_row;  // floats from one row of outputs to the next
    const float* weights;  // {channel, all taps, vectors * lanes}
    std::int64_t channel;  // floats from one channel's weights to the next
    const TapAt* taps;
    std::int64_t tap_count;
    std::int64_t channels;
    std::int64_t rows, columns;
    float* out;
    bool accumulate;
    bool relu = false;  // of the sums, before they are stored
};

/// out {channels, vectors * lanes}, rows `out_row` floats apart, += sum over pixels of src x diff_dst.
struct SumOverPixels {
    const float* src;  // of the first pixel, at a tap
    std::int64_t src_row;
    const float* diff_dst;  // {rows * columns, vectors * lanes}
    std::int64_t channels;  // at most lanes
    std::int64_t rows, columns;
    float* out;
    std::int64_t out_row;
};

struct DirectSimd {
    std::int64_t lanes;
    /// Vectors in a panel for so many channels and output columns.
    std::int64_t (*vectors)(std::int64_t channels, std::int64_t columns);
    void (*sum_over_taps)(const SumOverTaps& sum, std::int64_t vectors);
    void (*sum_over_pixels)(const SumOverPixels& sum, std::int64_t vectors);
    /// Of groups of one channel and one filter, `lanes` of them at a time: a lane of src meets its own lane of weights
    /// {tap, lane} or diff_dst {pixel, lane}. Of the sums' sizes `channels` is not read, nor is `block` or `channel`.
    /// Sums over pixels are those of `count` taps: of each the floats from `src`, and those from `out` to its sum.
    void (*sum_over_taps_by_lane)(const SumOverTaps& sum);
    void (*sum_over_pixels_by_lane)(const SumOverPixels& sum, const TapAt* taps, std::int64_t count);
    /// One block of at most `lanes` channels, `plane` floats apart in `in`, as the sweep reads it.
    void (*pack_image)(const PackedImage& image, const float* in, std::int64_t channels, float* out);
    /// out {columns, rows} = in {rows, columns} transposed.
    void (*transpose)(const float* in, std::int64_t in_row, std::int64_t rows, std::int64_t columns, float* out,
                      std::int64_t out_row);
};

/// Of the best target that this machine has.
const DirectSimd& direct_simd();

}  // namespace rehearse::kernels::cpu
