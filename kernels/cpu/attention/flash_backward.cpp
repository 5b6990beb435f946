// SPDX-License-Identifier: Apache-2.0
// Attention backward as in FlashAttention (Dao et al. 2022, algorithm 4): probabilities are computed again from the
// scores and the log-sum-exp that forward kept, a panel of queries by a block of keys at a time. Everything is
// transposed, {keys, panel}: P^T = exp(K Q^T - L), dS^T = P^T (V dO^T - D), dQ^T += K^T dS^T, dK += dS^T Q, dV += P^T
// dO, where D is the sum of dO O of each query.
#include "kernels/cpu/attention/flash.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \
    "kernels/cpu/attention/flash_backward.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                 // must come before highway.h
#include "hwy/highway.h"
#include "kernels/cpu/attention/flash_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t most_keys = 128;  // of a block: two blocks of 16 KiB, P and dS, beside one packed again

KeyBlocks blocks_of(const Attention& op) { return {op.keys, std::min(op.keys, most_keys)}; }

struct BackwardSpace {
    PackedRows keys, values;
    PackedColumns keys_across;
    float *p, *diff_s, *packed;                                       // of a block
    float *queries, *diff_dst, *query_rows, *diff_dst_rows, *diff_q;  // of a panel
    float *diff_k, *diff_v;                                           // sums over all queries, {keys, head_size}

    BackwardSpace(const Attention& op, Space space) : BackwardSpace(op, blocks_of(op), space) {}

private:
    BackwardSpace(const Attention& op, KeyBlocks blocks, Space& space)
        : keys(blocks, op.head_size, space.take(PackedRows::floats(blocks, op.head_size))),
          values(blocks, op.head_size, space.take(PackedRows::floats(blocks, op.head_size))),
          keys_across(blocks, op.head_size, space.take(PackedColumns::floats(blocks, op.head_size))),
          p(space.take(blocks.most * columns)),
          diff_s(space.take(blocks.most * columns)),
          packed(space.take(packed_a_floats(blocks.most, columns) + 16 * columns)),
          queries(space.take(op.head_size * columns)),
          diff_dst(space.take(op.head_size * columns)),
          query_rows(space.take(packed_b_floats(op.head_size, columns))),
          diff_dst_rows(space.take(packed_b_floats(op.head_size, columns))),
          diff_q(space.take(op.head_size * columns)),
          diff_k(space.take(op.keys * op.head_size)),
          diff_v(space.take(op.keys * op.head_size)) {}
};

std::int64_t backward_space(const Attention& op) {
    const KeyBlocks blocks = blocks_of(op);
    return 2 * PackedRows::floats(blocks, op.head_size) + PackedColumns::floats(blocks, op.head_size) +
           2 * whole_lines(blocks.most * columns) + whole_lines(packed_a_floats(blocks.most, columns) + 16 * columns) +
           3 * whole_lines(op.head_size * columns) + 2 * whole_lines(packed_b_floats(op.head_size, columns)) +
           2 * whole_lines(op.keys * op.head_size) + 64;
}

// One number a query.
struct PerQuery {
    Vector log_sum[2];  // in powers of two
    Vector common[2];   // D
};

// dst and diff_dst are {head_size, panel}.
PerQuery per_query(const FlashBackward& head, std::int64_t first, std::int64_t count, const float* HWY_RESTRICT dst,
                   const float* HWY_RESTRICT diff_dst) {
    alignas(64) float log_sum[columns];
    for (std::int64_t i = 0; i < columns; ++i) {
        // A query that does not exist has the probability 0 of everything.
        log_sum[i] = i < count ? head.log_sums[first + i] * log2_e : std::numeric_limits<float>::max();
    }
    PerQuery result;
    for (int h = 0; h < 2; ++h) {
        result.log_sum[h] = hn::LoadU(f32, log_sum + h * lanes);
        result.common[h] = hn::Zero(f32);
        for (std::int64_t at = h * lanes; at < head.op.head_size * columns; at += columns) {
            result.common[h] = hn::MulAdd(hn::LoadU(f32, dst + at), hn::LoadU(f32, diff_dst + at), result.common[h]);
        }
    }
    return result;
}

