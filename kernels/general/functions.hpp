// SPDX-License-Identifier: Apache-2.0
// The functions of an Elementwise and their slopes, for whoever computes them element by element.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <optional>
#include <string_view>
#include <utility>

namespace rehearse::kernels::general {

enum class Function {
    add,
    sub,
    rsub,
    neg,
    mul,
    div,
    rdiv,
    reciprocal,
    abs,
    sqrt,
    square,
    pow,
    rpow,
    mod,
    fmod,
    min,
    max,
    mean,
    clip,
    relu,
    leakyrelu,
    prelu,
    thresholdedrelu,
    hardsigmoid,
    hardswish,
    shrink,
    exp,
    log,
    erf,
    sigmoid,
    tanh,
    sin,
    cos,
    tan,
    asin,
    acos,
    atan,
    sinh,
    cosh,
    asinh,
    acosh,
    atanh,
    softplus,
    softsign,
    elu,
    selu,
    celu,
    silu,
    quickgelu,
    gelutanh,
    mish,
    where,
    copy,
    floor,
    ceil,
    round,
    sign,
    equal,
    greater,
    greaterequal,
    less,
    lessequal,
    isnan,
    isinf,
    not_,
    and_,
    or_,
    xor_,
};

/// By its name in core's table; nothing where it cannot be computed from its operands ("random", "compare").
std::optional<Function> function_of(std::string_view name);
/// The fewest and the most operands that it takes; what is missing between them has ONNX's default.
struct Arity {
    std::size_t least, most;
};
Arity arity_of(Function function);

/// The operands of one element.
template <typename T>
struct Arguments {
    const T* x;
    std::size_t count;
    T at(std::size_t i, double otherwise) const { return i < count ? x[i] : static_cast<T>(otherwise); }
};

template <typename T>
T logistic(T x) {
    return 1 / (1 + std::exp(-x));
}
template <typename T>
T log_of_one_and_exp(T x) {
    return std::max<T>(x, 0) + std::log1p(std::exp(-std::abs(x)));
}

// Klambauer et al. 2017, as ONNX has them.
inline constexpr double selu_alpha = 1.67326319217681884765625, selu_gamma = 1.05070102214813232421875;
// Hendrycks and Gimpel 2016: tanh(sqrt(2 / pi) (x + 0.044715 x^3)), and x sigmoid(1.702 x).
inline constexpr double gelu_cubic = 0.044715, gelu_quick = 1.702;
template <typename T>
T gelu_inner(T x) {
    return static_cast<T>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi) *
           (x + static_cast<T>(gelu_cubic) * x * x * x);
}

