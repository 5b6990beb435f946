// SPDX-License-Identifier: Apache-2.0
// Functions of each element that bend: by vectors, as the standard library takes some ten nanoseconds for each number.
#pragma once

#include <cstdint>

#include "kernels/general/functions.hpp"

namespace rehearse::kernels::cpu {

/// A function of one number, and the numbers behind it (kernels/general/functions.hpp): elu's alpha, selu's two.
struct Curve {
    general::Function function;
    float first = 1, second = 1;
};
/// Whether the two below know it.
bool is_curve(general::Function function);
/// dst[i] = function(src[i]); dst may be src.
void along_curve(const Curve& curve, const float* src, std::int64_t count, float* dst);
/// diff_src[i] = slope at src[i] * diff_dst[i], and 0 where the slope is, whatever diff_dst holds.
void slopes_of_curve(const Curve& curve, const float* src, const float* diff_dst, std::int64_t count, float* diff_src);

}  // namespace rehearse::kernels::cpu
