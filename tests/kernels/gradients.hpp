// SPDX-License-Identifier: Apache-2.0
// Backward passes of the reference against finite differences of its forward pass: d/dx of L = sum r dst, where r is
// what backward is given as diff_dst.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kernels/reference/backend.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {

inline double weighted_sum(Tensors& t) {
    t.run(reference::backend(), Pass::forward);
    double sum = 0;
    for (std::size_t i = 0; i < t.dst.size(); ++i) sum += static_cast<double>(t.diff_dst[i]) * t.dst[i];
    return sum;
}

// value moved by `step`; L is evaluated there, and the value put back.
inline double moved(Tensors& t, float& value, float step) {
    const float before = value;
    value = before + step;
    const double sum = weighted_sum(t);
    value = before;
    return sum;
}

// Exact for what is linear between the two points, in whole numbers.
inline double slope_of_line(Tensors& t, float& value) { return (moved(t, value, 0.5F) - moved(t, value, -0.5F)) / 1.0; }

// Five-point rule, h = 1/8: the truncation is h^4/30 = 8.1e-6 times the fifth derivative.
inline double slope_of_curve(Tensors& t, float& value) {
    constexpr float h = 0.125F;
    return (8 * (moved(t, value, h) - moved(t, value, -h)) - (moved(t, value, 2 * h) - moved(t, value, -2 * h))) /
           (12 * h);
}

using Slope = std::function<double(Tensors&, float&)>;

inline void expect_gradients(Tensors& t, const Slope& slope, double tolerance) {
    SCOPED_TRACE(to_string(t.op));
    t.run_forward_and_backward(reference::backend());
    const auto diff_src = t.diff_src;
    const auto diff_weights = t.diff_weights;
    for (std::size_t k = 0; k < t.src.size(); ++k) {
        for (std::size_t i = 0; i < t.src[k].size(); ++i) {
            ASSERT_NEAR(diff_src[k][i], slope(t, t.src[k][i]), tolerance) << "src " << k << " at " << i;
        }
    }
    for (std::size_t i = 0; i < t.weights.size(); ++i) {
        ASSERT_NEAR(diff_weights[i], slope(t, t.weights[i]), tolerance) << "weights at " << i;
    }
}

}  // namespace rehearse::kernels
