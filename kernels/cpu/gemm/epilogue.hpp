// SPDX-License-Identifier: Apache-2.0
// What fused activations do to runs of values, on one thread and the best SIMD target: forward on a result that is
// still in the cache, backward on a gradient before it is packed.
#pragma once

#include <cstdint>

namespace rehearse::kernels::cpu {

/// values = max(values, 0)
void apply_relu(float* values, std::int64_t count);

/// values = gelu(values), slopes = the derivatives there. Exact GELU; the normal distribution by Abramowitz and Stegun
/// 1964, 7.1.26: off by at most 0.75e-7.
void apply_gelu(float* values, float* slopes, std::int64_t count);

/// out = dst > 0 ? diff_dst : 0, what ReLU passes on.
void mask(const float* diff_dst, const float* dst, std::int64_t count, float* out);

/// out = diff_dst * slopes
void scale(const float* diff_dst, const float* slopes, std::int64_t count, float* out);

/// The sum of values, of those only whose dst is positive unless it is null; in f32 by lanes of 256 additions at most,
/// the rest in double.
double sum(const float* values, const float* dst, std::int64_t count);

}  // namespace rehearse::kernels::cpu
