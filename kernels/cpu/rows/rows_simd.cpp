// SPDX-License-Identifier: Apache-2.0
// Sums go lane by lane.
#include "kernels/cpu/rows/rows_simd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/heads.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/rows_simd.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                              // must come before highway.h
#include "hwy/highway.h"
#include "kernels/cpu/over_inl.hpp"
#include "kernels/cpu/rows/exp_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

void norm_row(NormRow& row, float* HWY_RESTRICT dst) {
    const float* HWY_RESTRICT src = row.src;
    const auto share = 1.0F / static_cast<float>(row.features);
    Vector sums = hn::Zero(f32);
    float rest = 0;
    over(
        row.features, [&](std::int64_t i) HWY_ATTR { sums = hn::Add(sums, hn::LoadU(f32, src + i)); },
        [&](std::int64_t i) { rest += src[i]; });
    row.mean = (total(sums) + rest) * share;
    const Vector mean = hn::Set(f32, row.mean);
    sums = hn::Zero(f32);
    rest = 0;
    over(
        row.features,
        [&](std::int64_t i) HWY_ATTR {
            const Vector off = hn::Sub(hn::LoadU(f32, src + i), mean);
            sums = hn::MulAdd(off, off, sums);
        },
        [&](std::int64_t i) { rest += (src[i] - row.mean) * (src[i] - row.mean); });
    row.variance = (total(sums) + rest) * share;
    const float scale = 1.0F / std::sqrt(row.variance + static_cast<float>(layer_norm_epsilon));
    const Vector scales = hn::Set(f32, scale);
    over(
        row.features,
        [&](std::int64_t i) HWY_ATTR {
            const Vector normal = hn::Mul(hn::Sub(hn::LoadU(f32, src + i), mean), scales);
            hn::StoreU(hn::MulAdd(normal, hn::LoadU(f32, row.gamma + i), hn::LoadU(f32, row.beta + i)), f32, dst + i);
        },
        [&](std::int64_t i) { dst[i] = (src[i] - row.mean) * scale * row.gamma[i] + row.beta[i]; });
}

void norm_row_gradient(const NormRow& row, const float* HWY_RESTRICT diff_dst, float* HWY_RESTRICT diff_src,
                       float* HWY_RESTRICT diff_gamma, float* HWY_RESTRICT diff_beta) {
    const float* HWY_RESTRICT src = row.src;
    const float* HWY_RESTRICT gamma = row.gamma;
    const float scale = 1.0F / std::sqrt(row.variance + static_cast<float>(layer_norm_epsilon));
    const auto share = 1.0F / static_cast<float>(row.features);
    const Vector mean = hn::Set(f32, row.mean);
    const Vector scales = hn::Set(f32, scale);
    Vector sum_h = hn::Zero(f32);
    Vector sum_hx = hn::Zero(f32);
    float rest_h = 0;
    float rest_hx = 0;
    over(
        row.features,
        [&](std::int64_t i) HWY_ATTR {
            const Vector normal = hn::Mul(hn::Sub(hn::LoadU(f32, src + i), mean), scales);
            const Vector diff = hn::LoadU(f32, diff_dst + i);
            const Vector h = hn::Mul(diff, hn::LoadU(f32, gamma + i));
            sum_h = hn::Add(sum_h, h);
            sum_hx = hn::MulAdd(h, normal, sum_hx);
            hn::StoreU(hn::MulAdd(diff, normal, hn::LoadU(f32, diff_gamma + i)), f32, diff_gamma + i);
            hn::StoreU(hn::Add(diff, hn::LoadU(f32, diff_beta + i)), f32, diff_beta + i);
        },
        [&](std::int64_t i) {
            const float normal = (src[i] - row.mean) * scale;
            rest_h += diff_dst[i] * gamma[i];
            rest_hx += diff_dst[i] * gamma[i] * normal;
            diff_gamma[i] += diff_dst[i] * normal;
            diff_beta[i] += diff_dst[i];
        });
    if (diff_src == nullptr) return;
    const float mean_h = (total(sum_h) + rest_h) * share;
    const float mean_hx = (total(sum_hx) + rest_hx) * share;
    const Vector all_h = hn::Set(f32, mean_h);
    const Vector all_hx = hn::Set(f32, mean_hx);
    over(
        row.features,
        [&](std::int64_t i) HWY_ATTR {
            const Vector normal = hn::Mul(hn::Sub(hn::LoadU(f32, src + i), mean), scales);
            const Vector h = hn::Mul(hn::LoadU(f32, diff_dst + i), hn::LoadU(f32, gamma + i));
            hn::StoreU(hn::Mul(hn::NegMulAdd(normal, all_hx, hn::Sub(h, all_h)), scales), f32, diff_src + i);
        },
        [&](std::int64_t i) {
            const float normal = (src[i] - row.mean) * scale;
            diff_src[i] = (diff_dst[i] * gamma[i] - mean_h - normal * mean_hx) * scale;
        });
}

