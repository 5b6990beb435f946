// SPDX-License-Identifier: Apache-2.0
// Elements from one data type to another, a tensor at a time.
#pragma once

#include "kernels/view.hpp"

namespace rehearse::kernels {

/// to[i] = from[i], rounded as core/half.hpp says, by vectors where the CPU has them (F16C, AVX2), shared among
/// threads. As many elements in both; the two do not overlap.
void convert(ConstView from, View to);

/// One stretch on this thread.
void convert(const Float16* from, float* to, std::int64_t count);
void convert(const BFloat16* from, float* to, std::int64_t count);
void convert(const float* from, Float16* to, std::int64_t count);
void convert(const float* from, BFloat16* to, std::int64_t count);

}  // namespace rehearse::kernels