template <Function f, typename T>
T value(const Arguments<T>& args) {
    using enum Function;
    const T* const v = args.x;
    const T x = v[0];
    const auto truth = [](bool yes) { return static_cast<T>(yes ? 1 : 0); };
    if constexpr (f == add || f == mean) {
        T sum = x;
        for (std::size_t i = 1; i < args.count; ++i) sum += v[i];
        return f == mean ? sum / static_cast<T>(args.count) : sum;
    } else if constexpr (f == mul) {
        T product = x;
        for (std::size_t i = 1; i < args.count; ++i) product *= v[i];
        return product;
    } else if constexpr (f == min || f == max) {
        return f == min ? *std::min_element(v, v + args.count) : *std::max_element(v, v + args.count);
    } else if constexpr (f == sub) {
        return x - v[1];
    } else if constexpr (f == rsub) {
        return v[1] - x;
    } else if constexpr (f == neg) {
        return -x;
    } else if constexpr (f == div) {
        return x / v[1];
    } else if constexpr (f == rdiv) {
        return v[1] / x;
    } else if constexpr (f == reciprocal) {
        return 1 / x;
    } else if constexpr (f == abs) {
        return std::abs(x);
    } else if constexpr (f == sqrt) {
        return std::sqrt(x);
    } else if constexpr (f == square) {
        return x * x;
    } else if constexpr (f == pow) {
        return std::pow(x, v[1]);
    } else if constexpr (f == rpow) {
        return std::pow(v[1], x);
    } else if constexpr (f == mod) {
        return x - v[1] * std::floor(x / v[1]);
    } else if constexpr (f == fmod) {
        return std::fmod(x, v[1]);
    } else if constexpr (f == clip) {
        return std::min(std::max(x, args.at(1, -1e30)), args.at(2, 1e30));
    } else if constexpr (f == relu) {
        return std::max<T>(x, 0);
    } else if constexpr (f == leakyrelu || f == prelu) {
        return x > 0 ? x : args.at(1, 0.01) * x;
    } else if constexpr (f == thresholdedrelu) {
        return x > args.at(1, 1) ? x : T{0};
    } else if constexpr (f == hardsigmoid) {
        return std::clamp<T>(args.at(1, 0.2) * x + args.at(2, 0.5), 0, 1);
    } else if constexpr (f == hardswish) {
        return x * std::clamp<T>(x / 6 + T{0.5}, 0, 1);
    } else if constexpr (f == shrink) {
        const T edge = args.at(1, 0.5), bias = args.at(2, 0);
        return x < -edge ? x + bias : x > edge ? x - bias : T{0};
    } else if constexpr (f == exp) {
        return std::exp(x);
    } else if constexpr (f == log) {
        return std::log(x);
    } else if constexpr (f == erf) {
        return std::erf(x);
    } else if constexpr (f == sigmoid) {
        return logistic(x);
    } else if constexpr (f == tanh) {
        return std::tanh(x);
    } else if constexpr (f == sin) {
        return std::sin(x);
    } else if constexpr (f == cos) {
        return std::cos(x);
    } else if constexpr (f == tan) {
        return std::tan(x);
    } else if constexpr (f == asin) {
        return std::asin(x);
    } else if constexpr (f == acos) {
        return std::acos(x);
    } else if constexpr (f == atan) {
        return std::atan(x);
    } else if constexpr (f == sinh) {
        return std::sinh(x);
    } else if constexpr (f == cosh) {
        return std::cosh(x);
    } else if constexpr (f == asinh) {
        return std::asinh(x);
    } else if constexpr (f == acosh) {
        return std::acosh(x);
    } else if constexpr (f == atanh) {
        return std::atanh(x);
    } else if constexpr (f == softplus) {
        return log_of_one_and_exp(x);
    } else if constexpr (f == softsign) {
        return x / (1 + std::abs(x));
    } else if constexpr (f == elu) {
        return x > 0 ? x : args.at(1, 1) * std::expm1(x);
    } else if constexpr (f == selu) {
        return args.at(2, selu_gamma) * (x > 0 ? x : args.at(1, selu_alpha) * std::expm1(x));
    } else if constexpr (f == celu) {
        const T alpha = args.at(1, 1);
        return x > 0 ? x : alpha * std::expm1(x / alpha);
    } else if constexpr (f == silu) {
        return x * logistic(x);
    } else if constexpr (f == quickgelu) {
        return x * logistic(static_cast<T>(gelu_quick) * x);
    } else if constexpr (f == gelutanh) {
        return T{0.5} * x * (1 + std::tanh(gelu_inner(x)));
    } else if constexpr (f == mish) {
        return x * std::tanh(log_of_one_and_exp(x));
    } else if constexpr (f == where) {
        return x != 0 ? v[1] : v[2];
    } else if constexpr (f == copy) {
        return x;
    } else if constexpr (f == floor) {
        return std::floor(x);
    } else if constexpr (f == ceil) {
        return std::ceil(x);
    } else if constexpr (f == round) {
        return std::nearbyint(x);  // to even, as ONNX rounds
    } else if constexpr (f == sign) {
        return truth(x > 0) - truth(x < 0);
    } else if constexpr (f == equal) {
        return truth(x == v[1]);
    } else if constexpr (f == greater) {
        return truth(x > v[1]);
    } else if constexpr (f == greaterequal) {
        return truth(x >= v[1]);
    } else if constexpr (f == less) {
        return truth(x < v[1]);
    } else if constexpr (f == lessequal) {
        return truth(x <= v[1]);
    } else if constexpr (f == isnan) {
        return truth(std::isnan(x));
    } else if constexpr (f == isinf) {
        return truth(std::isinf(x));
    } else if constexpr (f == not_) {
        return truth(x == 0);
    } else if constexpr (f == and_) {
        return truth(x != 0 && v[1] != 0);
    } else if constexpr (f == or_) {
        return truth(x != 0 || v[1] != 0);
    } else {
        static_assert(f == xor_);
        return truth((x != 0) != (v[1] != 0));
    }
}

