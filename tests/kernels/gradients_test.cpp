// SPDX-License-Identifier: Apache-2.0
// Every backward pass of the reference against finite differences of its forward pass: d/dx of L = sum r dst, where r
// is what backward is given as diff_dst.
#include <gtest/gtest.h>

#include "tests/kernels/gradients.hpp"

namespace rehearse::kernels {
namespace {

TEST(Gradients, OfLinearOperatorsAreExactDifferences) {
    const Window plain{.kernel_h = 3, .kernel_w = 2};
    const Window strided{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 1, .pad_top = 1, .pad_right = 2};
    const Window dilated{
        .kernel_h = 2, .kernel_w = 2, .pad_left = 1, .pad_bottom = 1, .dilation_h = 2, .dilation_w = 3};
    const Window overhang{.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .pad_bottom = 1, .pad_right = 1};
    const std::vector<Op> ops{Conv{2, 4, 5, 3, plain, 1, true},
                              Conv{4, 5, 4, 4, strided, 2, false},
                              Conv{3, 5, 5, 6, dilated, 3, true},
                              MatMul{1, 3, 4, true},
                              MatMul{2, 3, 4, false},
                              Pool{PoolKind::average, 2, 5, 3, overhang, true},
                              Add{{2, 3}, 3},
                              Concat{{1, 3, 2}, 2, 2},
                              ChannelPad{2, 2, 2, 1, 3},
                              MatMul{3, 5, 4, false, {}, true},
                              Embedding{4, 5, 3, 6, 2},
                              EmbeddingBag{2, 3, 4, 5},
                              Interaction{4, 3},
                              GroupedMatMul{3, 2, 4, 5},
                              GroupedMatMul{2, 3, 4, 5, 3, 2, false}};
    for (const Op& op : ops) {
        Tensors t{op, 2, reference::backend()};
        expect_gradients(t, slope_of_line, 0);
    }
}

TEST(Gradients, OfAnAverageInsideTheImageAreExactUpToItsDivision) {
    // Windows of 1, 2 and 4 pixels divide without rounding; the sums are exact.
    const Window w{
        .kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_left = 1, .pad_right = 1};
    Tensors t{Pool{PoolKind::average, 2, 5, 4, w, false}, 2, reference::backend()};
    expect_gradients(t, slope_of_line, 0);
}

TEST(Gradients, OfMaxPoolingAreExactWhereNoTwoPixelsAreEqual) {
    const Window overlapping{
        .kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_bottom = 1, .pad_right = 1};
    const Window dilated{.kernel_h = 2, .kernel_w = 2, .dilation_h = 2, .dilation_w = 2};
    for (const Window& w : {overlapping, dilated}) {
        Tensors t{Pool{PoolKind::max, 2, 5, 6, w}, 2, reference::backend()};
        // 7 and 120 have no common factor: every whole number of 0..119 once, so a step of 1/2 changes no order.
        for (std::size_t i = 0; i < t.src[0].size(); ++i) t.src[0][i] = static_cast<float>(7 * i % 120);
        expect_gradients(t, slope_of_line, 0);
    }
}

TEST(Gradients, OfReluAreExactAwayFromZero) {
    Tensors t{Activation{Nonlinearity::relu, {20}}, 2, reference::backend()};
    for (float& value : t.src[0]) value = value == 0 ? 1 : value;
    expect_gradients(t, slope_of_line, 0);
}

// Tolerance of the curved ones. Rounding: each dst is off by half an ulp, 2^-24 |dst|, and the rule weighs the errors
// with (8 + 8 + 1 + 1) / (12 h) = 12; with |L's terms| summing to at most S = 400 that is 12 * 400 * 6e-8 = 2.9e-4.
// Truncation: 8.1e-6 * |r| <= 4 * fifth derivative; tanh has the largest one, 16: 5.2e-4. Together below 1e-3.
constexpr double curve_tolerance = 1e-3;

TEST(Gradients, OfCurvedActivationsMatchDifferences) {
    for (const Nonlinearity kind : {Nonlinearity::sigmoid, Nonlinearity::tanh, Nonlinearity::gelu}) {
        Tensors t{Activation{kind, {15}}, 2, reference::backend()};
        for (float& value : t.src[0]) value /= 2;
        expect_gradients(t, slope_of_curve, curve_tolerance);
    }
}

TEST(Gradients, OfSoftmaxMatchDifferences) {
    Tensors t{Softmax{7}, 3, reference::backend()};
    expect_gradients(t, slope_of_curve, curve_tolerance);
}

TEST(Gradients, OfTheMeanLossMatchDifferences) {
    Tensors t{SoftmaxLoss{7}, 3, reference::backend()};
    t.diff_dst.assign(3, 1.0F / 3);  // the mean over the batch that backward takes by itself
    expect_gradients(t, slope_of_curve, curve_tolerance);
}

TEST(Gradients, OfBatchNormMatchDifferencesForInputGammaAndBeta) {
    // 18 values a channel with a deviation near 2.6: x moves the result on a scale of 2.6 * sqrt(18) = 11, so a fifth
    // derivative is below 5!/11^5 times gamma 4; sums of r over 36 values stay below S.
    Tensors t{BatchNorm{2, 3, 3}, 2, reference::backend()};
    expect_gradients(t, slope_of_curve, curve_tolerance);
}

// Scores of a token are 0 to 4 in some order, so that a small step changes no choice; two experts are too small for all
// who choose them. Slots of at most 1, in L each with a factor of at most 4 and two values: the fifth derivative of a
// softmax by its score is below 24, that of L below 24 * 8, truncation 1.6e-3.
TEST(Gradients, OfRoutedTokensMatchDifferences) {
    for (const std::int64_t top : {1, 2}) {
        for (const std::int64_t group : {1, 2}) {
            const Routing routing{.tokens = 4, .width = 2, .experts = 5, .top = top, .capacity = 2, .group = group};
            if (routing.experts * routing.capacity % group != 0) continue;
            for (const Op& op : {Op{DispatchTokens{routing}}, Op{CombineTokens{routing}}}) {
                Tensors t{op, 2, reference::backend()};
                for (float& value : t.src[0]) value /= 4;
                for (std::size_t i = 0; i < t.src[1].size(); ++i) {
                    t.src[1][i] = static_cast<float>((2 * (i / 5) + 3 * (i % 5)) % 5);
                }
                expect_gradients(t, slope_of_curve, 3e-3);
            }
        }
    }
}

TEST(Gradients, OfTheLossOfASequenceMatchDifferences) {
    Tensors t{SoftmaxLoss{.classes = 7, .rows = 4}, 3, reference::backend()};
    t.diff_dst.assign(3, 1.0F / 3);
    expect_gradients(t, slope_of_curve, curve_tolerance);
}

TEST(Gradients, OfLayerNormMatchDifferencesForInputGammaAndBeta) {
    // 16 values a row with a deviation near 2.6: as a channel of BatchNorm above.
    Tensors t{LayerNorm{2, 16}, 2, reference::backend()};
    expect_gradients(t, slope_of_curve, curve_tolerance);
}

TEST(Gradients, OfAttentionMatchDifferencesForQueriesKeysAndValues) {
    // Inputs of at most 1, results too: S is at most 4 * 24. A score moves by at most 1 / sqrt(2) with one input; the
    // fifth derivative of a softmax by its score is below 24, so that of L is below 24 * 0.71^5 = 4.3, times what a
    // probability is worth, 2 values of 2 times r of 4, times the 3 queries that a key meets: 206. Truncation 1.7e-3,
    // of keys that two heads share twice that.
    for (const Attention& op :
         {Attention{2, 3, 5, 2}, Attention{2, 3, 5, 2, true}, Attention{2, 3, 3, 2, false, true},
          Attention{1, 3, 3, 2, true, true}, Attention{1, 1, 1, 2}, Attention{2, 3, 5, 2, true, false, false, 1},
          Attention{2, 3, 5, 2, false, false, false, 2, 1}, Attention{2, 3, 3, 2, false, true, false, 1}}) {
        Tensors t{op, 2, reference::backend()};
        for (auto& tensor : t.src) {
            for (float& value : tensor) value /= 4;
        }
        expect_gradients(t, slope_of_curve, op.key_heads == 0 ? 2e-3 : 4e-3);
    }
}

TEST(Gradients, OfLrnMatchDifferences) {
    for (const std::int64_t size : {3, 4}) {
        // alpha / size <= 1/6 on squares up to 16 bends slowly: scale runs from 2 to 10.
        Tensors t{Lrn{6, 2, 2, size, 0.5, 0.75, 2.0}, 1, reference::backend()};
        expect_gradients(t, slope_of_curve, curve_tolerance);
    }
}

}  // namespace
}  // namespace rehearse::kernels
