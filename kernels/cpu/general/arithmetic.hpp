// SPDX-License-Identifier: Apache-2.0
// Functions of each element that are a few operations of arithmetic: by vectors, at the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/general/functions.hpp"

namespace rehearse::kernels::cpu {

/// Up to three operands of `size` elements: where they begin, and 1, or 0 for one number that is repeated.
struct ArithmeticRow {
    static constexpr std::size_t most = 3;
    const float* from[most] = {};
    std::int64_t step[most] = {};
    std::size_t operands = 1;
    std::int64_t size = 0;
};

/// Whether the two below know the function of so many operands.
bool is_arithmetic(general::Function function, std::size_t operands);
/// dst[i] = function(operands at i).
void along_arithmetic(general::Function function, const ArithmeticRow& row, float* dst);
/// diff[i] = slope by operand `k` at i * diff_dst[i], and 0 where the slope is, whatever diff_dst holds.
void slopes_of_arithmetic(general::Function function, const ArithmeticRow& row, std::size_t k, const float* diff_dst,
                          float* diff);

}  // namespace rehearse::kernels::cpu
