// SPDX-License-Identifier: Apache-2.0
// Highway's exponentials, 4 ulp at most; what is not a number stays so, which Highway's own exponential does not see
// to.
#include "kernels/cpu/general/curves.hpp"

#include <algorithm>
#include <array>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/general/curves.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                              // must come before highway.h

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"
#include "kernels/cpu/over_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

using general::Function;

HWY_INLINE Vector number(double value) { return hn::Set(f32, static_cast<float>(value)); }

// Beyond 100 it is infinite as well, and Highway's own says anything.
HWY_INLINE Vector bounded(Vector x) { return hn::Min(x, number(100)); }
HWY_INLINE Vector exponential(Vector x) { return hn::Exp(f32, bounded(x)); }
HWY_INLINE Vector less_one(Vector x) { return hn::Expm1(f32, bounded(x)); }
HWY_INLINE Vector logistic(Vector x) { return hn::Div(number(1), hn::Add(number(1), exponential(hn::Neg(x)))); }
HWY_INLINE Vector log_of_one_and_exp(Vector x) {
    return hn::Add(hn::Max(x, hn::Zero(f32)), hn::Log1p(f32, exponential(hn::Neg(hn::Abs(x)))));
}
HWY_INLINE Vector gelu_inner(Vector x) {
    const Vector cubic = hn::MulAdd(hn::Mul(number(general::gelu_cubic), hn::Mul(x, x)), x, x);
    return hn::Mul(number(std::numbers::sqrt2 * std::numbers::inv_sqrtpi), cubic);
}

struct Numbers {
    Vector first, second;
};

template <Function f>
HWY_INLINE Vector value(Vector x, const Numbers& numbers) {
    using enum Function;
    const auto above = hn::Gt(x, hn::Zero(f32));
    if constexpr (f == exp) return exponential(x);
    if constexpr (f == sigmoid) return logistic(x);
    if constexpr (f == tanh) return hn::Tanh(f32, x);
    if constexpr (f == softplus) return log_of_one_and_exp(x);
    if constexpr (f == elu) return hn::IfThenElse(above, x, hn::Mul(numbers.first, less_one(x)));
    if constexpr (f == selu)
        return hn::Mul(numbers.second, hn::IfThenElse(above, x, hn::Mul(numbers.first, less_one(x))));
    if constexpr (f == celu)
        return hn::IfThenElse(above, x, hn::Mul(numbers.first, less_one(hn::Div(x, numbers.first))));
    if constexpr (f == silu) return hn::Mul(x, logistic(x));
    if constexpr (f == quickgelu) return hn::Mul(x, logistic(hn::Mul(number(general::gelu_quick), x)));
    if constexpr (f == gelutanh)
        return hn::Mul(hn::Mul(number(0.5), x), hn::Add(number(1), hn::Tanh(f32, gelu_inner(x))));
    if constexpr (f == mish) return hn::Mul(x, hn::Tanh(f32, log_of_one_and_exp(x)));
    return x;
}

template <Function f>
HWY_INLINE Vector slope(Vector x, const Numbers& numbers) {
    using enum Function;
    const auto above = hn::Gt(x, hn::Zero(f32));
    const Vector one = number(1);
    if constexpr (f == exp) return exponential(x);
    if constexpr (f == sigmoid) {
        const Vector s = logistic(x);
        return hn::Mul(s, hn::Sub(one, s));
    }
    if constexpr (f == tanh) {
        const Vector t = hn::Tanh(f32, x);
        return hn::NegMulAdd(t, t, one);
    }
    if constexpr (f == softplus) return logistic(x);
    if constexpr (f == elu) return hn::IfThenElse(above, one, hn::Mul(numbers.first, exponential(x)));
    if constexpr (f == selu)
        return hn::Mul(numbers.second, hn::IfThenElse(above, one, hn::Mul(numbers.first, exponential(x))));
    if constexpr (f == celu) return hn::IfThenElse(above, one, exponential(hn::Div(x, numbers.first)));
    if constexpr (f == silu || f == quickgelu) {
        const Vector by = number(f == silu ? 1 : general::gelu_quick);
        const Vector inner = hn::Mul(by, x), s = logistic(inner);
        return hn::Mul(s, hn::MulAdd(inner, hn::Sub(one, s), one));
    }
    if constexpr (f == gelutanh) {
        const Vector t = hn::Tanh(f32, gelu_inner(x));
        const Vector inner = hn::Mul(number(std::numbers::sqrt2 * std::numbers::inv_sqrtpi),
                                     hn::MulAdd(number(3 * general::gelu_cubic), hn::Mul(x, x), one));
        const Vector bent = hn::Mul(hn::Mul(x, hn::NegMulAdd(t, t, one)), inner);
        return hn::Mul(number(0.5), hn::Add(hn::Add(one, t), bent));
    }
    if constexpr (f == mish) {
        const Vector t = hn::Tanh(f32, log_of_one_and_exp(x));
        return hn::MulAdd(hn::Mul(x, hn::NegMulAdd(t, t, one)), logistic(x), t);
    }
    return one;
}

