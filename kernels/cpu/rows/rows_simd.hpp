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

/// Of a row of scores: the largest, exp(label's score - largest), and the sum of these of all others. Where the label
/// is nearly certain the others are what its gradient is: 1 - p would keep none of its digits.
struct ExpRow {
    float largest = 0, own = 0, others = 0;
};
ExpRow exponentials(const float* scores, std::int64_t count, std::int64_t label);
/// diff = factor exp(score - largest).
void scaled_exponentials(const float* scores, std::int64_t count, float largest, float factor, float* diff);

}  // namespace rehearse::kernels::cpu
