// SPDX-License-Identifier: Apache-2.0
// Sums are kept in four vectors, which hides the latency of an addition, for at most 256 rounds, then in double.
#include "kernels/cpu/rows/batchnorm_simd.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/batchnorm_simd.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                                   // must come before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
constexpr hn::ScalableTag<float> f32;
constexpr hn::CappedTag<float, 1> one;
using Vector = hn::Vec<hn::ScalableTag<float>>;
constexpr std::int64_t lanes = hn::MaxLanes(f32);
constexpr std::int64_t sums_at_once = 4;
constexpr std::int64_t piece = 256 * sums_at_once * lanes;

// Two sums of one run: add(tag, position, first, second) adds a vector's terms.
template <typename AddTerms>
HWY_INLINE void sum_up(std::int64_t count, TwoSums& sums, AddTerms add) {
    for (std::int64_t begin = 0; begin < count; begin += piece) {
        const std::int64_t end = std::min(count, begin + piece);
        Vector first[sums_at_once], second[sums_at_once];
        for (std::int64_t j = 0; j < sums_at_once; ++j) first[j] = second[j] = hn::Zero(f32);
        std::int64_t i = begin;
        for (; i + sums_at_once * lanes <= end; i += sums_at_once * lanes) {
            for (std::int64_t j = 0; j < sums_at_once; ++j) add(f32, i + j * lanes, first[j], second[j]);
        }
        for (; i + lanes <= end; i += lanes) add(f32, i, first[0], second[0]);
        auto rest_first = hn::Zero(one), rest_second = hn::Zero(one);
        for (; i < end; ++i) add(one, i, rest_first, rest_second);
        const auto total = [](const Vector* v) HWY_ATTR {
            return hn::GetLane(hn::SumOfLanes(f32, hn::Add(hn::Add(v[0], v[1]), hn::Add(v[2], v[3]))));
        };
        sums.first += static_cast<double>(total(first)) + hn::GetLane(rest_first);
        sums.second += static_cast<double>(total(second)) + hn::GetLane(rest_second);
    }
}

// The whole vectors of a run, then its last values one by one: act(tag, position).
template <typename Act>
HWY_INLINE void for_each_vector(std::int64_t count, Act act) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) act(f32, i);
    for (; i < count; ++i) act(one, i);
}

void add_distances(const float* HWY_RESTRICT x, std::int64_t count, float shift, TwoSums& sums) {
    sum_up(count, sums, [&](auto d, std::int64_t i, auto& first, auto& second) HWY_ATTR {
        const auto distance = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, shift));
        first = hn::Add(first, distance);
        second = hn::MulAdd(distance, distance, second);
    });
}

template <bool add, bool relu>
void normalize_run(const float* HWY_RESTRICT x, const float* HWY_RESTRICT shortcut, float* HWY_RESTRICT y,
                   std::int64_t count, float mean, float scale, float shift) {
    for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto distance = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
        auto result = hn::MulAdd(distance, hn::Set(d, scale), hn::Set(d, shift));
        if constexpr (add) result = hn::Add(result, hn::LoadU(d, shortcut + i));
        if constexpr (relu) result = hn::IfThenElseZero(hn::Gt(result, hn::Zero(d)), result);
        hn::StoreU(result, d, y + i);
    });
}

void normalize(const float* x, const float* shortcut, float* y, std::int64_t count, float mean, float scale,
               float shift, bool relu) {
    const auto run = shortcut != nullptr ? (relu ? normalize_run<true, true> : normalize_run<true, false>)
                                         : (relu ? normalize_run<false, true> : normalize_run<false, false>);
    run(x, shortcut, y, count, mean, scale, shift);
}

template <bool relu, typename Tag>
HWY_INLINE auto load_diff(Tag d, const float* diff, const float* y, std::int64_t i) {
    const auto g = hn::LoadU(d, diff + i);
    if constexpr (!relu) {
        return g;
    } else {
        return hn::IfThenElseZero(hn::Gt(hn::LoadU(d, y + i), hn::Zero(d)), g);
    }
}

template <bool relu, bool keeps>
void add_gradients_run(const float* HWY_RESTRICT x, const float* HWY_RESTRICT diff, const float* HWY_RESTRICT y,
                       float* HWY_RESTRICT keep, std::int64_t count, float mean, TwoSums& sums) {
    sum_up(count, sums, [&](auto d, std::int64_t i, auto& first, auto& second) HWY_ATTR {
        const auto g = load_diff<relu>(d, diff, y, i);
        if constexpr (keeps) hn::StoreU(g, d, keep + i);
        first = hn::Add(first, g);
        second = hn::MulAdd(g, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean)), second);
    });
}

void add_gradients(const float* x, const float* diff, const float* y, float* keep, std::int64_t count, float mean,
                   TwoSums& sums) {
    const auto run = keep != nullptr
                         ? (y != nullptr ? add_gradients_run<true, true> : add_gradients_run<false, true>)
                         : (y != nullptr ? add_gradients_run<true, false> : add_gradients_run<false, false>);
    run(x, diff, y, keep, count, mean, sums);
}

template <bool relu>
void gradient_run(const float* HWY_RESTRICT x, const float* HWY_RESTRICT diff, const float* HWY_RESTRICT y,
                  float* HWY_RESTRICT diff_x, std::int64_t count, float mean, float scale, float offset, float slope) {
    for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto distance = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
        const auto rest = hn::Sub(load_diff<relu>(d, diff, y, i), hn::Set(d, offset));
        const auto result = hn::NegMulAdd(distance, hn::Set(d, slope), rest);
        hn::StoreU(hn::Mul(result, hn::Set(d, scale)), d, diff_x + i);
    });
}

void gradient(const float* x, const float* diff, const float* y, float* diff_x, std::int64_t count, float mean,
              float scale, float offset, float slope) {
    (y != nullptr ? gradient_run<true> : gradient_run<false>)(x, diff, y, diff_x, count, mean, scale, offset, slope);
}

const BatchNormSimd* table() {
    static constexpr BatchNormSimd simd{add_distances, normalize, add_gradients, gradient};
    return &simd;
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(table);
const BatchNormSimd& batchnorm_simd() { return *HWY_DYNAMIC_DISPATCH(table)(); }

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