// p: from scores to probabilities. diff_s: from dP to dS, times the scale of the scores. A logarithm of a sum is
// rounded: of scores of 10^8 by whole numbers, and no probability is above one.
void probabilities(float* HWY_RESTRICT p, float* HWY_RESTRICT diff_s, std::int64_t keys, float scale,
                   const PerQuery& query) {
    const Vector rate = hn::Set(f32, scale * log2_e);
    const Vector scales = hn::Set(f32, scale);
    for (std::int64_t j = 0; j < keys; ++j) {
        for (int h = 0; h < 2; ++h) {
            const std::int64_t at = j * columns + h * lanes;
            const Vector power = hn::MulSub(hn::LoadU(f32, p + at), rate, query.log_sum[h]);
            const Vector probability = power_of_two(f32, hn::IfThenZeroElse(hn::Gt(power, hn::Zero(f32)), power));
            const Vector moved = hn::Sub(hn::LoadU(f32, diff_s + at), query.common[h]);
            hn::StoreU(probability, f32, p + at);
            hn::StoreU(hn::Mul(hn::Mul(probability, scales), moved), f32, diff_s + at);
        }
    }
}

// sums {keys, head_size} += values {keys, panel} x rows {panel, head_size}, of which `count` queries exist.
void add_product(const float* values, std::int64_t keys, const float* rows, std::int64_t count, std::int64_t size,
                 float* packed, float* sums) {
    const GemmShape shape{keys, size, count};
    pack_a(shape, {values, columns, 1}, packed);
    gemm_packed(shape, packed, rows, sums, size, true);
}

void backward_panel(const FlashBackward& head, const BackwardSpace& at, std::int64_t first, std::int64_t count) {
    const Attention& op = head.op;
    const std::int64_t size = op.head_size;
    const KeyBlocks blocks = blocks_of(op);
    const auto scale = static_cast<float>(score_scale(op));
    pack_queries(head.q, first, count, size, at.queries);
    pack_queries(head.diff_dst, first, count, size, at.diff_dst);
    pack_b({0, size, count}, {head.q.data + first * head.q.row, head.q.row, 1}, at.query_rows);
    pack_b({0, size, count}, {head.diff_dst.data + first * head.diff_dst.row, head.diff_dst.row, 1}, at.diff_dst_rows);
    pack_queries(head.dst, first, count, size, at.diff_q);  // until the first block's product takes its place
    const PerQuery query = per_query(head, first, count, at.diff_q, at.diff_dst);
    const std::int64_t seen = keys_seen(op, first + count - 1);
    for (std::int64_t b = 0; b < blocks.count() && blocks.first(b) < seen; ++b) {
        const std::int64_t keys = blocks.size(b);
        gemm_packed({keys, columns, size}, at.keys.at(b), at.queries, at.p, columns, false);
        gemm_packed({keys, columns, size}, at.values.at(b), at.diff_dst, at.diff_s, columns, false);
        const Visible visible{keys_seen(op, first) - blocks.first(b)};
        if (!visible.all(keys)) hide(at.p, keys, visible);
        probabilities(at.p, at.diff_s, keys, scale, query);
        gemm_packed({size, columns, keys}, at.keys_across.at(b), at.diff_s, at.diff_q, columns, b > 0);
        const std::int64_t offset = blocks.first(b) * size;
        add_product(at.diff_s, keys, at.query_rows, count, size, at.packed, at.diff_k + offset);
        add_product(at.p, keys, at.diff_dst_rows, count, size, at.packed, at.diff_v + offset);
    }
    if (head.diff_q.data != nullptr) store_queries(at.diff_q, head.diff_q, first, count, size);
}

void copy_rows(const float* from, std::int64_t rows, std::int64_t size, HeadRows<float> to) {
    if (to.data == nullptr) return;
    for (std::int64_t i = 0; i < rows; ++i) std::copy_n(from + i * size, size, to.data + i * to.row);
}

void backward(const FlashBackward& head, float* memory) {
    BackwardSpace at{head.op, Space{memory}};
    const Attention& op = head.op;
    at.keys.pack(head.k);
    at.values.pack(head.v);
    at.keys_across.pack(head.k);
    std::fill_n(at.diff_k, op.keys * op.head_size, 0.0F);
    std::fill_n(at.diff_v, op.keys * op.head_size, 0.0F);
    for (std::int64_t i = 0; i < op.queries; i += columns) {
        backward_panel(head, at, i, std::min(columns, op.queries - i));
    }
    copy_rows(at.diff_k, op.keys, op.head_size, head.diff_k);
    copy_rows(at.diff_v, op.keys, op.head_size, head.diff_v);
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(backward);
HWY_EXPORT(backward_space);

void flash_backward(const FlashBackward& head, float* space) { HWY_DYNAMIC_DISPATCH(backward)(head, space); }
std::int64_t flash_backward_space(const Attention& op) { return HWY_DYNAMIC_DISPATCH(backward_space)(op); }

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
