// SPDX-License-Identifier: Apache-2.0
// The loops of batch normalization that are compiled once a SIMD target, over a run of values of one channel.
#pragma once

#include <cstdint>

namespace rehearse::kernels::cpu {

/// What backward adds up over a channel, or forward: of x - shift, and of its square.
struct TwoSums {
    double first = 0, second = 0;
};

struct BatchNormSimd {
    /// Adds the sums of x - shift and (x - shift)^2.
    void (*add_distances)(const float* x, std::int64_t count, float shift, TwoSums& sums);
    /// y = (x - mean) * scale + shift (+ shortcut unless null), then ReLU.
    void (*normalize)(const float* x, const float* shortcut, float* y, std::int64_t count, float mean, float scale,
                      float shift, bool relu);
    /// g is diff, where y is positive or null, else 0. Adds the sums of g and g * (x - mean); keeps g unless null.
    void (*add_gradients)(const float* x, const float* diff, const float* y, float* keep, std::int64_t count,
                          float mean, TwoSums& sums);
    /// diff_x = scale * (g - offset - (x - mean) * slope), g as above.
    void (*gradient)(const float* x, const float* diff, const float* y, float* diff_x, std::int64_t count, float mean,
                     float scale, float offset, float slope);
};

/// Of the best target that this machine has.
const BatchNormSimd& batchnorm_simd();

}  // namespace rehearse::kernels::cpu
