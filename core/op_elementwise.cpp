// SPDX-License-Identifier: Apache-2.0
// The functions that an Elementwise may have, and what each takes.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/op_general_visitors.hpp"

namespace rehearse {

namespace {

// What a processor computes in one instruction counts 1, what takes a series 8, as Activation counts it.
constexpr std::array functions{
    ElementwiseFunction{"add", 1, true, true},
    ElementwiseFunction{"sub", 1, true, true},
    ElementwiseFunction{"rsub", 1, true, true},
    ElementwiseFunction{"neg", 1, true, true},
    ElementwiseFunction{"mul", 1, false, true},
    ElementwiseFunction{"div", 1, false, true},
    ElementwiseFunction{"rdiv", 1, false, true},
    ElementwiseFunction{"reciprocal", 1, false, true},
    ElementwiseFunction{"abs", 1, false, true},
    ElementwiseFunction{"sqrt", 1, false, true},
    ElementwiseFunction{"square", 1, false, true},
    ElementwiseFunction{"pow", 8, false, true},
    ElementwiseFunction{"rpow", 8, false, true},
    ElementwiseFunction{"mod", 2, false, true},
    ElementwiseFunction{"fmod", 2, false, true},
    ElementwiseFunction{"min", 1, false, true},
    ElementwiseFunction{"max", 1, false, true},
    ElementwiseFunction{"mean", 1, true, true},
    ElementwiseFunction{"clip", 2, false, true},
    ElementwiseFunction{"relu", 1, false, true},
    ElementwiseFunction{"leakyrelu", 2, false, true},
    ElementwiseFunction{"prelu", 2, false, true},
    ElementwiseFunction{"thresholdedrelu", 1, false, true},
    ElementwiseFunction{"hardsigmoid", 4, false, true},
    ElementwiseFunction{"hardswish", 5, false, true},
    ElementwiseFunction{"shrink", 2, false, true},
    ElementwiseFunction{"exp", 8, false, true},
    ElementwiseFunction{"log", 8, false, true},
    ElementwiseFunction{"erf", 8, false, true},
    ElementwiseFunction{"sigmoid", 8, false, true},
    ElementwiseFunction{"tanh", 8, false, true},
    ElementwiseFunction{"sin", 8, false, true},
    ElementwiseFunction{"cos", 8, false, true},
    ElementwiseFunction{"tan", 8, false, true},
    ElementwiseFunction{"asin", 8, false, true},
    ElementwiseFunction{"acos", 8, false, true},
    ElementwiseFunction{"atan", 8, false, true},
    ElementwiseFunction{"sinh", 8, false, true},
    ElementwiseFunction{"cosh", 8, false, true},
    ElementwiseFunction{"asinh", 8, false, true},
    ElementwiseFunction{"acosh", 8, false, true},
    ElementwiseFunction{"atanh", 8, false, true},
    ElementwiseFunction{"softplus", 9, false, true},
    ElementwiseFunction{"softsign", 3, false, true},
    ElementwiseFunction{"elu", 10, false, true},
    ElementwiseFunction{"selu", 11, false, true},
    ElementwiseFunction{"celu", 11, false, true},
    ElementwiseFunction{"silu", 9, false, true},
    ElementwiseFunction{"quickgelu", 10, false, true},
    ElementwiseFunction{"gelutanh", 8, false, true},
    ElementwiseFunction{"mish", 18, false, true},
    ElementwiseFunction{"where", 1, true, true},
    ElementwiseFunction{"copy", 0, true, true},
    ElementwiseFunction{"rotary", 3, true, true},
    ElementwiseFunction{"compound", 1, false, true},
    ElementwiseFunction{"floor", 1, false, false},
    ElementwiseFunction{"ceil", 1, false, false},
    ElementwiseFunction{"round", 1, false, false},
    ElementwiseFunction{"sign", 1, false, false},
    ElementwiseFunction{"compare", 1, false, false},
    ElementwiseFunction{"logic", 1, false, false},
    ElementwiseFunction{"equal", 1, false, false},
    ElementwiseFunction{"greater", 1, false, false},
    ElementwiseFunction{"greaterequal", 1, false, false},
    ElementwiseFunction{"less", 1, false, false},
    ElementwiseFunction{"lessequal", 1, false, false},
    ElementwiseFunction{"isnan", 1, false, false},
    ElementwiseFunction{"isinf", 1, false, false},
    ElementwiseFunction{"not", 1, false, false},
    ElementwiseFunction{"and", 1, false, false},
    ElementwiseFunction{"or", 1, false, false},
    ElementwiseFunction{"xor", 1, false, false},
    ElementwiseFunction{"random", 8, false, false},
};

}  // namespace

std::span<const ElementwiseFunction> elementwise_functions() { return functions; }

const ElementwiseFunction& general::row_of(const Elementwise& op) {
    const auto* const found = std::ranges::find(functions, op.function, &ElementwiseFunction::name);
    if (found == functions.end()) throw InputError(fmt::format("elementwise: no function '{}'", op.function));
    return *found;
}

}  // namespace rehearse
