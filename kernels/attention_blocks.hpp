// SPDX-License-Identifier: Apache-2.0
// Attention by one block of keys and values after the other, which come from other ranks (Liu et al. 2023, "Ring
// Attention"): each block by flash attention, joined by the logarithms of the sums of their exponentials.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/op.hpp"

namespace rehearse::kernels {

/// Row t of sample s begins at data + (s * rows + t) * row, its heads one after the other.
template <typename T>
struct BlockRows {
    T* data = nullptr;
    std::int64_t row = 0;
};

/// Queries of `batch` samples and one block of keys and values for each.
struct AttentionBlock {
    Attention op;  // of as many keys as the block has
    std::int64_t batch = 1;
    bool strictly = false;  // of a causal one: query i sees the keys before i, not i; query 0 none
    BlockRows<const float> q, k, v;
};

/// Joins to `dst` {batch, queries, heads * head_size} and `log_sums` {batch, heads, queries} what this block gives;
/// the `first` one writes them, and is not strict, as a query without keys has no result.
void attend_to_block(const AttentionBlock& block, bool first, BlockRows<float> dst, float* log_sums);

/// `dst` and `log_sums` are those of all blocks. Adds to diff_q what this block gives; writes diff_k and diff_v.
struct BlockGradients {
    BlockRows<const float> dst, diff_dst;
    const float* log_sums = nullptr;
    BlockRows<float> diff_q, diff_k, diff_v;
};
void gradients_of_block(const AttentionBlock& block, const BlockGradients& tensors);

/// Why such blocks of it are not attended to, in this build; empty where they are.
std::string_view why_not_in_blocks(const Attention& op);

}  // namespace rehearse::kernels
