// SPDX-License-Identifier: Apache-2.0
#include "kernels/general/functions.hpp"

namespace rehearse::kernels::general {
namespace {

// In the order of Function.
constexpr std::array<std::string_view, functions> names{"add",
                                                        "sub",
                                                        "rsub",
                                                        "neg",
                                                        "mul",
                                                        "div",
                                                        "rdiv",
                                                        "reciprocal",
                                                        "abs",
                                                        "sqrt",
                                                        "square",
                                                        "pow",
                                                        "rpow",
                                                        "mod",
                                                        "fmod",
                                                        "min",
                                                        "max",
                                                        "mean",
                                                        "clip",
                                                        "relu",
                                                        "leakyrelu",
                                                        "prelu",
                                                        "thresholdedrelu",
                                                        "hardsigmoid",
                                                        "hardswish",
                                                        "shrink",
                                                        "exp",
                                                        "log",
                                                        "erf",
                                                        "sigmoid",
                                                        "tanh",
                                                        "sin",
                                                        "cos",
                                                        "tan",
                                                        "asin",
                                                        "acos",
                                                        "atan",
                                                        "sinh",
                                                        "cosh",
                                                        "asinh",
                                                        "acosh",
                                                        "atanh",
                                                        "softplus",
                                                        "softsign",
                                                        "elu",
                                                        "selu",
                                                        "celu",
                                                        "silu",
                                                        "quickgelu",
                                                        "gelutanh",
                                                        "mish",
                                                        "where",
                                                        "copy",
                                                        "floor",
                                                        "ceil",
                                                        "round",
                                                        "sign",
                                                        "equal",
                                                        "greater",
                                                        "greaterequal",
                                                        "less",
                                                        "lessequal",
                                                        "isnan",
                                                        "isinf",
                                                        "not",
                                                        "and",
                                                        "or",
                                                        "xor"};

}  // namespace

std::optional<Function> function_of(std::string_view name) {
    const auto* const found = std::ranges::find(names, name);
    if (found == names.end()) return std::nullopt;
    return static_cast<Function>(found - names.begin());
}

Arity arity_of(Function function) {
    using enum Function;
    constexpr std::size_t many = 1U << 16U;
    switch (function) {
        case add:
        case mul:
        case min:
        case max:
        case mean:
            return {1, many};
        case sub:
        case rsub:
        case div:
        case rdiv:
        case pow:
        case rpow:
        case mod:
        case fmod:
        case prelu:
        case equal:
        case greater:
        case greaterequal:
        case less:
        case lessequal:
        case and_:
        case or_:
        case xor_:
            return {2, 2};
        case where:
            return {3, 3};
        case leakyrelu:
        case thresholdedrelu:
        case elu:
        case celu:
            return {1, 2};
        case clip:
        case hardsigmoid:
        case shrink:
        case selu:
            return {1, 3};
        default:
            return {1, 1};
    }
}

}  // namespace rehearse::kernels::general
