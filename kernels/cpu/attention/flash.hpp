// SPDX-License-Identifier: Apache-2.0
// One head of attention on one thread, without ever holding all of its scores.
#pragma once

#include <cstdint>

#include "kernels/backend.hpp"
#include "kernels/heads.hpp"

namespace rehearse::kernels::cpu {

/// Algorithm "flash": attention, forward and backward.
const Backend& flash();

/// Queries [first, first + count) of one head.
struct FlashForward {
    Attention op;
    HeadRows<const float> q, k, v;
    HeadRows<float> dst;
    float* log_sums = nullptr;  // of the head's queries
    std::int64_t first = 0, count = 0;
};
void flash_forward(const FlashForward& head, float* space);
std::int64_t flash_forward_space(const Attention& op);

/// A whole head. diff_q, diff_k and diff_v may be null.
struct FlashBackward {
    Attention op;
    HeadRows<const float> q, k, v, dst, diff_dst;
    HeadRows<float> diff_q, diff_k, diff_v;
    const float* log_sums = nullptr;
};
void flash_backward(const FlashBackward& head, float* space);
std::int64_t flash_backward_space(const Attention& op);

/// How many queries are worked on at a time; `first` is best a multiple of it.
std::int64_t flash_panel();

}  // namespace rehearse::kernels::cpu
