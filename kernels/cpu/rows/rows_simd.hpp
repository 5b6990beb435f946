// SPDX-License-Identifier: Apache-2.0
// Loops over one row on one thread.
#pragma once

#include <cstdint>

namespace rehearse::kernels::cpu {

struct NormRow {
    std::int64_t features = 0;
    const float* src = nullptr;
    const float* gamma = nullptr;
    const float* beta = nullptr;
    float mean = 0, variance = 0;  // written by forward
};
void layer_norm_row(NormRow& row, float* dst);
/// Adds to diff_gamma and diff_beta; diff_src may be null.
void layer_norm_row_gradient(const NormRow& row, const float* diff_dst, float* diff_src, float* diff_gamma,
                             float* diff_beta);

/// dst += src.
void add_row(const float* src, std::int64_t count, float* dst);

/// log sum exp of a row of scores; and diff = factor exp(score - log_sum).
float log_sum_exp(const float* scores, std::int64_t count);
void scaled_softmax(const float* scores, std::int64_t count, float log_sum, float factor, float* diff);

}  // namespace rehearse::kernels::cpu
