// SPDX-License-Identifier: Apache-2.0
// Sums in double, lane by lane. Exponentials are Highway's, 4 ulp at most; what is not a number stays so.
#include "kernels/cpu/general/sets_simd.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/general/sets_simd.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                                 // must come before highway.h

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/over_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr hn::ScalableTag<double> f64;
using Doubles = hn::Vec<hn::ScalableTag<double>>;
constexpr std::int64_t wide = hn::MaxLanes(f64);

HWY_INLINE Doubles promoted(const float* from) {
    return hn::PromoteTo(f64, hn::LoadU(hn::Rebind<float, hn::ScalableTag<double>>(), from));
}
HWY_INLINE double total(Doubles v) { return hn::GetLane(hn::SumOfLanes(f64, v)); }

// Highway's own is 0 of what is not a number.
HWY_INLINE Vector exponential(Vector x) { return hn::IfThenElse(hn::Eq(x, x), hn::Exp(f32, x), x); }

// A vector of numbers, of which `own` are read and the others are `rest`.
HWY_INLINE Vector some(const float* from, std::int64_t own, float rest) {
    float room[static_cast<std::size_t>(lanes)];
    std::fill_n(room, lanes, rest);
    std::copy_n(from, own, room);
    return hn::LoadU(f32, room);
}
HWY_INLINE void store_some(Vector v, std::int64_t own, float* to) {
    float room[static_cast<std::size_t>(lanes)];
    hn::StoreU(v, f32, room);
    std::copy_n(room, own, to);
}

// to = act(from) of every element. The last ones are a vector that overlaps the one before, computed before `to` is
// written, which may be `from`; of fewer elements than a vector it is filled up with `rest`.
template <typename Act>
HWY_INLINE void each(const float* from, std::int64_t count, float rest, float* to, Act act) {
    if (count < lanes) return store_some(act(some(from, count, rest)), count, to);
    const Vector last = act(hn::LoadU(f32, from + count - lanes));
    for (std::int64_t i = 0; i + lanes <= count; i += lanes) hn::StoreU(act(hn::LoadU(f32, from + i)), f32, to + i);
    hn::StoreU(last, f32, to + count - lanes);
}

double sum_of(const float* from, std::int64_t count) {
    Doubles first = hn::Zero(f64), second = first;
    std::int64_t i = 0;
    for (; i + 2 * wide <= count; i += 2 * wide) {
        first = hn::Add(first, promoted(from + i));
        second = hn::Add(second, promoted(from + i + wide));
    }
    double sum = total(hn::Add(first, second));
    for (; i < count; ++i) sum += from[i];
    return sum;
}

double product_sum(const float* a, const float* b, std::int64_t count) {
    Doubles first = hn::Zero(f64), second = first;
    std::int64_t i = 0;
    for (; i + 2 * wide <= count; i += 2 * wide) {
        first = hn::MulAdd(promoted(a + i), promoted(b + i), first);
        second = hn::MulAdd(promoted(a + i + wide), promoted(b + i + wide), second);
    }
    double sum = total(hn::Add(first, second));
    for (; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
}

float largest(const float* from, std::int64_t count) {
    constexpr float least = -std::numeric_limits<float>::infinity();
    Vector first = hn::Set(f32, least), second = first;
    std::int64_t i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
        first = hn::Max(hn::LoadU(f32, from + i), first);
        second = hn::Max(hn::LoadU(f32, from + i + lanes), second);
    }
    for (; i + lanes <= count; i += lanes) first = hn::Max(hn::LoadU(f32, from + i), first);
    if (i < count) second = hn::Max(some(from + i, count - i, least), second);
    return hn::GetLane(hn::MaxOfLanes(f32, hn::Max(first, second)));
}