HWY_INLINE Vector or_no_number(Vector x, Vector result) { return hn::IfThenElse(hn::Eq(x, x), result, x); }

// at(i, what is loaded from, what is stored to) of whole vectors, and of a vector of its own for what is left.
template <typename At>
HWY_INLINE void whole_vectors(const float* a, const float* b, std::int64_t count, float* to, At at) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(at(hn::LoadU(f32, a + i), hn::LoadU(f32, b + i)), f32, to + i);
    if (i == count) return;
    float rest[3][static_cast<std::size_t>(lanes)] = {};
    std::copy(a + i, a + count, rest[0]);
    std::copy(b + i, b + count, rest[1]);
    hn::StoreU(at(hn::LoadU(f32, rest[0]), hn::LoadU(f32, rest[1])), f32, rest[2]);
    std::copy_n(rest[2], count - i, to + i);
}

template <Function f>
void values(const Curve& curve, const float* src, std::int64_t count, float* dst) {
    const Numbers numbers{hn::Set(f32, curve.first), hn::Set(f32, curve.second)};
    whole_vectors(src, src, count, dst,
                  [&](Vector x, Vector /*same*/) HWY_ATTR { return or_no_number(x, value<f>(x, numbers)); });
}

template <Function f>
void slopes(const Curve& curve, const float* src, const float* diff_dst, std::int64_t count, float* diff_src) {
    const Numbers numbers{hn::Set(f32, curve.first), hn::Set(f32, curve.second)};
    whole_vectors(src, diff_dst, count, diff_src, [&](Vector x, Vector g) HWY_ATTR {
        const Vector s = or_no_number(x, slope<f>(x, numbers));
        return hn::IfThenZeroElse(hn::Eq(s, hn::Zero(f32)), hn::Mul(s, g));
    });
}

template <Function... all>
void some_values(const Curve& curve, const float* src, std::int64_t count, float* dst) {
    static_cast<void>(((curve.function == all && (values<all>(curve, src, count, dst), true)) || ...));
}
template <Function... all>
void some_slopes(const Curve& curve, const float* src, const float* diff_dst, std::int64_t count, float* diff_src) {
    static_cast<void>(((curve.function == all && (slopes<all>(curve, src, diff_dst, count, diff_src), true)) || ...));
}

void all_values(const Curve& curve, const float* src, std::int64_t count, float* dst) {
    using enum Function;
    some_values<exp, sigmoid, tanh, softplus, elu, selu, celu, silu, quickgelu, gelutanh, mish>(curve, src, count, dst);
}
void all_slopes(const Curve& curve, const float* src, const float* diff_dst, std::int64_t count, float* diff_src) {
    using enum Function;
    some_slopes<exp, sigmoid, tanh, softplus, elu, selu, celu, silu, quickgelu, gelutanh, mish>(curve, src, diff_dst,
                                                                                                count, diff_src);
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(all_values);
HWY_EXPORT(all_slopes);

bool is_curve(general::Function function) {
    using enum general::Function;
    constexpr std::array known{exp, sigmoid, tanh, softplus, elu, selu, celu, silu, quickgelu, gelutanh, mish};
    return std::ranges::find(known, function) != known.end();
}
void along_curve(const Curve& curve, const float* src, std::int64_t count, float* dst) {
    HWY_DYNAMIC_DISPATCH(all_values)(curve, src, count, dst);
}
void slopes_of_curve(const Curve& curve, const float* src, const float* diff_dst, std::int64_t count, float* diff_src) {
    HWY_DYNAMIC_DISPATCH(all_slopes)(curve, src, diff_dst, count, diff_src);
}

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