/// The derivative by operand `k`; 0 where there is none. At a kink it is PyTorch's.
template <Function f, typename T>
T slope(const Arguments<T>& args, std::size_t k) {
    using enum Function;
    const T* const v = args.x;
    const T x = v[0];
    if constexpr (f == add || f == copy) {
        return 1;
    } else if constexpr (f == mean) {
        return T{1} / static_cast<T>(args.count);
    } else if constexpr (f == mul) {
        T product = 1;
        for (std::size_t i = 0; i < args.count; ++i) product *= i == k ? T{1} : v[i];
        return product;
    } else if constexpr (f == min || f == max) {
        const T best = value<f>(args);
        return v[k] == best ? T{1} / static_cast<T>(std::count(v, v + args.count, best)) : T{0};
    } else if constexpr (f == sub) {
        return k == 0 ? T{1} : T{-1};
    } else if constexpr (f == rsub) {
        return k == 0 ? T{-1} : T{1};
    } else if constexpr (f == neg) {
        return -1;
    } else if constexpr (f == div) {
        return k == 0 ? 1 / v[1] : -x / (v[1] * v[1]);
    } else if constexpr (f == rdiv) {
        return k == 0 ? -v[1] / (x * x) : 1 / x;
    } else if constexpr (f == reciprocal) {
        return -1 / (x * x);
    } else if constexpr (f == abs) {
        return static_cast<T>((x > 0) - (x < 0));
    } else if constexpr (f == sqrt) {
        return T{0.5} / std::sqrt(x);
    } else if constexpr (f == square) {
        return 2 * x;
    } else if constexpr (f == pow || f == rpow) {
        const T base = f == pow ? x : v[1], power = f == pow ? v[1] : x;
        if ((k == 0) == (f == pow)) return power == 0 ? T{0} : power * std::pow(base, power - 1);
        return base == 0 ? T{0} : std::pow(base, power) * std::log(base);
    } else if constexpr (f == mod) {
        return k == 0 ? T{1} : -std::floor(x / v[1]);
    } else if constexpr (f == fmod) {
        return k == 0 ? T{1} : -std::trunc(x / v[1]);
    } else if constexpr (f == clip) {
        return static_cast<T>(k == 0 && x >= args.at(1, -1e30) && x <= args.at(2, 1e30));
    } else if constexpr (f == relu) {
        return static_cast<T>(x > 0);
    } else if constexpr (f == leakyrelu || f == prelu) {
        if (k == 0) return x > 0 ? T{1} : args.at(1, 0.01);
        return x > 0 ? T{0} : x;
    } else if constexpr (f == thresholdedrelu) {
        return static_cast<T>(k == 0 && x > args.at(1, 1));
    } else if constexpr (f == hardsigmoid) {
        const T alpha = args.at(1, 0.2), line = alpha * x + args.at(2, 0.5);
        return k == 0 && line > 0 && line < 1 ? alpha : T{0};
    } else if constexpr (f == hardswish) {
        return x < -3 ? T{0} : x <= 3 ? x / 3 + T{0.5} : T{1};
    } else if constexpr (f == shrink) {
        return static_cast<T>(k == 0 && std::abs(x) > args.at(1, 0.5));
    } else if constexpr (f == exp) {
        return std::exp(x);
    } else if constexpr (f == log) {
        return 1 / x;
    } else if constexpr (f == erf) {
        return 2 * static_cast<T>(std::numbers::inv_sqrtpi) * std::exp(-x * x);
    } else if constexpr (f == sigmoid) {
        const T s = logistic(x);
        return s * (1 - s);
    } else if constexpr (f == tanh) {
        const T t = std::tanh(x);
        return 1 - t * t;
    } else if constexpr (f == sin) {
        return std::cos(x);
    } else if constexpr (f == cos) {
        return -std::sin(x);
    } else if constexpr (f == tan) {
        const T t = std::tan(x);
        return 1 + t * t;
    } else if constexpr (f == asin) {
        return 1 / std::sqrt(1 - x * x);
    } else if constexpr (f == acos) {
        return -1 / std::sqrt(1 - x * x);
    } else if constexpr (f == atan) {
        return 1 / (1 + x * x);
    } else if constexpr (f == sinh) {
        return std::cosh(x);
    } else if constexpr (f == cosh) {
        return std::sinh(x);
    } else if constexpr (f == asinh) {
        return 1 / std::sqrt(x * x + 1);
    } else if constexpr (f == acosh) {
        return 1 / std::sqrt(x * x - 1);
    } else if constexpr (f == atanh) {
        return 1 / (1 - x * x);
    } else if constexpr (f == softplus) {
        return logistic(x);
    } else if constexpr (f == softsign) {
        const T below = 1 + std::abs(x);
        return 1 / (below * below);
    } else if constexpr (f == elu) {
        return k != 0 ? T{0} : x > 0 ? T{1} : args.at(1, 1) * std::exp(x);
    } else if constexpr (f == selu) {
        return k != 0 ? T{0} : args.at(2, selu_gamma) * (x > 0 ? T{1} : args.at(1, selu_alpha) * std::exp(x));
    } else if constexpr (f == celu) {
        return k != 0 ? T{0} : x > 0 ? T{1} : std::exp(x / args.at(1, 1));
    } else if constexpr (f == silu || f == quickgelu) {
        const T by = f == silu ? T{1} : static_cast<T>(gelu_quick), s = logistic(by * x);
        return s * (1 + by * x * (1 - s));
    } else if constexpr (f == gelutanh) {
        const T t = std::tanh(gelu_inner(x));
        const T inner = static_cast<T>(std::numbers::sqrt2 * std::numbers::inv_sqrtpi) *
                        (1 + 3 * static_cast<T>(gelu_cubic) * x * x);
        return T{0.5} * (1 + t) + T{0.5} * x * (1 - t * t) * inner;
    } else if constexpr (f == mish) {
        const T t = std::tanh(log_of_one_and_exp(x));
        return t + x * (1 - t * t) * logistic(x);
    } else if constexpr (f == where) {
        return static_cast<T>((k == 1 && x != 0) || (k == 2 && x == 0));
    } else {
        return 0;
    }
}

inline constexpr std::size_t functions = static_cast<std::size_t>(Function::xor_) + 1;

template <Function f, typename Visit>
auto visit_one(Visit& visit) {
    return visit.template operator()<f>();
}
template <typename Visit, std::size_t... i>
auto with_function(Function function, Visit& visit, std::index_sequence<i...>) {
    constexpr std::array table{&visit_one<static_cast<Function>(i), Visit>...};
    return table[static_cast<std::size_t>(function)](visit);
}
/// visit.operator()<f>() for the function that `function` is.
template <typename Visit>
auto with_function(Function function, Visit visit) {
    return with_function(function, visit, std::make_index_sequence<functions>{});
}

}  // namespace rehearse::kernels::general
