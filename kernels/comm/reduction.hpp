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

}  // namespace rehearse::kernels
