// SPDX-License-Identifier: Apache-2.0
// Attention forward, a panel of queries by a block of keys at a time, with the online softmax of Milakov and Gimelshein
// (2018) as in FlashAttention (Dao et al. 2022): scores live in cache, never in memory. Keys and values are packed once
// a head.
#include <cmath>

#include "kernels/cpu/attention/flash.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \
    "kernels/cpu/attention/flash_forward.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                // must come before highway.h
#include "hwy/highway.h"
#include "kernels/cpu/attention/flash_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

// Keys of a block: with a panel of 32 queries, 32 KiB of scores. Of the block that a causal panel ends in, half is
// wasted.
constexpr std::int64_t most_keys = 256, most_causal_keys = 96;

KeyBlocks blocks_of(const Attention& op) {
    return {op.keys, std::min(op.keys, op.causal ? most_causal_keys : most_keys)};
}

// What a head works with.
struct ForwardSpace {
    PackedRows keys;
    PackedColumns values;
    float *scores, *queries, *sums;

    ForwardSpace(const Attention& op, Space space)
        : keys(blocks_of(op), op.head_size, space.take(PackedRows::floats(blocks_of(op), op.head_size))),
          values(blocks_of(op), op.head_size, space.take(PackedColumns::floats(blocks_of(op), op.head_size))),
          scores(space.take(blocks_of(op).most * columns)),
          queries(space.take(op.head_size * columns)),
          sums(space.take(op.head_size * columns)) {}
};

std::int64_t forward_space(const Attention& op) {
    const KeyBlocks blocks = blocks_of(op);
    return PackedRows::floats(blocks, op.head_size) + PackedColumns::floats(blocks, op.head_size) +
           whole_lines(blocks.most * columns) + 2 * whole_lines(op.head_size * columns) + 64;
}

void forward_panel(const FlashForward& head, const ForwardSpace& at, std::int64_t first, std::int64_t count) {
    const Attention& op = head.op;
    const KeyBlocks blocks = blocks_of(op);
    const auto rate = static_cast<float>(score_scale(op)) * log2_e;
    pack_queries(head.q, first, count, op.head_size, at.queries);
    Running running{{hn::Set(f32, hidden), hn::Set(f32, hidden)}, {hn::Zero(f32), hn::Zero(f32)}};
    const std::int64_t seen = keys_seen(op, first + count - 1);  // by the last query of the panel
    for (std::int64_t b = 0; b < blocks.count() && blocks.first(b) < seen; ++b) {
        const std::int64_t keys = std::min(blocks.size(b), seen - blocks.first(b));
        // A block cut short keeps its panels: the product is of whole ones.
        gemm_packed({blocks.size(b), columns, op.head_size}, at.keys.at(b), at.queries, at.scores, columns, false);
        const Visible visible{keys_seen(op, first) - blocks.first(b)};
        if (!visible.all(keys)) hide(at.scores, keys, visible);
        Vector factor[2];
        softmax_block(at.scores, keys, rate, running, factor);
        if (b > 0) multiply_columns(at.sums, op.head_size, factor);
        std::fill(at.scores + keys * columns, at.scores + blocks.size(b) * columns, 0.0F);
        gemm_packed({op.head_size, columns, blocks.size(b)}, at.values.at(b), at.scores, at.sums, columns, b > 0);
    }
    const Vector one = hn::Set(f32, 1.0F);
    const Vector inverse[2] = {hn::Div(one, running.sum[0]), hn::Div(one, running.sum[1])};
    multiply_columns(at.sums, op.head_size, inverse);
    store_queries(at.sums, head.dst, first, count, op.head_size);
    alignas(64) float largest[columns], sums[columns];
    for (int h = 0; h < 2; ++h) {
        hn::StoreU(running.largest[h], f32, largest + h * lanes);
        hn::StoreU(running.sum[h], f32, sums + h * lanes);
    }
    for (std::int64_t i = 0; i < count; ++i) {
        head.log_sums[first + i] = largest[i] * static_cast<float>(score_scale(op)) + std::log(sums[i]);
    }
}

void forward(const FlashForward& head, float* memory) {
    ForwardSpace at{head.op, Space{memory}};
    at.keys.pack(head.k);
    at.values.pack(head.v);
    const std::int64_t end = head.first + head.count;
    for (std::int64_t i = head.first; i < end; i += columns) forward_panel(head, at, i, std::min(columns, end - i));
}

std::int64_t panel() { return columns; }

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(forward);
HWY_EXPORT(forward_space);
HWY_EXPORT(panel);

void flash_forward(const FlashForward& head, float* space) { HWY_DYNAMIC_DISPATCH(forward)(head, space); }
std::int64_t flash_forward_space(const Attention& op) { return HWY_DYNAMIC_DISPATCH(forward_space)(op); }
std::int64_t flash_panel() { return HWY_DYNAMIC_DISPATCH(panel)(); }

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