void one_softmax(std::int64_t count, bool log, const float* src, float* dst) {
    constexpr float least = -std::numeric_limits<float>::infinity();
    const float most = largest(src, count);
    const Vector shift = hn::Set(f32, most);
    each(src, count, least, dst, [&](Vector x) HWY_ATTR { return exponential(hn::Sub(x, shift)); });
    const double sum = sum_of(dst, count);
    if (log) {
        const Vector log_sum = hn::Set(f32, static_cast<float>(std::log(sum)));
        each(src, count, 0, dst, [&](Vector x) HWY_ATTR { return hn::Sub(hn::Sub(x, shift), log_sum); });
    } else {
        const Vector over = hn::Set(f32, static_cast<float>(1 / sum));
        each(dst, count, 0, dst, [&](Vector x) HWY_ATTR { return hn::Mul(x, over); });
    }
}

void one_gradient(std::int64_t count, bool log, const float* dst, const float* g, float* diff) {
    const Vector all = hn::Set(f32, static_cast<float>(log ? sum_of(g, count) : product_sum(g, dst, count)));
    const auto act = [&](Vector y, Vector d)
                         HWY_ATTR { return log ? hn::NegMulAdd(exponential(y), all, d) : hn::Mul(y, hn::Sub(d, all)); };
    if (count < lanes) return store_some(act(some(dst, count, 0), some(g, count, 0)), count, diff);
    const std::int64_t end = count - lanes;
    const Vector last = act(hn::LoadU(f32, dst + end), hn::LoadU(f32, g + end));
    for (std::int64_t i = 0; i <= end; i += lanes)
        hn::StoreU(act(hn::LoadU(f32, dst + i), hn::LoadU(f32, g + i)), f32, diff + i);
    hn::StoreU(last, f32, diff + end);
}

// A softmax a lane. Of fewer than a vector's, load and store see to what is not there.
template <typename Load, typename Store>
HWY_INLINE void softmax_by_lane(const SoftmaxLines& lines, const float* src, float* dst, Load load, Store store) {
    const std::int64_t end = lines.along * lines.stride;
    Vector most = load(src);
    for (std::int64_t i = lines.stride; i < end; i += lines.stride) most = hn::Max(load(src + i), most);
    double sums[static_cast<std::size_t>(lanes)] = {};
    for (std::int64_t i = 0; i < end; i += lines.stride) {
        float room[static_cast<std::size_t>(lanes)];
        const Vector e = exponential(hn::Sub(load(src + i), most));
        if (!lines.log) store(e, dst + i);
        hn::StoreU(e, f32, room);
        for (std::int64_t k = 0; k < lanes; k += wide)
            hn::StoreU(hn::Add(hn::LoadU(f64, sums + k), promoted(room + k)), f64, sums + k);
    }
    float factors[static_cast<std::size_t>(lanes)];
    for (std::int64_t k = 0; k < lanes; ++k)
        factors[k] = static_cast<float>(lines.log ? std::log(sums[k]) : 1 / sums[k]);
    const Vector factor = hn::LoadU(f32, factors);
    for (std::int64_t i = 0; i < end; i += lines.stride)
        store(lines.log ? hn::Sub(hn::Sub(load(src + i), most), factor) : hn::Mul(load(dst + i), factor), dst + i);
}

template <typename Load, typename Store>
HWY_INLINE void gradient_by_lane(const SoftmaxLines& lines, const float* dst, const float* g, float* diff, Load load,
                                 Store store) {
    const std::int64_t end = lines.along * lines.stride;
    double sums[static_cast<std::size_t>(lanes)] = {};
    for (std::int64_t i = 0; i < end; i += lines.stride) {
        float of_g[static_cast<std::size_t>(lanes)], of_dst[static_cast<std::size_t>(lanes)];
        hn::StoreU(load(g + i), f32, of_g);
        hn::StoreU(lines.log ? hn::Set(f32, 1.0F) : load(dst + i), f32, of_dst);
        for (std::int64_t k = 0; k < lanes; k += wide)
            hn::StoreU(hn::MulAdd(promoted(of_g + k), promoted(of_dst + k), hn::LoadU(f64, sums + k)), f64, sums + k);
    }
    float all[static_cast<std::size_t>(lanes)];
    for (std::int64_t k = 0; k < lanes; ++k) all[k] = static_cast<float>(sums[k]);
    const Vector sum = hn::LoadU(f32, all);
    for (std::int64_t i = 0; i < end; i += lines.stride) {
        const Vector y = load(dst + i), d = load(g + i);
        store(lines.log ? hn::NegMulAdd(exponential(y), sum, d) : hn::Mul(y, hn::Sub(d, sum)), diff + i);
    }
}

