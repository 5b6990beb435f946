// SPDX-License-Identifier: Apache-2.0
// Sizes and costs worked out by hand.
#include "core/op.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.hpp"

namespace rehearse {
namespace {

// ResNet-50's first layer: 3 x 224 x 224 -> 64 x 112 x 112, 7 x 7, stride 2, padding 3.
const Conv conv1{3, 224, 224, 64, Window{7, 7, 2, 2, 3, 3, 3, 3}};

TEST(Conv, HasTheShapeAndCostOfResNetsFirstLayer) {
    EXPECT_EQ(output_shape(conv1), (Shape{64, 112, 112}));
    EXPECT_EQ(parameters(conv1), 64 * 3 * 7 * 7);
    // 112 * 112 * 64 outputs, 3 * 7 * 7 multiply-adds each: 118,013,952 MAC.
    EXPECT_EQ(flops(conv1, Pass::forward), Flops{2.0 * 118013952});
    EXPECT_EQ(flops(conv1, Pass::backward_weights, 10), Flops{20.0 * 118013952});
    EXPECT_EQ(flops(conv1, Pass::backward_data), Flops{2.0 * 118013952});
    // Forward: 3*224*224 in, 64*112*112 out a sample, 9408 weights once.
    EXPECT_EQ(bytes_moved(conv1, Pass::forward, DataType::f32, 2), Bytes{4.0 * (2 * (150528 + 802816) + 9408)});
    EXPECT_EQ(bytes_moved(conv1, Pass::forward, DataType::f16, 2), Bytes{2.0 * (2 * (150528 + 802816) + 9408)});
}

TEST(Conv, CountsGroupsDilationAndUnevenPadding) {
    const Conv depthwise{32, 9, 9, 32, Window{3, 3, 1, 1, 1, 1, 1, 1}, 32};
    EXPECT_EQ(parameters(depthwise), 32 * 9);
    EXPECT_EQ(flops(depthwise, Pass::forward), Flops{2.0 * 32 * 81 * 9});
    const Conv atrous{1, 9, 9, 1, Window{3, 3, 1, 1, 0, 0, 0, 0, 2, 2}};  // a window of 5 in 9
    EXPECT_EQ(output_shape(atrous), (Shape{1, 5, 5}));
    const Conv uneven{1, 8, 8, 1, Window{3, 3, 2, 2, 0, 1, 1, 0}};  // 8 + 1 = 9: 4 windows each way
    EXPECT_EQ(output_shape(uneven), (Shape{1, 4, 4}));
}

TEST(Conv, HasTheShapeAndCostOfCosmoFlowsSecondLayer) {
    Window w{3, 3, 1, 1, 1, 1, 1, 1};
    w.kernel_d = 3;
    w.pad_front = w.pad_back = 1;
    const Conv conv2 = conv3d(32, 64, 64, 64, 64, w);
    EXPECT_EQ(output_shape(conv2), (Shape{64, 64, 64, 64}));
    EXPECT_EQ(parameters(conv2), 64 * 32 * 27);
    EXPECT_EQ(flops(conv2, Pass::forward, 2), Flops{2.0 * 2 * 64 * 64 * 64 * 64 * 32 * 27});
}

TEST(ConvTranspose, IsTheMirroredConvolutionsWayBack) {
    const ConvTranspose up{64, 14, 9, 32, Window{3, 3, 2, 2, 1, 1, 1, 1}, 1, true, 0, 0, 1, 0};
    EXPECT_EQ(output_shape(up), (Shape{32, 28, 17}));
    const Op mirror = mirrored(up);
    EXPECT_EQ(mirror, (Op{Conv{32, 28, 17, 64, up.window}}));
    EXPECT_EQ(output_shape(mirror), (Shape{64, 14, 9}));
    EXPECT_EQ(weights(up)[0].shape, weights(mirror)[0].shape);
    EXPECT_EQ(parameters(up), 64 * 32 * 9 + 32);
    EXPECT_EQ(flops(up, Pass::backward_data), flops(mirror, Pass::forward));
    EXPECT_EQ(flops(up, Pass::forward), flops(mirror, Pass::forward) + Flops{32.0 * 28 * 17});
}

TEST(Window, OverDepthNeedsAVolume) {
    Window w;
    w.kernel_d = 2;
    EXPECT_THROW(output_shape(Conv{1, 8, 8, 1, w}), InputError);
    EXPECT_EQ(output_shape(Pool{PoolKind::max, 1, 8, 8, w, false, 5}), (Shape{1, 4, 8, 8}));
}

TEST(OutputShape, RefusesWhatDoesNotFit) {
    EXPECT_THROW(output_shape(Conv{1, 2, 2, 1, Window{3, 3}}), InputError);
    EXPECT_THROW(output_shape(Conv{3, 8, 8, 4, Window{1, 1}, 2}), InputError);
    EXPECT_THROW(output_shape(Conv{1, 8, 8, 1, Window{3, 3, 0, 1}}), InputError);
    EXPECT_THROW(output_shape(Add{{4}}, {{4}}), InputError);
    EXPECT_THROW(output_shape(Add{{4}}, {{4}, {5}}), InputError);
    EXPECT_EQ(output_shape(Add{{4}}, {{4}, {4}}), (Shape{4}));
}

TEST(MatMul, CountsRowsOfASample) {
    const MatMul dense{1, 10, 84};
    EXPECT_EQ(parameters(dense), 850);
    EXPECT_EQ(flops(dense, Pass::forward, 3), Flops{3.0 * 10 * (2 * 84 + 1)});
    EXPECT_EQ(output_shape(MatMul{128, 64, 32}), (Shape{128, 64}));
}

// Weights of 2^62 and a bias of 2^62, then of more than 64 bits hold each: the sum is the largest number, not a wrapped
// one.
TEST(MatMul, OfMoreWeightsThanSixtyFourBitsHoldHasTheLargestNumber) {
    const std::int64_t large = std::int64_t{1} << 62;
    EXPECT_EQ(parameters(MatMul{1, large, 1, false}), large);
    EXPECT_EQ(parameters(MatMul{1, large, 1, true}), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(parameters(MatMul{1, large, large, true}), std::numeric_limits<std::int64_t>::max());
}

TEST(Concat, AddsChannels) {
    const Concat concat{{64, 128, 32, 32}, 28, 28};
    EXPECT_EQ(output_shape(concat), (Shape{256, 28, 28}));
    EXPECT_EQ(bytes_moved(concat, Pass::forward, DataType::f32), Bytes{4.0 * 2 * 256 * 28 * 28});
}

// 4 x 6 x 6 = 144 values in and out, 4 * 4 + 4 weights.
TEST(Fused, OperatorsMoveEachTensorOnce) {
    const auto floats = [](const Op& op, Pass pass) { return bytes_moved(op, pass, DataType::f32, 2).value / 4; };
    const Conv conv{4, 6, 6, 4, {}, 1, true}, relu{4, 6, 6, 4, {}, 1, true, true};
    EXPECT_EQ(floats(relu, Pass::forward), floats(conv, Pass::forward));
    EXPECT_EQ(floats(relu, Pass::backward_data), 2 * 3 * 144 + 20);  // diff_dst, dst -> diff_src; weights
    EXPECT_EQ(floats(relu, Pass::backward_weights), 2 * 3 * 144 + 20);
    EXPECT_EQ(flops(relu, Pass::forward), flops(conv, Pass::forward) + Flops{144});
    const MatMul gelu{1, 8, 8, false, Nonlinearity::gelu};
    EXPECT_EQ(floats(gelu, Pass::forward), 2 * 3 * 8 + 64);  // src -> dst and what is kept
    EXPECT_EQ(floats(gelu, Pass::backward_weights), 2 * 3 * 8 + 64);
    // Forward: src twice, the shortcut, dst. Backward: src, diff_dst and dst -> the shortcut's gradient; src and that
    // -> diff_src. Separately: 3 + 3 + 2 and 5 + 2 + 3.
    const BatchNorm three{.channels = 4, .height = 6, .width = 6, .relu = true, .add = true};
    EXPECT_EQ(floats(three, Pass::forward), 2 * 4 * 144 + 8);
    EXPECT_EQ(floats(three, Pass::backward_data), 2 * 7 * 144 + 8);
    EXPECT_EQ(floats(BatchNorm{4, 6, 6}, Pass::forward), 2 * 3 * 144 + 8);
    EXPECT_EQ(floats(BatchNorm{.channels = 4, .height = 6, .width = 6, .relu = true}, Pass::forward), 2 * 3 * 144 + 8);
    EXPECT_EQ(input_shapes(three), (std::vector<Shape>{{4, 6, 6}, {4, 6, 6}}));
    EXPECT_THROW(output_shape(three, {{4, 6, 6}}), InputError);
}

TEST(Passes, ExistWhereThereIsWork) {
    EXPECT_TRUE(has_pass(conv1, Pass::backward_weights));
    EXPECT_FALSE(has_pass(Activation{}, Pass::backward_weights));
    EXPECT_FALSE(has_pass(BatchNorm{}, Pass::backward_weights));  // backward_data makes both gradients
    EXPECT_TRUE(has_pass(BatchNorm{}, Pass::update));
    EXPECT_FALSE(has_pass(Flatten{}, Pass::forward));
    EXPECT_FALSE(has_pass(Input{}, Pass::forward));
    EXPECT_EQ(bytes_moved(Flatten{{8}}, Pass::forward, DataType::f32), Bytes{0});
}

TEST(Update, DoesNotDependOnTheBatch) {
    EXPECT_EQ(flops(conv1, Pass::update, 1), flops(conv1, Pass::update, 64));
    EXPECT_EQ(flops(SgdUpdate{parameters(conv1)}, Pass::update), flops(conv1, Pass::update));
    EXPECT_EQ(bytes_moved(SgdUpdate{100}, Pass::update, DataType::f32), Bytes{100 * 5 * 4.0});
}

TEST(Attention, CountsThePairsThatAreSeen) {
    // Two products of 2 * 5 FLOP a pair and head, 4 for the softmax; backward four products.
    const Attention whole{3, 4, 7, 5};
    EXPECT_EQ(flops(whole, Pass::forward, 2), Flops{2.0 * 3 * 4 * 7 * (4 * 5 + 4)});
    EXPECT_EQ(flops(whole, Pass::backward_data), Flops{3.0 * 4 * 7 * (8 * 5 + 4)});
    // Causal: the four queries see 4, 5, 6 and 7 keys.
    EXPECT_EQ(flops(Attention{3, 4, 7, 5, true}, Pass::forward), Flops{3.0 * 22 * 24});
    EXPECT_EQ(bytes_moved(whole, Pass::forward, DataType::f16), Bytes{2.0 * 15 * (4 + 7 + 7 + 4)});
    EXPECT_EQ(bytes_moved(whole, Pass::backward_data, DataType::f32), Bytes{4.0 * 15 * (2 * (4 + 7 + 7) + 2 * 4)});
    EXPECT_EQ(output_shape(whole), (Shape{4, 15}));
    EXPECT_EQ(input_shapes(Attention{3, 4, 4, 5, false, true}), (std::vector<Shape>{{4, 45}}));
    EXPECT_FALSE(has_pass(whole, Pass::backward_weights));
}

// Six heads in pairs share three of keys and values; keys of five numbers, values of two.
TEST(Attention, CountsSharedKeysOnce) {
    Attention op{6, 4, 7, 5};
    op.key_heads = 3;
    op.value_size = 2;
    EXPECT_EQ(input_shapes(op), (std::vector<Shape>{{4, 30}, {7, 15}, {7, 6}}));
    EXPECT_EQ(output_shape(op), (Shape{4, 12}));
    EXPECT_EQ(flops(op, Pass::forward), Flops{6.0 * 4 * 7 * (2 * 5 + 2 * 2 + 4)});
    EXPECT_EQ(flops(op, Pass::backward_data), Flops{6.0 * 4 * 7 * (4 * 5 + 4 * 2 + 4)});
    EXPECT_EQ(multiply_adds(op), 6.0 * 4 * 7 * (5 + 2));
    EXPECT_EQ(bytes_moved(op, Pass::forward, DataType::f16), Bytes{2.0 * (4 * 30 + 7 * 15 + 7 * 6 + 4 * 12)});
    op.key_heads = 4;
    EXPECT_THROW((void)output_shape(op), InputError);
}

// Three operations a number that is turned, of a row of 8 the first 6; what is compound takes what it says.
TEST(Elementwise, CountsWhatIsTurnedAndWhatIsCompound) {
    Elementwise turned{"rotary", {4, 8}, {{4, 8}}, {}, {{4, 2}}};
    EXPECT_EQ(flops(turned, Pass::forward), Flops{3.0 * 32});
    turned.numbers = {6};
    EXPECT_EQ(flops(turned, Pass::forward), Flops{3.0 * 24});
    const Elementwise compound{"compound", {3}, {{5, 7}}, {}, {}, {11}};
    EXPECT_EQ(flops(compound, Pass::forward), Flops{3.0 * 11});
    EXPECT_EQ(bytes_moved(compound, Pass::forward, DataType::f32), Bytes{4.0 * (35 + 3)});
}

TEST(Embedding, TouchesTheRowsThatItPicksAndClearsTheWholeGradient) {
    const Embedding table{4, 1000, 8, 6, 2};
    EXPECT_EQ(parameters(table), 8 * (1000 + 6 + 2));
    EXPECT_EQ(bytes_moved(table, Pass::forward, DataType::f32, 3), Bytes{3 * 4 * 4.0 + 4.0 * (2 * 3 * 4 * 8)});
    EXPECT_EQ(bytes_moved(table, Pass::backward_weights, DataType::f32, 3),
              Bytes{3 * 4 * 4.0 + 4.0 * (8 * 1008 + 3 * 3 * 4 * 8)});
    EXPECT_FALSE(has_pass(table, Pass::backward_data));
    const EmbeddingBag bags{2, 3, 100, 8};
    EXPECT_EQ(output_shape(bags), (Shape{2, 8}));
    EXPECT_EQ(parameters(bags), 2 * 100 * 8);
    EXPECT_EQ(flops(bags, Pass::forward), Flops{2.0 * 2 * 8});
}

// Four experts of width 6 and 2 slots in each of 3 groups' samples: 8 slots a group, of 4 samples 2 a sample.
TEST(GroupedMatMul, CountsTheSlotsOfItsExperts) {
    const GroupedMatMul experts{.experts = 4, .rows = 2, .n = 6, .k = 5, .sources = 1, .group = 4};
    EXPECT_EQ(input_shapes(experts), (std::vector<Shape>{{2, 5}}));
    EXPECT_EQ(output_shape(experts), (Shape{2, 6}));
    EXPECT_EQ(parameters(experts), 4 * (5 * 6 + 6));
    EXPECT_EQ(flops(experts, Pass::forward, 12), Flops{3 * 8 * 6 * (2.0 * 5 + 1)});
    EXPECT_EQ(flops(experts, Pass::backward_data, 12), Flops{3 * 8 * 6 * (2.0 * 5)});
    EXPECT_EQ(flops(experts, Pass::backward_weights, 12), Flops{3 * 8 * 6 * (2.0 * 5 + 1)});
    EXPECT_EQ(bytes_moved(experts, Pass::forward, DataType::f16, 12), Bytes{2.0 * (3 * 8 * (5 + 6) + 144)});
    EXPECT_EQ(rows_of_expert(experts, 12), 3 * 2);
    EXPECT_THROW(output_shape(GroupedMatMul{.experts = 3, .rows = 1, .group = 2}), InputError);
}

TEST(Routing, GivesEachSampleItsShareOfTheSlots) {
    const Routing routing{.tokens = 3, .width = 5, .experts = 4, .top = 2, .capacity = 2, .group = 4};
    EXPECT_EQ(input_shapes(DispatchTokens{routing}), (std::vector<Shape>{{3, 5}, {3, 4}}));
    EXPECT_EQ(output_shape(DispatchTokens{routing}), (Shape{2, 5}));
    EXPECT_EQ(input_shapes(CombineTokens{routing}), (std::vector<Shape>{{2, 5}, {3, 4}}));
    EXPECT_EQ(output_shape(CombineTokens{routing}), (Shape{3, 5}));
    EXPECT_EQ(flops(CombineTokens{routing}, Pass::forward), Flops{3 * (4 * 4 + 2 * 2 * 5)});
    EXPECT_THROW(output_shape(DispatchTokens{{.experts = 4, .top = 5}}), InputError);
    EXPECT_THROW(output_shape(DispatchTokens{{.experts = 1, .top = 2}}), InputError);
    EXPECT_THROW(output_shape(DispatchTokens{{.experts = 3, .group = 2}}), InputError);
}

TEST(MatMul, ThatIsTiedReadsWeightsButHasNone) {
    const MatMul scores{4, 1000, 8, false, {}, true};
    EXPECT_EQ(parameters(scores), 0);
    EXPECT_EQ(weights_read(scores), 8000);
    EXPECT_TRUE(has_pass(scores, Pass::backward_weights));
    EXPECT_FALSE(has_pass(scores, Pass::update));
    EXPECT_EQ(bytes_moved(scores, Pass::forward, DataType::f32), Bytes{4.0 * (4 * 8 + 4 * 1000 + 8000)});
}

TEST(Update, OfAdamAndLambMovesTwoMoments) {
    EXPECT_EQ(bytes_moved(AdamUpdate{100}, Pass::update, DataType::f32), Bytes{100 * 7 * 4.0});
    EXPECT_EQ(bytes_moved(LambUpdate{100, 3}, Pass::update, DataType::f32), Bytes{100 * 10 * 4.0});
    EXPECT_EQ(flops(AdamUpdate{100}, Pass::update, 5), Flops{1500});
}

}  // namespace
}  // namespace rehearse