void add(const float* HWY_RESTRICT src, std::int64_t count, float* HWY_RESTRICT dst) {
    over(
        count,
        [&](std::int64_t i)
            HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(f32, dst + i), hn::LoadU(f32, src + i)), f32, dst + i); },
        [&](std::int64_t i) { dst[i] += src[i]; });
}

constexpr float least = -std::numeric_limits<float>::infinity();

// The last numbers of a row, fewer than a vector's, and behind them what no exponential is left of.
HWY_INLINE Vector last_scores(const float* from, std::int64_t own) {
    float room[static_cast<std::size_t>(lanes)];
    std::fill_n(room, lanes, least);
    std::copy_n(from, own, room);
    return hn::LoadU(f32, room);
}

float largest_of(const float* HWY_RESTRICT scores, std::int64_t count) {
    Vector most[2] = {hn::Set(f32, least), hn::Set(f32, least)};
    std::int64_t i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        most[0] = hn::Max(hn::LoadU(f32, scores + i), most[0]);
        most[1] = hn::Max(hn::LoadU(f32, scores + i + lanes), most[1]);
    }
    for (; i + lanes <= count; i += lanes) most[0] = hn::Max(hn::LoadU(f32, scores + i), most[0]);
    if (i < count) most[1] = hn::Max(last_scores(scores + i, count - i), most[1]);
    return hn::GetLane(hn::MaxOfLanes(f32, hn::Max(most[0], most[1])));
}

float sum_of_exponentials(const float* HWY_RESTRICT scores, std::int64_t count, float largest) {
    const Vector shift = hn::Set(f32, largest);
    const Vector rate = hn::Set(f32, log2_e);
    const auto power = [&](Vector score) HWY_ATTR { return power_of_two(f32, hn::Mul(hn::Sub(score, shift), rate)); };
    Vector sums[2] = {hn::Zero(f32), hn::Zero(f32)};
    std::int64_t i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        sums[0] = hn::Add(sums[0], power(hn::LoadU(f32, scores + i)));
        sums[1] = hn::Add(sums[1], power(hn::LoadU(f32, scores + i + lanes)));
    }
    for (; i + lanes <= count; i += lanes) sums[0] = hn::Add(sums[0], power(hn::LoadU(f32, scores + i)));
    if (i < count) sums[1] = hn::Add(sums[1], power(last_scores(scores + i, count - i)));
    return total(hn::Add(sums[0], sums[1]));
}

ExpRow exp_row(const float* HWY_RESTRICT scores, std::int64_t count, std::int64_t label) {
    ExpRow row;
    row.largest = largest_of(scores, count);
    row.own = std::exp(scores[label] - row.largest);
    row.others = sum_of_exponentials(scores, label, row.largest) +
                 sum_of_exponentials(scores + label + 1, count - label - 1, row.largest);
    return row;
}

void exp_times(const float* HWY_RESTRICT scores, std::int64_t count, float largest, float factor,
               float* HWY_RESTRICT diff) {
    const Vector shift = hn::Set(f32, largest);
    const Vector rate = hn::Set(f32, log2_e);
    const Vector factors = hn::Set(f32, factor);
    over(
        count,
        [&](std::int64_t i) HWY_ATTR {
            const Vector below = hn::Sub(hn::LoadU(f32, scores + i), shift);
            hn::StoreU(hn::Mul(power_of_two(f32, hn::Mul(below, rate)), factors), f32, diff + i);
        },
        [&](std::int64_t i) { diff[i] = std::exp(scores[i] - largest) * factor; });
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(norm_row);
HWY_EXPORT(norm_row_gradient);
HWY_EXPORT(add);
HWY_EXPORT(exp_row);
HWY_EXPORT(exp_times);

void layer_norm_row(NormRow& row, float* dst) { HWY_DYNAMIC_DISPATCH(norm_row)(row, dst); }
void layer_norm_row_gradient(const NormRow& row, const float* diff_dst, float* diff_src, float* diff_gamma,
                             float* diff_beta) {
    HWY_DYNAMIC_DISPATCH(norm_row_gradient)(row, diff_dst, diff_src, diff_gamma, diff_beta);
}
void add_row(const float* src, std::int64_t count, float* dst) { HWY_DYNAMIC_DISPATCH(add)(src, count, dst); }
ExpRow exponentials(const float* scores, std::int64_t count, std::int64_t label) {
    return HWY_DYNAMIC_DISPATCH(exp_row)(scores, count, label);
}
void scaled_exponentials(const float* scores, std::int64_t count, float largest, float factor, float* diff) {
    HWY_DYNAMIC_DISPATCH(exp_times)(scores, count, largest, factor, diff);
}

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