// act(first line, load, store) of a vector's lines at a time.
template <typename Act>
HWY_INLINE void by_lanes(std::int64_t count, Act act) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        act(
            i, [](const float* from) HWY_ATTR { return hn::LoadU(f32, from); },
            [](Vector v, float* to) HWY_ATTR { hn::StoreU(v, f32, to); });
    }
    const std::int64_t own = count - i;
    if (own == 0) return;
    act(
        i, [own](const float* from) HWY_ATTR { return some(from, own, 0); },
        [own](Vector v, float* to) HWY_ATTR { store_some(v, own, to); });
}

void softmaxes(const SoftmaxLines& lines, const float* src, float* dst) {
    if (lines.stride == 1) return one_softmax(lines.along, lines.log, src, dst);
    by_lanes(lines.count, [&](std::int64_t i, auto load, auto store)
                              HWY_ATTR { softmax_by_lane(lines, src + i, dst + i, load, store); });
}

void softmax_gradients(const SoftmaxLines& lines, const float* dst, const float* g, float* diff) {
    if (lines.stride == 1) return one_gradient(lines.along, lines.log, dst, g, diff);
    by_lanes(lines.count, [&](std::int64_t i, auto load, auto store)
                              HWY_ATTR { gradient_by_lane(lines, dst + i, g + i, diff + i, load, store); });
}

SetMoments moments_of(const float* src, std::int64_t size, bool centred, double epsilon) {
    const double mean = centred ? sum_of(src, size) / static_cast<double>(size) : 0;
    const Doubles means = hn::Set(f64, mean);
    Doubles first = hn::Zero(f64), second = first;
    std::int64_t i = 0;
    for (; i + 2 * wide <= size; i += 2 * wide) {
        const Doubles a = hn::Sub(promoted(src + i), means), b = hn::Sub(promoted(src + i + wide), means);
        first = hn::MulAdd(a, a, first);
        second = hn::MulAdd(b, b, second);
    }
    double squares = total(hn::Add(first, second));
    for (; i < size; ++i) squares += (src[i] - mean) * (src[i] - mean);
    return {static_cast<float>(mean), static_cast<float>(1 / std::sqrt(squares / static_cast<double>(size) + epsilon))};
}

HWY_INLINE Vector weights_at(const float* weights, std::int64_t step, std::int64_t i) {
    return step == 0 ? hn::Set(f32, *weights) : hn::LoadU(f32, weights + i);
}

void scale(const SetRun& run, SetMoments moments, float* HWY_RESTRICT dst) {
    const Vector mean = hn::Set(f32, moments.mean), over_all = hn::Set(f32, moments.over);
    over(
        run.count,
        [&](std::int64_t i) HWY_ATTR {
            const Vector normal = hn::Mul(hn::Sub(hn::LoadU(f32, run.src + i), mean), over_all);
            hn::StoreU(
                hn::MulAdd(normal, weights_at(run.gamma, run.gamma_step, i), weights_at(run.beta, run.beta_step, i)),
                f32, dst + i);
        },
        [&](std::int64_t i) {
            dst[i] = (run.src[i] - moments.mean) * moments.over * run.gamma[i * run.gamma_step] +
                     run.beta[i * run.beta_step];
        });
}

// One each, or one for all.
HWY_INLINE void add_to(double* sums, std::int64_t step, std::int64_t i, Doubles values, Doubles& of_all) {
    if (sums == nullptr) return;
    if (step == 0) {
        of_all = hn::Add(of_all, values);
    } else {
        hn::StoreU(hn::Add(hn::LoadU(f64, sums + i), values), f64, sums + i);
    }
}

