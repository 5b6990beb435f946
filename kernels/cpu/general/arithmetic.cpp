// SPDX-License-Identifier: Apache-2.0
// The values and slopes of kernels/general/functions.hpp, with the same comparisons, so that what is not a number goes
// the same way.
#include "kernels/cpu/general/arithmetic.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/general/arithmetic.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                                  // must come before highway.h

#include "hwy/highway.h"
#include "kernels/cpu/over_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

using general::Function;

HWY_INLINE Vector number(double value) { return hn::Set(f32, static_cast<float>(value)); }

// The operands of a vector's elements.
struct Operands {
    Vector first, second, third;
    std::size_t count;
    HWY_INLINE Vector second_or(double otherwise) const { return count > 1 ? second : number(otherwise); }
    HWY_INLINE Vector third_or(double otherwise) const { return count > 2 ? third : number(otherwise); }
};

// As std::clamp has it: what is not a number stays.
HWY_INLINE Vector clamped(Vector x, Vector low, Vector high) {
    const Vector above = hn::IfThenElse(hn::Lt(x, low), low, x);
    return hn::IfThenElse(hn::Lt(high, above), high, above);
}
HWY_INLINE Vector clamped_to_one(Vector x) { return clamped(x, hn::Zero(f32), number(1)); }

template <Function f>
HWY_INLINE Vector value(const Operands& v) {
    using enum Function;
    const Vector x = v.first, zero = hn::Zero(f32);
    if constexpr (f == add) {
        const Vector two = v.count > 1 ? hn::Add(x, v.second) : x;
        return v.count > 2 ? hn::Add(two, v.third) : two;
    }
    if constexpr (f == mul) {
        const Vector two = v.count > 1 ? hn::Mul(x, v.second) : x;
        return v.count > 2 ? hn::Mul(two, v.third) : two;
    }
    if constexpr (f == sub) return hn::Sub(x, v.second);
    if constexpr (f == rsub) return hn::Sub(v.second, x);
    if constexpr (f == neg) return hn::Neg(x);
    if constexpr (f == div) return hn::Div(x, v.second);
    if constexpr (f == abs) return hn::Abs(x);
    if constexpr (f == sqrt) return hn::Sqrt(x);
    if constexpr (f == square) return hn::Mul(x, x);
    if constexpr (f == clip) return clamped(x, v.second_or(-1e30), v.third_or(1e30));
    if constexpr (f == relu) return hn::IfThenElse(hn::Lt(x, zero), zero, x);
    if constexpr (f == leakyrelu || f == prelu)
        return hn::IfThenElse(hn::Gt(x, zero), x, hn::Mul(v.second_or(0.01), x));
    if constexpr (f == hardsigmoid) return clamped_to_one(hn::Add(hn::Mul(v.second_or(0.2), x), v.third_or(0.5)));
    if constexpr (f == hardswish) return hn::Mul(x, clamped_to_one(hn::Add(hn::Div(x, number(6)), number(0.5))));
    return x;
}

template <Function f>
HWY_INLINE Vector slope(const Operands& v, std::size_t k) {
    using enum Function;
    const Vector x = v.first, zero = hn::Zero(f32), one = number(1);
    if constexpr (f == mul) {
        const Vector with_second = k != 1 && v.count > 1 ? v.second : one;
        const Vector two = k != 0 ? hn::Mul(x, with_second) : with_second;
        return k != 2 && v.count > 2 ? hn::Mul(two, v.third) : two;
    }
    if constexpr (f == sub) return number(k == 0 ? 1 : -1);
    if constexpr (f == rsub) return number(k == 0 ? -1 : 1);
    if constexpr (f == neg) return number(-1);
    if constexpr (f == div) return k == 0 ? hn::Div(one, v.second) : hn::Div(hn::Neg(x), hn::Mul(v.second, v.second));
    if constexpr (f == abs)
        return hn::Sub(hn::IfThenElseZero(hn::Gt(x, zero), one), hn::IfThenElseZero(hn::Lt(x, zero), one));
    if constexpr (f == sqrt) return hn::Div(number(0.5), hn::Sqrt(x));
    if constexpr (f == square) return hn::Add(x, x);
    if constexpr (f == clip) {
        const auto inside = hn::And(hn::Ge(x, v.second_or(-1e30)), hn::Le(x, v.third_or(1e30)));
        return k == 0 ? hn::IfThenElseZero(inside, one) : zero;
    }
    if constexpr (f == relu) return hn::IfThenElseZero(hn::Gt(x, zero), one);
    if constexpr (f == leakyrelu || f == prelu) {
        const auto above = hn::Gt(x, zero);
        return k == 0 ? hn::IfThenElse(above, one, v.second_or(0.01)) : hn::IfThenZeroElse(above, x);
    }
    if constexpr (f == hardsigmoid) {
        const Vector alpha = v.second_or(0.2), line = hn::Add(hn::Mul(alpha, x), v.third_or(0.5));
        return k == 0 ? hn::IfThenElseZero(hn::And(hn::Gt(line, zero), hn::Lt(line, one)), alpha) : zero;
    }
    if constexpr (f == hardswish) {
        const Vector middle = hn::Add(hn::Div(x, number(3)), number(0.5));
        return hn::IfThenZeroElse(hn::Lt(x, number(-3)), hn::IfThenElse(hn::Le(x, number(3)), middle, one));
    }
    return one;
}

