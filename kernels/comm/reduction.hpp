// SPDX-License-Identifier: Apache-2.0
// What a rank does with numbers that it receives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/op.hpp"

namespace rehearse::kernels {

/// sum[i] += arrived[i] for `count` numbers of `type`, which need not be aligned. f16 and bf16 are added in f32 and
/// rounded as core/half.hpp says. With Highway for the best instructions that the CPU has.
void add(DataType type, std::byte* sum, const std::byte* arrived, std::int64_t count);

/// Of f32 vectors, which need not be aligned: a.b, |a|^2, |b|^2, summed in f64 in a fixed order, as three f32 numbers.
void dots(const std::byte* a, const std::byte* b, std::int64_t count, std::byte* products);
/// Both become (1 - a.b / 2|a|^2) a + (1 - a.b / 2|b|^2) b, by the three numbers; a vector of zeros counts as nothing.
void blend(std::byte* a, std::byte* b, std::int64_t count, const std::byte* products);

}  // namespace rehearse::kernels
