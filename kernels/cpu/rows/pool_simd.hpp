// SPDX-License-Identifier: Apache-2.0
// Maxima of windows, one row of the output at a time, by vectors of outputs that lie side by side.
#pragma once

#include <cstdint>
#include <vector>

namespace rehearse::kernels::cpu {

/// One column of a window's taps. What output x reads lies at x + shift of the image's row among those pixels that are
/// congruent modulo the stride, its phase; inside the image for outputs from `begin` to `end`.
struct ColumnTap {
    std::int64_t phase, shift, begin, end;
};

/// How rows of the image meet rows of the output.
struct PoolColumns {
    std::int64_t width = 1, out_width = 1, stride = 1;
    std::vector<ColumnTap> taps;
    std::int64_t inner_begin = 0, inner_end = 0;  // outputs whose taps all lie inside the image
    std::int64_t before = 0, phase = 1;           // floats before a phase's first pixel, and of a whole phase

    /// Floats that so many rows of the image take, split into phases.
    std::int64_t room(std::int64_t rows) const { return rows * stride * phase; }
};
PoolColumns pool_columns(std::int64_t width, std::int64_t out_width, std::int64_t kernel, std::int64_t stride,
                         std::int64_t dilation, std::int64_t pad);

/// Rows of the image that a row of the output reads: where they begin in `src`.
struct PoolRows {
    const std::int64_t* at = nullptr;
    std::int64_t count = 0;
};

/// The largest pixel of each window; 0 of a window that holds none. `room` is PoolColumns::room() of the rows.
void max_pool_row(const PoolColumns& columns, PoolRows rows, const float* src, float* room, float* dst);
/// Adds the gradient of each output to the first largest pixel of its window. `room` is twice as large.
void max_pool_row_gradient(const PoolColumns& columns, PoolRows rows, const float* src, const float* diff_dst,
                           float* room, float* diff_src);

}  // namespace rehearse::kernels::cpu
