// SPDX-License-Identifier: Apache-2.0
// The only definition of a band: which share of outcomes it holds, and how far the errors behind a figure reach.
#pragma once

#include <cmath>
#include <initializer_list>

namespace rehearse::prices {

/// A band holds the middle nine in ten of a normal distribution: so many standard deviations (z-score) either side.
inline constexpr double ninety_percent = 1.645;

/// Of a positive quantity: a time, a rate, a plain number.
template <typename Value>
struct Interval {
    Value low{}, high{};
    bool contains(Value value) const { return low <= value && value <= high; }
};

/// The factor by which the upper end of the band lies above a figure whose relative error has this standard deviation;
/// the lower end lies below it by the same factor.
constexpr double reach(double deviation) { return 1 + ninety_percent * deviation; }
/// ... where `deviation` is that of the figure's logarithm, as price models and residuals of validations have it.
inline double log_reach(double deviation) { return std::exp(ninety_percent * deviation); }

template <typename Value>
Interval<Value> around(Value middle, double factor) {
    return {middle / factor, middle * factor};
}

/// What independent errors make together, each as the factor by which the upper end of its own band lies above the
/// figure: their logarithms combine as the root of the sum of squares. Errors with one cause have one sign, and their
/// deviations are added before they get here.
inline double independent_factors(std::initializer_list<double> factors) {
    double squares = 0;
    for (const double factor : factors) squares += std::log(factor) * std::log(factor);
    return std::exp(std::sqrt(squares));
}

}  // namespace rehearse::prices