// The operands at i: the numbers that are repeated have been loaded once.
template <std::size_t count, typename At>
HWY_INLINE void each(const ArithmeticRow& row, const float* other, float* to, At at) {
    Vector repeated[3] = {hn::Zero(f32), hn::Zero(f32), hn::Zero(f32)};
    for (std::size_t k = 0; k < count; ++k) repeated[k] = hn::Set(f32, *row.from[k]);
    const auto operand = [&](std::size_t k, std::int64_t i)
                             HWY_ATTR { return row.step[k] == 0 ? repeated[k] : hn::LoadU(f32, row.from[k] + i); };
    const auto all = [&](std::int64_t i) HWY_ATTR {
        return Operands{operand(0, i), count > 1 ? operand(1, i) : repeated[1], count > 2 ? operand(2, i) : repeated[2],
                        count};
    };
    std::int64_t i = 0;
    for (; i + lanes <= row.size; i += lanes) hn::StoreU(at(all(i), hn::LoadU(f32, other + i)), f32, to + i);
    const std::int64_t own = row.size - i;
    if (own == 0) return;
    float room[4][static_cast<std::size_t>(lanes)] = {};
    for (std::size_t k = 0; k < count; ++k) {
        if (row.step[k] != 0) std::copy_n(row.from[k] + i, own, room[k]);
        if (row.step[k] != 0) repeated[k] = hn::LoadU(f32, room[k]);
    }
    std::copy_n(other + i, own, room[3]);
    hn::StoreU(at(Operands{repeated[0], repeated[1], repeated[2], count}, hn::LoadU(f32, room[3])), f32, room[3]);
    std::copy_n(room[3], own, to + i);
}

template <typename At>
HWY_INLINE void by_count(const ArithmeticRow& row, const float* other, float* to, At at) {
    if (row.operands == 1) return each<1>(row, other, to, at);
    if (row.operands == 2) return each<2>(row, other, to, at);
    each<3>(row, other, to, at);
}

template <Function f>
void values(const ArithmeticRow& row, float* dst) {
    const float* const any = row.step[0] == 0 ? dst : row.from[0];  // is loaded, and not read
    by_count(row, any, dst, [](const Operands& v, Vector /*any*/) HWY_ATTR { return value<f>(v); });
}

template <Function f>
void slopes(const ArithmeticRow& row, std::size_t k, const float* diff_dst, float* diff) {
    by_count(row, diff_dst, diff, [k](const Operands& v, Vector g) HWY_ATTR {
        const Vector s = slope<f>(v, k);
        return hn::IfThenZeroElse(hn::Eq(s, hn::Zero(f32)), hn::Mul(s, g));
    });
}

template <Function... all>
void some_values(Function f, const ArithmeticRow& row, float* dst) {
    static_cast<void>(((f == all && (values<all>(row, dst), true)) || ...));
}
template <Function... all>
void some_slopes(Function f, const ArithmeticRow& row, std::size_t k, const float* diff_dst, float* diff) {
    static_cast<void>(((f == all && (slopes<all>(row, k, diff_dst, diff), true)) || ...));
}

void any_values(Function f, const ArithmeticRow& row, float* dst) {
    using enum Function;
    some_values<add, sub, rsub, neg, mul, div, abs, sqrt, square, clip, relu, leakyrelu, prelu, hardsigmoid, hardswish,
                copy>(f, row, dst);
}
void any_slopes(Function f, const ArithmeticRow& row, std::size_t k, const float* diff_dst, float* diff) {
    using enum Function;
    some_slopes<add, sub, rsub, neg, mul, div, abs, sqrt, square, clip, relu, leakyrelu, prelu, hardsigmoid, hardswish,
                copy>(f, row, k, diff_dst, diff);
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(any_values);
HWY_EXPORT(any_slopes);

bool is_arithmetic(general::Function function, std::size_t operands) {
    using enum general::Function;
    constexpr general::Function known[] = {add,    sub,  rsub, neg,       mul,   div,         abs,       sqrt,
                                           square, clip, relu, leakyrelu, prelu, hardsigmoid, hardswish, copy};
    return operands >= 1 && operands <= ArithmeticRow::most && std::ranges::find(known, function) != std::end(known);
}
void along_arithmetic(general::Function function, const ArithmeticRow& row, float* dst) {
    HWY_DYNAMIC_DISPATCH(any_values)(function, row, dst);
}
void slopes_of_arithmetic(general::Function function, const ArithmeticRow& row, std::size_t k, const float* diff_dst,
                          float* diff) {
    HWY_DYNAMIC_DISPATCH(any_slopes)(function, row, k, diff_dst, diff);
}

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
