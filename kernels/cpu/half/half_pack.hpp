// SPDX-License-Identifier: Apache-2.0
// Operands of 16-bit products in the layout that half_simd.hpp asks for.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/half/half_simd.hpp"

namespace rehearse::kernels::cpu {

/// Number k of item i (a row of A, a column of B) lies at data[i * item + k * depth]; one of the two steps is 1.
struct HalfMatrix {
    const std::uint16_t* data = nullptr;
    std::int64_t item = 0, depth = 1;
    HalfMatrix at(std::int64_t i, std::int64_t k) const { return {data + i * item + k * depth, item, depth}; }
};

/// Steps of a sum of k numbers.
std::int64_t half_steps(const HalfSimd& simd, std::int64_t k);

/// {step, width} units of `items` rows of A; the rows beyond them, up to `width`, and the second half of an odd step
/// are zeros.
void pack_half_a(const HalfSimd& simd, HalfMatrix a, std::int64_t items, std::int64_t k, std::int64_t width,
                 std::uint32_t* out);

/// {step, columns, pair} of `items` columns of B, at most simd.columns of them; zeros beyond.
void pack_half_b(const HalfSimd& simd, HalfMatrix b, std::int64_t items, std::int64_t k, std::uint16_t* out);

/// out {columns, rows} = in {rows, columns} transposed; steps from row to row in elements.
void transpose(const std::uint32_t* in, std::int64_t in_row, std::int64_t rows, std::int64_t columns,
               std::uint32_t* out, std::int64_t out_row);
void transpose(const std::uint16_t* in, std::int64_t in_row, std::int64_t rows, std::int64_t columns,
               std::uint16_t* out, std::int64_t out_row);

}  // namespace rehearse::kernels::cpu
