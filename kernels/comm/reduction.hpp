// SPDX-License-Identifier: Apache-2.0
// What a rank does with numbers that it receives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/op.hpp"

namespace rehearse::kernels {

/// sum[i] += arrived[i] for `count` numbers of `type`, which need not be aligned. f16 and bf16 are added in f32 and
/// rounded to nearest, ties to even. With Highway for the best instructions that the CPU has.
void add(DataType type, std::byte* sum, const std::byte* arrived, std::int64_t count);

/// One number, in plain integer arithmetic; a NaN stays a quiet NaN.
float float_of_half(std::uint16_t half);
std::uint16_t half_of_float(float value);
float float_of_bfloat(std::uint16_t bfloat);
std::uint16_t bfloat_of_float(float value);

}  // namespace rehearse::kernels
