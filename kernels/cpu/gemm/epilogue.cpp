// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/epilogue.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/epilogue.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                             // must come before highway.h

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
constexpr hn::ScalableTag<float> f32;
using Vector = hn::Vec<hn::ScalableTag<float>>;
constexpr std::int64_t lanes = hn::MaxLanes(f32);

// The whole vectors of a run, then its last values one by one: act(tag, position).
template <typename Act>
HWY_INLINE void for_each_vector(std::int64_t count, Act act) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) act(f32, i);
    for (; i < count; ++i) act(hn::CappedTag<float, 1>(), i);
}

void relu_run(float* values, std::int64_t count) {
    for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto v = hn::LoadU(d, values + i);
        hn::StoreU(hn::IfThenElseZero(hn::Gt(v, hn::Zero(d)), v), d, values + i);
    });
}

void mask_run(const float* HWY_RESTRICT diff_dst, const float* HWY_RESTRICT dst, std::int64_t count,
              float* HWY_RESTRICT out) {
    for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto positive = hn::Gt(hn::LoadU(d, dst + i), hn::Zero(d));
        hn::StoreU(hn::IfThenElseZero(positive, hn::LoadU(d, diff_dst + i)), d, out + i);
    });
}

void scale_run(const float* HWY_RESTRICT diff_dst, const float* HWY_RESTRICT slopes, std::int64_t count,
               float* HWY_RESTRICT out) {
    for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
        hn::StoreU(hn::Mul(hn::LoadU(d, diff_dst + i), hn::LoadU(d, slopes + i)), d, out + i);
    });
}

// erf(t) = 1 - (a1 k + a2 k^2 + ... + a5 k^5) exp(-t^2) for t >= 0, k = 1 / (1 + p t); with t = |x| / sqrt 2 the
// exponent is that of the density, too.
void gelu_run(float* HWY_RESTRICT values, float* HWY_RESTRICT slopes, std::int64_t count) {
    for_each_vector(count, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto set = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
        const auto x = hn::LoadU(d, values + i);
        const auto t = hn::Mul(hn::Abs(x), set(1 / std::numbers::sqrt2));
        const auto bell = hn::Exp(d, hn::Neg(hn::Mul(t, t)));
        const auto k = hn::Div(set(1), hn::MulAdd(set(0.3275911), t, set(1)));
        auto poly = hn::MulAdd(set(1.061405429), k, set(-1.453152027));
        poly = hn::MulAdd(poly, k, set(1.421413741));
        poly = hn::MulAdd(poly, k, set(-0.284496736));
        poly = hn::MulAdd(poly, k, set(0.254829592));
        const auto beyond = hn::Mul(hn::Mul(hn::Mul(poly, k), bell), set(0.5));  // the share above |x|
        const auto share = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), beyond, hn::Sub(set(1), beyond));
        const auto density = hn::Mul(bell, set(std::numbers::inv_sqrtpi / std::numbers::sqrt2));
        hn::StoreU(hn::Mul(x, share), d, values + i);
        hn::StoreU(hn::MulAdd(x, density, share), d, slopes + i);
    });
}

template <bool masked>
HWY_INLINE double sum_piece(const float* HWY_RESTRICT values, const float* HWY_RESTRICT dst, std::int64_t count) {
    const auto load = [&](auto d, std::int64_t i) HWY_ATTR {
        const auto v = hn::LoadU(d, values + i);
        if constexpr (!masked) {
            return v;
        } else {
            return hn::IfThenElseZero(hn::Gt(hn::LoadU(d, dst + i), hn::Zero(d)), v);
        }
    };
    Vector sums[4] = {hn::Zero(f32), hn::Zero(f32), hn::Zero(f32), hn::Zero(f32)};
    std::int64_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
        for (std::int64_t j = 0; j < 4; ++j) sums[j] = hn::Add(sums[j], load(f32, i + j * lanes));
    }
    for (; i + lanes <= count; i += lanes) sums[0] = hn::Add(sums[0], load(f32, i));
    const Vector all = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
    double sum = hn::GetLane(hn::SumOfLanes(f32, all));
    for (; i < count; ++i) sum += hn::GetLane(load(hn::CappedTag<float, 1>(), i));
    return sum;
}

double sum_run(const float* values, const float* dst, std::int64_t count) {
    constexpr std::int64_t piece = 256 * 4 * lanes;
    double sum = 0;
    for (std::int64_t i = 0; i < count; i += piece) {
        const std::int64_t now = std::min(piece, count - i);
        sum += dst == nullptr ? sum_piece<false>(values + i, dst, now) : sum_piece<true>(values + i, dst + i, now);
    }
    return sum;
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(relu_run);
HWY_EXPORT(gelu_run);
HWY_EXPORT(mask_run);
HWY_EXPORT(scale_run);
HWY_EXPORT(sum_run);

void apply_relu(float* values, std::int64_t count) { HWY_DYNAMIC_DISPATCH(relu_run)(values, count); }
void apply_gelu(float* values, float* slopes, std::int64_t count) {
    HWY_DYNAMIC_DISPATCH(gelu_run)(values, slopes, count);
}
void mask(const float* diff_dst, const float* dst, std::int64_t count, float* out) {
    HWY_DYNAMIC_DISPATCH(mask_run)(diff_dst, dst, count, out);
}
void scale(const float* diff_dst, const float* slopes, std::int64_t count, float* out) {
    HWY_DYNAMIC_DISPATCH(scale_run)(diff_dst, slopes, count, out);
}
double sum(const float* values, const float* dst, std::int64_t count) {
    return HWY_DYNAMIC_DISPATCH(sum_run)(values, dst, count);
}

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
