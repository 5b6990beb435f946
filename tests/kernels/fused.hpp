// SPDX-License-Identifier: Apache-2.0
// Fused operators against the chain of separate operators that they stand for.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/reference/backend.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {

struct Fused {
    Op plain;
    bool add = false;
    std::optional<Nonlinearity> activation;
};

inline Fused taken_apart(const Op& op) {
    Fused parts{op, false, {}};
    if (auto* conv = std::get_if<Conv>(&parts.plain)) {
        if (std::exchange(conv->relu, false)) parts.activation = Nonlinearity::relu;
    }
    if (auto* dense = std::get_if<MatMul>(&parts.plain)) parts.activation = std::exchange(dense->activation, {});
    if (auto* norm = std::get_if<BatchNorm>(&parts.plain)) {
        parts.add = std::exchange(norm->add, false);
        if (std::exchange(norm->relu, false)) parts.activation = Nonlinearity::relu;
    }
    return parts;
}

struct Results {
    std::vector<float> dst, diff_weights, state;
    std::vector<std::vector<float>> diff_src;
};

/// What the chain makes of the tensors of `fused`: the operator itself by `backend`, all after it by the reference.
inline Results separately(const Tensors& fused, const Backend& backend) {
    const Fused parts = taken_apart(fused.op);
    Tensors plain{parts.plain, fused.batch, backend};
    plain.src[0] = fused.src[0];
    plain.weights = fused.weights;
    plain.run(backend, Pass::forward);
    Results results{plain.dst, {}, plain.state, {}};
    std::vector<float> diff = fused.diff_dst;
    if (parts.add) {
        for (std::size_t i = 0; i < results.dst.size(); ++i) results.dst[i] += fused.src[1][i];
    }
    if (parts.activation) {
        Tensors after{Activation{*parts.activation, output_shape(parts.plain)}, fused.batch, reference::backend()};
        after.src[0] = results.dst;
        after.diff_dst = diff;
        after.run_forward_and_backward(reference::backend());
        results.dst = after.dst;
        diff = after.diff_src[0];
    }
    plain.diff_dst = diff;
    for (const Pass pass : {Pass::backward_data, Pass::backward_weights}) {
        if (has_pass(parts.plain, pass)) plain.run(backend, pass);
    }
    results.diff_src = {plain.diff_src[0]};
    if (parts.add) results.diff_src.push_back(diff);
    results.diff_weights = plain.diff_weights;
    return results;
}

/// Forward; then backward at the given output, so that a value that rounds to either side of zero decides alike.
inline Results together(Tensors& fused, const Backend& backend, const std::vector<float>& dst) {
    fused.run(backend, Pass::forward);
    Results results{fused.dst, {}, fused.state, {}};
    fused.dst = dst;
    for (const Pass pass : {Pass::backward_weights, Pass::backward_data}) {
        if (has_pass(fused.op, pass)) fused.run(backend, pass);
    }
    results.diff_src = fused.diff_src;
    results.diff_weights = fused.diff_weights;
    return results;
}

inline void expect_close(const std::vector<float>& actual, const std::vector<float>& expected, double tolerance,
                         const char* what) {
    ASSERT_EQ(actual.size(), expected.size()) << what;
    for (std::size_t i = 0; i < actual.size(); ++i) {
        // NaN, which marks what nobody wrote, is close to nothing.
        ASSERT_TRUE(std::abs(actual[i] - expected[i]) <= tolerance)
            << what << " at " << i << ": " << actual[i] << " instead of " << expected[i];
    }
}

/// Absolute, of each result.
struct Rounding {
    double dst = 0, diff_src = 0, diff_weights = 0;
};

/// `fused` by `backend` against the chain, of which `plain` runs the operator itself.
inline void expect_as_chain(Tensors fused, const Backend& backend, const Backend& plain, Rounding rounding = {}) {
    SCOPED_TRACE(full_name(backend) + ", " + to_string(Problem{fused.op, Pass::forward, fused.batch, DataType::f32}));
    const Results expected = separately(fused, plain);
    const Results actual = together(fused, backend, expected.dst);
    expect_close(actual.dst, expected.dst, rounding.dst, "dst");
    expect_close(actual.state, expected.state, rounding.dst, "state");
    ASSERT_EQ(actual.diff_src.size(), expected.diff_src.size());
    for (std::size_t i = 0; i < actual.diff_src.size(); ++i) {
        expect_close(actual.diff_src[i], expected.diff_src[i], i == 0 ? rounding.diff_src : 0, "diff_src");
    }
    expect_close(actual.diff_weights, expected.diff_weights, rounding.diff_weights, "diff_weights");
}

