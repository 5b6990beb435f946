// SPDX-License-Identifier: Apache-2.0
// What softmax and the normalization of sets do to elements that lie side by side, on one thread.
#pragma once

#include <cstdint>

namespace rehearse::kernels::cpu {

/// `count` softmaxes whose elements lie side by side: the elements of one are `stride` floats apart and `along` in
/// number. A single softmax of contiguous elements has a stride of 1 and a count of 1.
struct SoftmaxLines {
    std::int64_t along = 1, stride = 1, count = 1;
    bool log = false;  // the logarithm of the softmax
};
void softmax_lines(const SoftmaxLines& lines, const float* src, float* dst);
/// Reads the result of the softmax in `dst` and its gradient in `g`.
void softmax_lines_gradient(const SoftmaxLines& lines, const float* dst, const float* g, float* diff_src);

struct SetMoments {
    float mean = 0, over = 1;  // over: one over the deviation
};
/// Of all elements of a set. The mean is 0 unless it is centred.
SetMoments set_moments(const float* src, std::int64_t size, bool centred, double epsilon);

/// `count` elements of a set that follow each other. A step of 1 gives each its own weight, one of 0 the same to all.
struct SetRun {
    std::int64_t count = 0;
    const float *src = nullptr, *gamma = nullptr, *beta = nullptr;
    std::int64_t gamma_step = 0, beta_step = 0;
};
/// dst = (src - mean) over gamma + beta.
void scale_run(const SetRun& run, SetMoments moments, float* dst);

/// Sums over a run of h = g gamma and of h times the normalized element.
struct SetSums {
    double h = 0, hx = 0;
};
/// Adds the gradients of gamma and beta to `diff_gamma` and `diff_beta` unless they are null.
SetSums sum_run(const SetRun& run, SetMoments moments, const float* g, double* diff_gamma, double* diff_beta);
/// diff_src = (h - mean_h - normalized mean_hx) over.
void run_gradient(const SetRun& run, SetMoments moments, const float* g, float mean_h, float mean_hx, float* diff_src);

}  // namespace rehearse::kernels::cpu
