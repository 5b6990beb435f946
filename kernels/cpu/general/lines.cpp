// SPDX-License-Identifier: Apache-2.0
// Sums in double, lane by lane; four of them where a line has one result, so that additions need not wait for each
// other.
#include "kernels/cpu/general/lines.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/general/lines.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                             // must come before highway.h

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

template <Fold f>
constexpr bool reads_other = f == Fold::equal || f == Fold::exponentials;
template <Fold f>
constexpr double nothing_yet = f == Fold::most    ? -std::numeric_limits<double>::infinity()
                               : f == Fold::least ? std::numeric_limits<double>::infinity()
                                                  : 0.0;

template <Fold f>
HWY_INLINE Doubles folded(Doubles result, Doubles x, Doubles other) {
    if constexpr (f == Fold::sum) return hn::Add(result, x);
    if constexpr (f == Fold::absolute) return hn::Add(result, hn::Abs(x));
    if constexpr (f == Fold::squares) return hn::MulAdd(x, x, result);
    if constexpr (f == Fold::most) return hn::Max(x, result);
    if constexpr (f == Fold::least) return hn::Min(x, result);
    if constexpr (f == Fold::equal) return hn::Add(result, hn::IfThenElseZero(hn::Eq(x, other), hn::Set(f64, 1.0)));
    if constexpr (f == Fold::exponentials) return hn::Add(result, hn::Exp(f64, hn::Sub(x, other)));
}
template <Fold f>
double folded_one(double result, double x, double other) {
    if constexpr (f == Fold::sum) return result + x;
    if constexpr (f == Fold::absolute) return result + std::abs(x);
    if constexpr (f == Fold::squares) return result + x * x;
    if constexpr (f == Fold::most) return x > result ? x : result;
    if constexpr (f == Fold::least) return x < result ? x : result;
    if constexpr (f == Fold::equal) return result + (x == other ? 1 : 0);
    if constexpr (f == Fold::exponentials) return result + std::exp(x - other);
}
// Of two results.
template <Fold f>
HWY_INLINE Doubles joined(Doubles a, Doubles b) {
    if constexpr (f == Fold::most || f == Fold::least) return folded<f>(a, b, b);
    return hn::Add(a, b);
}
template <Fold f>
double all_lanes(Doubles results) {
    if constexpr (f == Fold::most) return hn::GetLane(hn::MaxOfLanes(f64, results));
    if constexpr (f == Fold::least) return hn::GetLane(hn::MinOfLanes(f64, results));
    return hn::GetLane(hn::SumOfLanes(f64, results));
}

template <Fold f>
void fold_apart(const float* HWY_RESTRICT src, std::int64_t size, const float* HWY_RESTRICT other,
                double* HWY_RESTRICT results) {
    std::int64_t i = 0;
    for (; i + wide <= size; i += wide) {
        const Doubles x = promoted(src + i);
        Doubles of = x;
        if constexpr (reads_other<f>) of = promoted(other + i);
        hn::StoreU(folded<f>(hn::LoadU(f64, results + i), x, of), f64, results + i);
    }
    for (; i < size; ++i) results[i] = folded_one<f>(results[i], src[i], reads_other<f> ? other[i] : 0);
}

template <Fold f>
double fold_to_one(const float* HWY_RESTRICT src, std::int64_t size, double other, double result) {
    constexpr std::int64_t several = 4;
    const Doubles of = hn::Set(f64, other);
    Doubles first = hn::Set(f64, nothing_yet<f>), second = first, third = first, fourth = first;
    std::int64_t i = 0;
    for (; i + several * wide <= size; i += several * wide) {
        first = folded<f>(first, promoted(src + i), of);
        second = folded<f>(second, promoted(src + i + wide), of);
        third = folded<f>(third, promoted(src + i + 2 * wide), of);
        fourth = folded<f>(fourth, promoted(src + i + 3 * wide), of);
    }
    for (; i + wide <= size; i += wide) first = folded<f>(first, promoted(src + i), of);
    if (i > 0) {
        const double lines = all_lanes<f>(joined<f>(joined<f>(first, second), joined<f>(third, fourth)));
        result = f == Fold::most    ? std::max(result, lines)
                 : f == Fold::least ? std::min(result, lines)
                                    : result + lines;
    }
    for (; i < size; ++i) result = folded_one<f>(result, src[i], other);
    return result;
}

