// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/index.hpp"
#include "kernels/cpu/attention/flash.hpp"
#include "kernels/heads.hpp"
#include "kernels/memory.hpp"

namespace rehearse::kernels {

namespace {

using cpu::flash_backward;
using cpu::flash_backward_space;
using cpu::flash_forward;
using cpu::flash_forward_space;

template <typename T>
HeadRows<T> of_head(BlockRows<T> rows, std::int64_t sample, std::int64_t count, std::int64_t head, std::int64_t size,
                    std::int64_t from = 0) {
    return {rows.data + (sample * count + from) * rows.row + head * size, rows.row};
}

/// One head of queries, which sees nothing before query `from`.
Attention of_one_head(const AttentionBlock& block, std::int64_t from) {
    Attention op = block.op;
    op.heads = 1;
    op.key_heads = 0;
    op.packed = false;
    op.queries -= from;
    op.keys -= from;
    return op;
}

/// Rows that a head has beside the tensors, and its space.
struct Room {
    Room(std::int64_t rows, std::int64_t size, std::int64_t space)
        : values(at(rows * size)), log_sums(at(rows)), memory(allocate_host(at(space) * sizeof(float))) {}
    float* space() const { return reinterpret_cast<float*>(memory.get()); }
    std::vector<float> values, log_sums;
    std::shared_ptr<std::byte> memory;  // at the start of a cache line
};

// Both parts weighted by their shares of the sum of exponentials.
void join(const Room& come, std::int64_t rows, std::int64_t size, HeadRows<float> dst, float* log_sums) {
    for (std::int64_t i = 0; i < rows; ++i) {
        const double there = log_sums[i], more = come.log_sums[at(i)], largest = std::max(there, more);
        const double both = largest + std::log(std::exp(there - largest) + std::exp(more - largest));
        const auto keep = static_cast<float>(std::exp(there - both)), add = static_cast<float>(std::exp(more - both));
        float* const to = dst.data + i * dst.row;
        for (std::int64_t c = 0; c < size; ++c) to[c] = keep * to[c] + add * come.values[at(i * size + c)];
        log_sums[i] = static_cast<float>(both);
    }
}

void add(const std::vector<float>& from, std::int64_t rows, std::int64_t size, bool first, HeadRows<float> to) {
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t c = 0; c < size; ++c) {
            float& value = to.data[i * to.row + c];
            value = (first ? 0 : value) + from[at(i * size + c)];
        }
    }
}

}  // namespace

void attend_to_block(const AttentionBlock& block, bool first, BlockRows<float> dst, float* log_sums) {
    require(!first || !block.strictly, "a first block that each query sees");
    const std::int64_t queries = block.op.queries, keys = block.op.keys, heads = block.op.heads;
    const std::int64_t size = block.op.head_size, sharing = heads / key_heads(block.op), from = block.strictly ? 1 : 0;
    const Attention one = of_one_head(block, from);
    if (one.queries == 0) return;
#pragma omp parallel
    {
        Room room(one.queries, size, flash_forward_space(one));
#pragma omp for schedule(static)
        for (std::int64_t index = 0; index < block.batch * heads; ++index) {
            const std::int64_t sample = index / heads, head = index % heads;
            const HeadRows<float> to = of_head(dst, sample, queries, head, size, from);
            float* const sums = log_sums + index * queries + from;
            flash_forward({.op = one,
                           .q = of_head(block.q, sample, queries, head, size, from),
                           .k = of_head(block.k, sample, keys, head / sharing, size),
                           .v = of_head(block.v, sample, keys, head / sharing, size),
                           .dst = first ? to : HeadRows<float>{room.values.data(), size},
                           .log_sums = first ? sums : room.log_sums.data(),
                           .first = 0,
                           .count = one.queries},
                          room.space());
            if (!first) join(room, one.queries, size, to, sums);
        }
    }
}

void gradients_of_block(const AttentionBlock& block, const BlockGradients& tensors) {
    const std::int64_t queries = block.op.queries, keys = block.op.keys, heads = block.op.heads;
    const std::int64_t size = block.op.head_size, own = key_heads(block.op), sharing = heads / own;
    const std::int64_t from = block.strictly ? 1 : 0;
    const Attention one = of_one_head(block, from);
#pragma omp parallel
    {
        Room room(one.queries, size, one.queries == 0 ? 0 : flash_backward_space(one));
        std::vector<float> diff_k(at(keys * size)), diff_v(at(keys * size));
#pragma omp for schedule(static)
        for (std::int64_t index = 0; index < block.batch * heads; index += sharing) {
            const std::int64_t sample = index / heads, key_head = index % heads / sharing;
            const HeadRows<float> to_k = of_head(tensors.diff_k, sample, keys, key_head, size);
            const HeadRows<float> to_v = of_head(tensors.diff_v, sample, keys, key_head, size);
            for (std::int64_t head = index % heads; head < index % heads + sharing; ++head) {
                std::fill(diff_k.begin(), diff_k.end(), 0.0F);  // a strict block's last key is seen by nobody
                std::fill(diff_v.begin(), diff_v.end(), 0.0F);
                if (one.queries > 0) {
                    flash_backward({.op = one,
                                    .q = of_head(block.q, sample, queries, head, size, from),
                                    .k = of_head(block.k, sample, keys, key_head, size),
                                    .v = of_head(block.v, sample, keys, key_head, size),
                                    .dst = of_head(tensors.dst, sample, queries, head, size, from),
                                    .diff_dst = of_head(tensors.diff_dst, sample, queries, head, size, from),
                                    .diff_q = {room.values.data(), size},
                                    .diff_k = {diff_k.data(), size},
                                    .diff_v = {diff_v.data(), size},
                                    .log_sums = tensors.log_sums + (sample * heads + head) * queries + from},
                                   room.space());
                    add(room.values, one.queries, size, false,
                        of_head(tensors.diff_q, sample, queries, head, size, from));
                }
                const bool first = head == index % heads;
                add(diff_k, keys, size, first, to_k);
                add(diff_v, keys, size, first, to_v);
            }
        }
    }
}

std::string_view why_not_in_blocks(const Attention& op) {
    return value_size(op) == op.head_size ? "" : "values are of another size than keys";
}

}  // namespace rehearse::kernels
