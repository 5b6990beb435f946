// SPDX-License-Identifier: Apache-2.0
// Adam and LAMB over one stretch of parameters on one thread.
#pragma once

#include <cstdint>

namespace rehearse::kernels::cpu {

/// A stretch of parameters and what Adam keeps of them; see kernels/reference/adam.cpp.
struct AdamStep {
    std::int64_t count = 0;
    float *weights = nullptr, *first = nullptr, *second = nullptr;
    const float* gradient = nullptr;
    float beta_first = 0, beta_second = 0, epsilon = 0, decay = 0, rate = 0;
    float correct_first = 1, correct_second = 1;
};
void adam(const AdamStep& step);
/// LAMB's two halves: the moments and the squared norms of weights and direction; then the step, `rate` times the
/// direction.
struct Norms {
    double weights = 0, direction = 0;
};
Norms lamb_moments(const AdamStep& step);
void lamb_step(const AdamStep& step);

}  // namespace rehearse::kernels::cpu