// ReLU is exact and so are its masks: whatever the algorithm, fused and separate are equal.
inline void expect_exactly_as_chain(const Op& op, std::int64_t batch, const Backend& backend) {
    if (!backend.supports({op, Pass::forward, batch, DataType::f32}).yes) return;
    expect_as_chain(Tensors{op, batch, backend}, backend, backend);
}

inline constexpr Window same3{
    .kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1};

// Odd sizes, channels over one vector and over one panel, strides, groups, depthwise, 1 x 1, a large kernel, no bias.
inline const std::vector<Conv> convolutions_with_relu{{3, 13, 11, 5, same3, 1, true, true},
                                                      {17, 7, 9, 37, same3, 1, false, true},
                                                      {33, 6, 6, 67, same3, 1, true, true},
                                                      {130, 4, 5, 18, same3, 1, true, true},
                                                      {16, 9, 7, 32, {3, 3, 2, 2, 1, 1, 1, 1}, 1, true, true},
                                                      {16, 5, 7, 8, {}, 1, true, true},
                                                      {16, 15, 14, 32, {}, 1, true, true},
                                                      {19, 8, 10, 19, same3, 19, true, true},
                                                      {6, 12, 15, 8, {3, 3, 1, 1, 2, 2, 2, 2, 2, 2}, 2, true, true},
                                                      {4, 19, 18, 3, {7, 7, 1, 1, 3, 3, 3, 3}, 1, true, true}};

inline const std::vector<MatMul> products_with_relu{{1, 1, 1, true, Nonlinearity::relu},
                                                    {1, 33, 17, true, Nonlinearity::relu},
                                                    {3, 129, 40, false, Nonlinearity::relu}};

// GELU of numbers below 9: src and weights are quarters up to 1, eight of them and a bias. Polynomials stand in for erf
// and exp, good to 16 units of the last place, of a value as of a slope, which is at most 1.13; of a gradient that is 4
// times as much, and `terms` of those are added.
inline void expect_gelu_as_chain(const MatMul& op, std::int64_t batch, const Backend& backend) {
    Tensors fused{op, batch, backend};
    for (auto* tensor : {&fused.src[0], &fused.weights}) {
        for (float& value : *tensor) value /= 4;
    }
    const auto terms = static_cast<double>(std::max(op.n, batch * op.m));
    const double gradient = terms * 4 * 1.13 * (16 + terms) * 0x1p-24;
    expect_as_chain(std::move(fused), backend, reference::backend(),
                    {.dst = 9 * 16 * 0x1p-24, .diff_src = gradient, .diff_weights = gradient});
}

// As for the plain one (equality_test.cpp): N values a channel, in f32 a relative error of (N + 8) 2^-24 of what is
// added up; a shortcut adds values up to 4.
inline void expect_norm_as_chain(const BatchNorm& op, std::int64_t batch, const Backend& backend) {
    if (!backend.supports({op, Pass::forward, batch, DataType::f32}).yes) return;
    const auto values = static_cast<double>(batch * op.height * op.width);
    const double rounding = (values + 8) * 0x1p-24;
    expect_as_chain(Tensors{op, batch, backend}, backend, reference::backend(),
                    {.dst = 20 * rounding, .diff_src = 48 * rounding, .diff_weights = 12 * values * rounding});
}

inline std::vector<BatchNorm> norms() {
    std::vector<BatchNorm> found;
    for (const bool relu : {false, true}) {
        for (const bool add : {false, true}) {
            for (const BatchNorm& size : {BatchNorm{1, 5, 4}, BatchNorm{19, 3, 5}, BatchNorm{16, 9, 9}}) {
                found.push_back({size.channels, size.height, size.width, relu, add});
            }
        }
    }
    return found;
}

}  // namespace rehearse::kernels
