// SPDX-License-Identifier: Apache-2.0
// The column matrix of one channel: a row a tap, a column an output pixel.
#pragma once

#include <cstdint>

#include "kernels/cpu/conv/convolution.hpp"

namespace rehearse::kernels::cpu {

/// Columns [first, first + count) of an image, zero where a tap lies outside; `out_row` floats from row to row.
void gather(const Convolution& conv, const float* image, std::int64_t first, std::int64_t count, float* out,
            std::int64_t out_row);

/// The reverse: adds columns to the image.
void scatter(const Convolution& conv, const float* columns, std::int64_t row, std::int64_t first, std::int64_t count,
             float* image);

}  // namespace rehearse::kernels::cpu
