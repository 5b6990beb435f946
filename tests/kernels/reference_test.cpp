// SPDX-License-Identifier: Apache-2.0
// The reference loops against values worked out by hand. Whole numbers: every sum is exact in f32.
// Longer than most files: a case an operator, none worth a program of its own.
#include "kernels/reference/backend.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "kernels/reference/loops.hpp"
#include "tests/kernels/tensors.hpp"

namespace rehearse::kernels {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::FloatEq;

const Backend& reference_loops() { return reference::backend(); }

TEST(ReferenceConv, SlidesACrossOverAPaddedImage) {
    // 1 2 3      . 1 .      each output is the sum of a pixel and its neighbours
    // 4 5 6  *   1 1 1
    // 7 8 9      . 1 .
    Tensors t{
        Conv{1, 3, 3, 1, {.kernel_h = 3, .kernel_w = 3, .pad_top = 1, .pad_left = 1, .pad_bottom = 1, .pad_right = 1}},
        1, reference_loops()};
    t.src[0] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    t.weights = {0, 1, 0, 1, 1, 1, 0, 1, 0};
    t.run(reference_loops(), Pass::forward);
    EXPECT_THAT(t.dst, ElementsAre(7, 11, 11, 17, 25, 23, 19, 29, 23));
}

TEST(ReferenceConv, PadsOnlyTheSideItIsToldTo) {
    // One row of padding above, one column at the right, stride 2, taps 1 2 / 3 4:
    //   0 0 0 0        row 0: 0*1+0*2+1*3+2*4 = 11,  0+0+3*3+0*4 = 9
    //   1 2 3 0        row 1: 4*1+5*2+7*3+8*4 = 67,  6*1+0*2+9*3+0*4 = 33
    //   4 5 6 0
    //   7 8 9 0
    Tensors t{
        Conv{1, 3, 3, 1, {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .pad_top = 1, .pad_right = 1}}, 1,
        reference_loops()};
    t.src[0] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    t.weights = {1, 2, 3, 4};
    t.run(reference_loops(), Pass::forward);
    EXPECT_THAT(t.dst, ElementsAre(11, 9, 67, 33));
}

TEST(ReferenceConv, DilatedTapsSkipPixels) {
    Tensors t{Conv{1, 1, 5, 1, {.kernel_h = 1, .kernel_w = 3, .dilation_w = 2}}, 1, reference_loops()};
    t.src[0] = {1, 2, 4, 8, 16};
    t.weights = {1, 10, 100};
    t.run(reference_loops(), Pass::forward);
    EXPECT_THAT(t.dst, ElementsAre(1 + 40 + 1600));
}

TEST(ReferenceConv, GroupsSeeOnlyTheirChannelsAndEachFilterItsBias) {
    // Filters 0 and 1 see channels 0 and 1, filters 2 and 3 see channels 2 and 3.
    Tensors t{Conv{.channels = 4, .filters = 4, .window = {}, .groups = 2, .bias = true}, 2, reference_loops()};
    t.src[0] = {1, 2, 3, 4, /* second sample */ 5, 6, 7, 8};
    t.weights = {1, 10, 0, 1, 100, 1000, 1, 0, /* bias */ 0.5, 0, 0.25, 0};
    t.diff_dst = {1, 0, 2, 1, /* second sample */ 3, 1, 4, 0};
    t.run_forward_and_backward(reference_loops());
    EXPECT_THAT(t.dst, ElementsAre(21.5, 2, 4300.25, 3, 65.5, 6, 8700.25, 7));
    EXPECT_THAT(t.diff_src[0], ElementsAre(1, 10, 201, 2000, 3, 31, 400, 4000));
    // weights: 1*1+5*3, 2*1+6*3; 5*1, 6*1; 3*2+7*4, 4*2+8*4; 3*1, 4*1. bias: 1+3, 0+1, 2+4, 1+0
    EXPECT_THAT(t.diff_weights, ElementsAre(16, 20, 5, 6, 34, 40, 3, 4, 4, 1, 6, 1));
}

TEST(ReferenceMatMul, MultipliesRowsOfSeveralSamples) {
    Tensors t{MatMul{.m = 1, .n = 2, .k = 3, .bias = true}, 2, reference_loops()};
    t.src[0] = {1, 2, 3, 4, 5, 6};
    t.weights = {1, 2, 3, 4, 5, 6, /* bias */ 10, 20};
    t.diff_dst = {1, 0, 0, 1};
    t.run_forward_and_backward(reference_loops());
    EXPECT_THAT(t.dst, ElementsAre(22 + 10, 28 + 20, 49 + 10, 64 + 20));
    EXPECT_THAT(t.diff_src[0], ElementsAre(1, 3, 5, 2, 4, 6));
    EXPECT_THAT(t.diff_weights, ElementsAre(1, 4, 2, 5, 3, 6, 1, 1));
}

TEST(ReferencePool, KeepsTheFirstOfTheLargestAndSendsItTheGradient) {
    Tensors t{Pool{PoolKind::max, 1, 2, 4, {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2}}, 1,
              reference_loops()};
    t.src[0] = {5, 5, -1, -2,  //
                5, 1, -3, -1};
    t.diff_dst = {7, 9};
    t.run_forward_and_backward(reference_loops());
    EXPECT_THAT(t.dst, ElementsAre(5, -1));
    EXPECT_THAT(t.diff_src[0], ElementsAre(7, 0, 9, 0, 0, 0, 0, 0));
}

TEST(ReferencePool, AveragesWindowsThatStickOutWithOrWithoutTheirPadding) {
    // 8 | 4      a window of 2 x 2, stride 2, one column of padding at the right:
    // 4 | 8  .   windows {8 4 / 4 8} and {12 . / 16 .}
    Pool pool{PoolKind::average, 1, 2, 3, {.kernel_h = 2, .kernel_w = 2, .stride_h = 2, .stride_w = 2, .pad_right = 1}};
    Tensors inside{pool, 1, reference_loops()};
    inside.src[0] = {8, 4, 12, 4, 8, 16};
    inside.diff_dst = {4, 4};
    inside.run_forward_and_backward(reference_loops());
    EXPECT_THAT(inside.dst, ElementsAre(6, 14));
    EXPECT_THAT(inside.diff_src[0], ElementsAre(1, 1, 2, 1, 1, 2));
    pool.count_padding = true;
    Tensors whole{pool, 1, reference_loops()};
    whole.src[0] = {8, 4, 12, 4, 8, 16};
    whole.diff_dst = {4, 4};
    whole.run_forward_and_backward(reference_loops());
    EXPECT_THAT(whole.dst, ElementsAre(6, 7));
    EXPECT_THAT(whole.diff_src[0], ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST(ReferenceBatchNorm, GivesEachChannelItsBetaAndGamma) {
    // Channel 0 over the batch: -2 and 2, mean 0, variance 4 (unbiased 8). Channel 1: 5 and 5, variance 0.
    Tensors t{BatchNorm{2, 1, 1}, 2, reference_loops()};
    t.src[0] = {-2, 5, 2, 5};
    t.weights = {3, 3, /* beta */ 1, -1};
    t.state = {10, 10, 1, 1};
    t.run(reference_loops(), Pass::forward);
    const float deviation = std::sqrt(4.0F + 1e-5F);
    EXPECT_THAT(t.dst, ElementsAre(FloatEq(1 - 6 / deviation), -1, FloatEq(1 + 6 / deviation), -1));
    EXPECT_THAT(t.workspace, ElementsAre(0, 5, 4, 0));
    // 0.9 old + 0.1 new
    EXPECT_THAT(t.state, ElementsAre(FloatEq(9), FloatEq(9.5), FloatEq(1.7), FloatEq(0.9)));
}

TEST(ReferenceBatchNorm, WithoutGammaAndBetaIsThatOfOneAndZero) {
    Tensors with{BatchNorm{2, 2, 1}, 2, reference_loops()};
    std::ranges::fill(with.weights, 0.0F);
    std::fill_n(with.weights.begin(), 2, 1.0F);
    with.run_forward_and_backward(reference_loops());
    Tensors plain{BatchNorm{.channels = 2, .height = 2, .width = 1, .affine = false}, 2, reference_loops()};
    plain.src = with.src;
    plain.diff_dst = with.diff_dst;
    plain.run_forward_and_backward(reference_loops());
    EXPECT_TRUE(plain.weights.empty());
    EXPECT_EQ(plain.dst, with.dst);
    EXPECT_EQ(plain.diff_src, with.diff_src);
}

TEST(ReferenceLrn, DividesByTheNeighboursSquares) {
    // alpha = size and beta = 1: dst = src / (1 + squares of the channel and its neighbours).
    Tensors t{Lrn{.channels = 3, .size = 3, .alpha = 3, .beta = 1, .bias = 1}, 1, reference_loops()};
    t.src[0] = {1, 2, 3};
    t.run(reference_loops(), Pass::forward);
    EXPECT_THAT(t.dst, ElementsAre(FloatEq(1.0F / 6), FloatEq(2.0F / 15), FloatEq(3.0F / 14)));
}

TEST(ReferenceLrn, AnEvenSizeReachesFurtherUp) {
    Tensors t{Lrn{.channels = 3, .size = 2, .alpha = 2, .beta = 1, .bias = 1}, 1, reference_loops()};
    t.src[0] = {1, 2, 3};
    t.run(reference_loops(), Pass::forward);
    EXPECT_THAT(t.dst, ElementsAre(FloatEq(1.0F / 6), FloatEq(2.0F / 14), FloatEq(3.0F / 10)));
}

TEST(ReferenceActivation, TakesTextbookValues) {
    const auto at = [](Nonlinearity kind, float x) {
        Tensors t{Activation{kind, {1}}, 1, reference_loops()};
        t.src[0] = {x};
        t.diff_dst = {1};
        t.run_forward_and_backward(reference_loops());
        return std::pair{t.dst[0], t.diff_src[0][0]};
    };
    EXPECT_EQ(at(Nonlinearity::relu, 3), std::pair(3.0F, 1.0F));
    EXPECT_EQ(at(Nonlinearity::relu, 0), std::pair(0.0F, 0.0F));
    EXPECT_EQ(at(Nonlinearity::relu, -3), std::pair(0.0F, 0.0F));
    EXPECT_EQ(at(Nonlinearity::sigmoid, 0), std::pair(0.5F, 0.25F));
    EXPECT_EQ(at(Nonlinearity::sigmoid, -200), std::pair(0.0F, 0.0F));
    EXPECT_EQ(at(Nonlinearity::tanh, 0), std::pair(0.0F, 1.0F));
    EXPECT_EQ(at(Nonlinearity::tanh, 200), std::pair(1.0F, 0.0F));
    // The normal table: 84.13447461 % lie below one deviation, and the density there is 0.2419707245.
    EXPECT_FLOAT_EQ(at(Nonlinearity::gelu, 1).first, 0.8413447461F);
    EXPECT_FLOAT_EQ(at(Nonlinearity::gelu, 1).second, 0.8413447461F + 0.2419707245F);
    EXPECT_FLOAT_EQ(at(Nonlinearity::gelu, -1).first, 0.8413447461F - 1);
}

TEST(ReferenceElementwise, AddsConcatenatesPadsAndFlattens) {
    Tensors sum{Add{{2}, 3}, 1, reference_loops()};
    sum.src = {{1, 2}, {10, 20}, {100, 200}};
    sum.diff_dst = {7, 8};
    sum.run_forward_and_backward(reference_loops());
    EXPECT_THAT(sum.dst, ElementsAre(111, 222));
    EXPECT_THAT(sum.diff_src, Each(ElementsAre(7, 8)));

    Tensors joined{Concat{{1, 2}, 1, 1}, 2, reference_loops()};
    joined.src = {{1, 2}, {3, 4, 5, 6}};
    joined.diff_dst = {1, 2, 3, 4, 5, 6};
    joined.run_forward_and_backward(reference_loops());
    EXPECT_THAT(joined.dst, ElementsAre(1, 3, 4, 2, 5, 6));
    EXPECT_THAT(joined.diff_src[0], ElementsAre(1, 4));
    EXPECT_THAT(joined.diff_src[1], ElementsAre(2, 3, 5, 6));

    Tensors padded{ChannelPad{1, 1, 2, 1, 2}, 2, reference_loops()};
    padded.src[0] = {1, 2, 3, 4};
    padded.diff_dst = {0, 0, 5, 6, 0, 0, 0, 0, 0, 0, 7, 8, 0, 0, 0, 0};
    padded.run_forward_and_backward(reference_loops());
    EXPECT_THAT(padded.dst, ElementsAre(0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0));
    EXPECT_THAT(padded.diff_src[0], ElementsAre(5, 6, 7, 8));

    Tensors flat{Flatten{{2, 1, 1}}, 1, reference_loops()};
    flat.run(reference_loops(), Pass::forward);
    flat.run(reference_loops(), Pass::backward_data);
    EXPECT_EQ(flat.dst, flat.src[0]);
    EXPECT_EQ(flat.diff_src[0], flat.diff_dst);
}

TEST(ReferenceSoftmaxLoss, OfEqualScoresIsTheLogOfTheClasses) {
    Tensors t{SoftmaxLoss{4}, 2, reference_loops()};
    t.src[0].assign(8, 1000.0F);  // exp(1000) alone would overflow
    t.labels = {0, 3};
    t.run_forward_and_backward(reference_loops());
    EXPECT_THAT(t.dst, Each(FloatEq(std::log(4.0F))));
    // (probability - 1 at the label) / 2 samples; 2^-24 is half an ulp of the probability 0.25 after log and exp.
    const std::vector<float> expected{-0.375F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F, 0.125F, -0.375F};
    EXPECT_THAT(t.diff_src[0], testing::Pointwise(testing::FloatNear(0x1p-24F), expected));
}

TEST(ReferenceSgd, KeepsVelocityAndDecaysWeights) {
    Tensors t{SgdUpdate{1}, 1, reference_loops()};
    t.weights = {8};
    t.diff_weights = {4};
    Buffers b = t.buffers();
    b.learning_rate = 0.5F;
    b.momentum_factor = 0.25F;
    b.weight_decay = 0.5F;
    const auto kernel = reference_loops().prepare({SgdUpdate{1}, Pass::update, 1, DataType::f32});
    kernel->run(b);  // v = 4 + 0.5 * 8 = 8, w = 8 - 0.5 * 8
    EXPECT_EQ(t.momentum[0], 8);
    EXPECT_EQ(t.weights[0], 4);
    kernel->run(b);  // v = 0.25 * 8 + 4 + 0.5 * 4 = 8, w = 4 - 0.5 * 8
    EXPECT_EQ(t.momentum[0], 8);
    EXPECT_EQ(t.weights[0], 0);
}

TEST(ReferenceSgd, UpdatesALayerAsItUpdatesABucket) {
    Tensors layer{MatMul{1, 2, 3, true}, 1, reference_loops()};
    layer.diff_weights.assign(8, 1.0F);
    const std::vector<float> before = layer.weights;
    Buffers b = layer.buffers();
    b.learning_rate = 2;
    reference_loops().prepare({layer.op, Pass::update, 1, DataType::f32})->run(b);
    for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(layer.weights[i], before[i] - 2);
}

TEST(ReferenceDropout, DrawsTheSplitMix64Numbers) {
    // The first outputs for seed 1234567, as in the generator's published test values.
    EXPECT_EQ(reference::random_bits(1234567, 0), 6457827717110365317U);
    EXPECT_EQ(reference::random_bits(1234567, 1), 3203168211198807973U);
    EXPECT_EQ(reference::random_bits(1234567, 2), 9817491932198370423U);
    EXPECT_EQ(reference::random_bits(1234567, 3), 4593380528125082431U);
}

TEST(ReferenceDropout, KeepsTheAskedShareAndScalesIt) {
    Tensors t{Dropout{{100, 100}, 0.25}, 1, reference_loops()};
    t.src[0].assign(10000, 1.0F);
    t.diff_dst.assign(10000, 3.0F);
    t.run_forward_and_backward(reference_loops());
    std::int64_t kept = 0;
    for (std::size_t i = 0; i < t.dst.size(); ++i) {
        ASSERT_TRUE(t.dst[i] == 0 || t.dst[i] == 4);
        ASSERT_EQ(t.diff_src[0][i], 3 * t.dst[i]);
        kept += t.dst[i] > 0 ? 1 : 0;
    }
    // Binomial(10000, 1/4): mean 2500, deviation sqrt(10000 * 3/16) = 43.3; five of them.
    EXPECT_NEAR(static_cast<double>(kept), 2500, 217);
}

TEST(ReferenceDropout, MaskDoesNotDependOnHowTheBatchIsSplit) {
    Tensors whole{Dropout{{50}, 0.5}, 4, reference_loops()};
    Tensors second_half{Dropout{{50}, 0.5}, 2, reference_loops()};
    second_half.first_sample = 2;
    whole.run(reference_loops(), Pass::forward);
    second_half.run(reference_loops(), Pass::forward);
    EXPECT_EQ(second_half.workspace, std::vector(whole.workspace.begin() + 100, whole.workspace.end()));
    second_half.seed = 2;
    second_half.run(reference_loops(), Pass::forward);
    EXPECT_NE(second_half.workspace, std::vector(whole.workspace.begin() + 100, whole.workspace.end()));
}

TEST(ReferenceBackwardData, LeavesOutAnInputThatNobodyNeeds) {
    const std::vector<Op> ops{Conv{.channels = 2, .filters = 2, .window = {}},
                              MatMul{1, 2, 3},
                              Pool{},
                              BatchNorm{},
                              Lrn{},
                              Activation{Nonlinearity::relu, {3}},
                              Add{{3}, 2},
                              Concat{{1, 2}},
                              ChannelPad{},
                              Softmax{3},
                              SoftmaxLoss{3},
                              Dropout{{3}}};
    for (const Op& op : ops) {
        SCOPED_TRACE(to_string(op));
        Tensors t{op, 2, reference_loops()};
        t.run(reference_loops(), Pass::forward);
        Buffers b = t.buffers();
        b.diff_src.assign(t.src.size(), {});
        EXPECT_NO_THROW(reference_loops().prepare({op, Pass::backward_data, 2, DataType::f32})->run(b));
    }
}

// Beside 4 x 10^19 the logarithm of seven is nothing.
TEST(ReferenceSoftmax, OfEqualScoresIsEvenHoweverLargeTheyAre) {
    Tensors t{Softmax{7}, 1, reference::backend()};
    std::ranges::fill(t.src[0], 4e19F);
    t.run(reference::backend(), Pass::forward);
    for (const float each : t.dst) EXPECT_EQ(each, 1.0F / 7);
    Tensors loss{SoftmaxLoss{7}, 1, reference::backend()};
    std::ranges::fill(loss.src[0], 4e19F);
    loss.run(reference::backend(), Pass::forward);
    EXPECT_FLOAT_EQ(loss.dst[0], std::log(7.0F));
}

}  // namespace
}  // namespace rehearse::kernels