template <Fold f>
void fold_all(const Lines& lines, const float* src, const float* other, double* results) {
    for (std::int64_t line = 0; line < lines.count; ++line, src += lines.size) {
        const std::int64_t to = lines.targets[line];
        const float* const of = reads_other<f> ? other + to : nullptr;
        if (lines.apart) {
            fold_apart<f>(src, lines.size, of, results + to);
        } else {
            results[to] = fold_to_one<f>(src, lines.size, reads_other<f> ? *of : 0, results[to]);
        }
    }
}

void fold_any(Fold fold, const Lines& lines, const float* src, const float* other, double* results) {
    switch (fold) {
        case Fold::sum:
            return fold_all<Fold::sum>(lines, src, other, results);
        case Fold::absolute:
            return fold_all<Fold::absolute>(lines, src, other, results);
        case Fold::squares:
            return fold_all<Fold::squares>(lines, src, other, results);
        case Fold::most:
            return fold_all<Fold::most>(lines, src, other, results);
        case Fold::least:
            return fold_all<Fold::least>(lines, src, other, results);
        case Fold::equal:
            return fold_all<Fold::equal>(lines, src, other, results);
        case Fold::exponentials:
            return fold_all<Fold::exponentials>(lines, src, other, results);
    }
}

template <Spread s>
HWY_INLINE Vector spread_one(Vector x, Vector factor, Vector other) {
    if constexpr (s == Spread::sign) {
        const Vector signed_factor = hn::Xor(factor, hn::And(hn::Set(f32, -0.0F), x));
        return hn::IfThenZeroElse(hn::Eq(x, hn::Zero(f32)), signed_factor);
    }
    if constexpr (s == Spread::times) return hn::Mul(x, factor);
    if constexpr (s == Spread::equal) return hn::IfThenElseZero(hn::Eq(x, other), factor);
    if constexpr (s == Spread::exponential) return hn::Mul(hn::Exp(f32, hn::Sub(x, other)), factor);
    return factor;
}

// `own` of a vector's numbers, the rest 0.
HWY_INLINE Vector some(const float* from, std::int64_t own) {
    float room[static_cast<std::size_t>(lanes)] = {};
    std::copy_n(from, own, room);
    return hn::LoadU(f32, room);
}

template <Spread s>
void spread_all(const Lines& lines, const float* src, const float* factor, const float* other, float* diff) {
    constexpr bool reads = s != Spread::alike, compares = s == Spread::equal || s == Spread::exponential;
    const std::int64_t size = lines.size;
    for (std::int64_t line = 0; line < lines.count; ++line, diff += size) {
        const float* const x = reads ? src + line * size : nullptr;
        const float* const f = factor + lines.targets[line];
        const float* const o = compares ? other + lines.targets[line] : nullptr;
        const Vector one = hn::Set(f32, *f), one_other = compares ? hn::Set(f32, *o) : one;
        std::int64_t i = 0;
        for (; i + lanes <= size; i += lanes) {
            const Vector factors = lines.apart ? hn::LoadU(f32, f + i) : one;
            const Vector others = compares && lines.apart ? hn::LoadU(f32, o + i) : one_other;
            hn::StoreU(spread_one<s>(reads ? hn::LoadU(f32, x + i) : one, factors, others), f32, diff + i);
        }
        const std::int64_t own = size - i;
        if (own == 0) continue;
        const Vector factors = lines.apart ? some(f + i, own) : one;
        const Vector others = compares && lines.apart ? some(o + i, own) : one_other;
        float rest[static_cast<std::size_t>(lanes)];
        hn::StoreU(spread_one<s>(reads ? some(x + i, own) : one, factors, others), f32, rest);
        std::copy_n(rest, own, diff + i);
    }
}

void spread_any(Spread spread, const Lines& lines, const float* src, const float* factor, const float* other,
                float* diff) {
    switch (spread) {
        case Spread::alike:
            return spread_all<Spread::alike>(lines, src, factor, other, diff);
        case Spread::sign:
            return spread_all<Spread::sign>(lines, src, factor, other, diff);
        case Spread::times:
            return spread_all<Spread::times>(lines, src, factor, other, diff);
        case Spread::equal:
            return spread_all<Spread::equal>(lines, src, factor, other, diff);
        case Spread::exponential:
            return spread_all<Spread::exponential>(lines, src, factor, other, diff);
    }
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(fold_any);
HWY_EXPORT(spread_any);

void fold_lines(Fold fold, const Lines& lines, const float* src, const float* other, double* results) {
    HWY_DYNAMIC_DISPATCH(fold_any)(fold, lines, src, other, results);
}
void spread_lines(Spread spread, const Lines& lines, const float* src, const float* factor, const float* other,
                  float* diff) {
    HWY_DYNAMIC_DISPATCH(spread_any)(spread, lines, src, factor, other, diff);
}

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