SetSums sums_of(const SetRun& run, SetMoments moments, const float* HWY_RESTRICT g, double* diff_gamma,
                double* diff_beta) {
    const Doubles mean = hn::Set(f64, moments.mean), over_all = hn::Set(f64, moments.over);
    Doubles h_sum = hn::Zero(f64), hx_sum = h_sum, of_gamma = h_sum, of_beta = h_sum;
    std::int64_t i = 0;
    for (; i + wide <= run.count; i += wide) {
        const Doubles d = promoted(g + i), normal = hn::Mul(hn::Sub(promoted(run.src + i), mean), over_all);
        const Doubles gamma = run.gamma_step == 0 ? hn::Set(f64, *run.gamma) : promoted(run.gamma + i);
        const Doubles h = hn::Mul(d, gamma);
        h_sum = hn::Add(h_sum, h);
        hx_sum = hn::MulAdd(h, normal, hx_sum);
        add_to(diff_gamma, run.gamma_step, i, hn::Mul(d, normal), of_gamma);
        add_to(diff_beta, run.beta_step, i, d, of_beta);
    }
    SetSums sums{total(h_sum), total(hx_sum)};
    if (diff_gamma != nullptr && run.gamma_step == 0) *diff_gamma += total(of_gamma);
    if (diff_beta != nullptr && run.beta_step == 0) *diff_beta += total(of_beta);
    for (; i < run.count; ++i) {
        const double normal = (static_cast<double>(run.src[i]) - moments.mean) * moments.over;
        const double h = static_cast<double>(g[i]) * run.gamma[i * run.gamma_step];
        sums.h += h;
        sums.hx += h * normal;
        if (diff_gamma != nullptr) diff_gamma[i * run.gamma_step] += g[i] * normal;
        if (diff_beta != nullptr) diff_beta[i * run.beta_step] += g[i];
    }
    return sums;
}

void gradient(const SetRun& run, SetMoments moments, const float* HWY_RESTRICT g, float mean_h, float mean_hx,
              float* HWY_RESTRICT diff) {
    const Vector mean = hn::Set(f32, moments.mean), over_all = hn::Set(f32, moments.over);
    const Vector all_h = hn::Set(f32, mean_h), all_hx = hn::Set(f32, mean_hx);
    over(
        run.count,
        [&](std::int64_t i) HWY_ATTR {
            const Vector normal = hn::Mul(hn::Sub(hn::LoadU(f32, run.src + i), mean), over_all);
            const Vector h = hn::Mul(hn::LoadU(f32, g + i), weights_at(run.gamma, run.gamma_step, i));
            hn::StoreU(hn::Mul(hn::NegMulAdd(normal, all_hx, hn::Sub(h, all_h)), over_all), f32, diff + i);
        },
        [&](std::int64_t i) {
            const float normal = (run.src[i] - moments.mean) * moments.over;
            diff[i] = (g[i] * run.gamma[i * run.gamma_step] - mean_h - normal * mean_hx) * moments.over;
        });
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(softmaxes);
HWY_EXPORT(softmax_gradients);
HWY_EXPORT(moments_of);
HWY_EXPORT(scale);
HWY_EXPORT(sums_of);
HWY_EXPORT(gradient);

void softmax_lines(const SoftmaxLines& lines, const float* src, float* dst) {
    HWY_DYNAMIC_DISPATCH(softmaxes)(lines, src, dst);
}
void softmax_lines_gradient(const SoftmaxLines& lines, const float* dst, const float* g, float* diff_src) {
    HWY_DYNAMIC_DISPATCH(softmax_gradients)(lines, dst, g, diff_src);
}
SetMoments set_moments(const float* src, std::int64_t size, bool centred, double epsilon) {
    return HWY_DYNAMIC_DISPATCH(moments_of)(src, size, centred, epsilon);
}
void scale_run(const SetRun& run, SetMoments moments, float* dst) { HWY_DYNAMIC_DISPATCH(scale)(run, moments, dst); }
SetSums sum_run(const SetRun& run, SetMoments moments, const float* g, double* diff_gamma, double* diff_beta) {
    return HWY_DYNAMIC_DISPATCH(sums_of)(run, moments, g, diff_gamma, diff_beta);
}
void run_gradient(const SetRun& run, SetMoments moments, const float* g, float mean_h, float mean_hx, float* diff_src) {
    HWY_DYNAMIC_DISPATCH(gradient)(run, moments, g, mean_h, mean_hx, diff_src);
}

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
