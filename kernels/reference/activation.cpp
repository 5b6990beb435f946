// SPDX-License-Identifier: Apache-2.0
// gelu is the exact one, x times the normal distribution's share below x (Hendrycks and Gimpel 2016), not its tanh
// approximation. relu's slope at 0 is 0.
#include <cmath>
#include <numbers>

#include "core/error.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double normal_share(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
double normal_density(double x) { return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2; }

}  // namespace

double value(Nonlinearity kind, double x) {
    switch (kind) {
        case Nonlinearity::relu:
            return x > 0 ? x : 0;
        case Nonlinearity::sigmoid:
            return logistic(x);
        case Nonlinearity::tanh:
            return std::tanh(x);
        case Nonlinearity::gelu:
            return x * normal_share(x);
    }
    require(false, "unknown nonlinearity");
    return 0;
}

double slope(Nonlinearity kind, double x) {
    switch (kind) {
        case Nonlinearity::relu:
            return x > 0 ? 1 : 0;
        case Nonlinearity::sigmoid:
            return logistic(x) * logistic(-x);
        case Nonlinearity::tanh:
            return 1 / (std::cosh(x) * std::cosh(x));
        case Nonlinearity::gelu:
            return normal_share(x) + x * normal_density(x);
    }
    require(false, "unknown nonlinearity");
    return 0;
}

void run(const Activation& op, Pass pass, std::int64_t /*batch*/, const Buffers& b) {
    const auto src = b.src[0];
    if (pass == Pass::forward) {
        for (std::size_t i = 0; i < src.size(); ++i) b.dst[i] = static_cast<float>(value(op.kind, src[i]));
        return;
    }
    for (std::size_t i = 0; i < b.diff_src[0].size(); ++i) {
        b.diff_src[0][i] = static_cast<float>(b.diff_dst[i] * slope(op.kind, src[i]));
    }
}

}  // namespace rehearse::kernels::reference
