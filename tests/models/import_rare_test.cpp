// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX's standard domain that few networks have: shapes, operations and bytes counted by hand.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "onnx_file.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// The layer behind the input, which computes `operations` of one sample; a loss may follow.
Layer only_layer(const OnnxFile& file, double operations) {
    const Network network = import_onnx(file.save("rare.onnx"));
    EXPECT_LE(network.layers.size(), network.layers.back().name == "loss" ? 3U : 2U);
    EXPECT_DOUBLE_EQ(flops(network.layers.at(1).op, Pass::forward).value, operations);
    EXPECT_NO_THROW(check(network));
    for (const Layer& layer : network.layers) {
        const Problem problem{layer.op, Pass::forward, 2, DataType::f32};
        EXPECT_EQ(parse_problem(to_string(problem)), problem);
    }
    return network.layers.at(1);
}

// A 2x2 window: four squares, four sums, a root.
TEST(Rare, PoolsOfAnyNorm) {
    OnnxFile file({-1, 3, 4, 6}, 11);
    auto& node = file.node("LpPool", {"x"}, "y");
    set(node, "kernel_shape", Dims{2, 2});
    set(node, "strides", Dims{2, 2});
    EXPECT_EQ(only_layer(file, 3 * 2 * 3 * (4 * 2 + 1)).output, (Shape{3, 2, 3}));
    OnnxFile whole({-1, 3, 4, 6}, 11);
    set(whole.node("GlobalLpPool", {"x"}, "y"), "p", 1);
    EXPECT_EQ(only_layer(whole, 3 * 4 * 6 * 2).output, (Shape{3, 1, 1}));
}

// Four neighbours, a multiply-add each.
TEST(Rare, PointsSampledFromAnImage) {
    OnnxFile file({-1, 3, 8, 8}, 16);
    auto& grid = *file.model.mutable_graph()->add_input();
    grid = file.model.graph().input(0);
    grid.set_name("grid");
    auto& shape = *grid.mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.mutable_dim(1)->set_dim_value(5);
    shape.mutable_dim(2)->set_dim_value(6);
    shape.mutable_dim(3)->set_dim_value(2);
    file.node("GridSample", {"x", "grid"}, "y");
    const Network network = import_onnx(file.save("grid.onnx"));
    EXPECT_EQ(network.layers.back().output, (Shape{3, 5, 6}));
    EXPECT_EQ(flops(network, Pass::forward).value, 3 * 5 * 6 * 8);
    // Forward reads the image and the grid and writes the result, four bytes each.
    EXPECT_EQ(bytes_moved(network.layers.back().op, Pass::forward, DataType::f32).value,
              4 * (3 * 64 + 5 * 6 * 2 + 3 * 5 * 6));
}

// Of 3x3: 3 quotients, then 2x2 and 1 multiply-adds, then two products of the diagonal.
TEST(Rare, Determinants) {
    OnnxFile file({-1, 5, 3, 3}, 11);
    file.node("Det", {"x"}, "y");
    EXPECT_EQ(only_layer(file, 5 * (3 + 2 * (4 + 1) + 2)).output, Shape{5});
}

// Eight signals of 16 numbers: 5 n log2 n each, as a fast transform is counted.
TEST(Rare, FourierTransforms) {
    OnnxFile file({-1, 8, 16, 1}, 17);
    auto& node = file.node("DFT", {"x"}, "y");
    set(node, "axis", 2);
    set(node, "onesided", 1);
    EXPECT_EQ(only_layer(file, 8 * 5 * 16 * 4).output, (Shape{8, 9, 2}));
}

// 18 taps of two channels at 4x4 pixels, of four neighbours each; then 3 filters over them.
TEST(Rare, DeformableConvolutions) {
    OnnxFile file({-1, 2, 6, 6}, 19);
    file.weights("w", {3, 2, 3, 3}).weights("o", {18, 1, 1, 1});
    auto& offsets = file.node("Conv", {"x", "v"}, "offsets");
    file.weights("v", {18, 2, 3, 3});
    (void)offsets;
    file.node("DeformConv", {"x", "w", "offsets"}, "y");
    const Network network = import_onnx(file.save("deform.onnx"));
    EXPECT_EQ(network.layers.back().output, (Shape{3, 4, 4}));
    EXPECT_EQ(parameters(network), 18 * 2 * 9 + 3 * 2 * 9);
    const double products = 2.0 * (18 * 18 + 3 * 18) * 16, sampled = 18 * 16 * 8;
    EXPECT_EQ(flops(network, Pass::forward).value, products + sampled);
}

TEST(Rare, ColumnsBackToAnImage) {
    OnnxFile file({-1, 12, 9}, 18);  // three channels of 2x2 windows at 3x3 places
    file.integers("image", {4, 4}).integers("block", {2, 2});
    file.node("Col2Im", {"x", "image", "block"}, "y");
    EXPECT_EQ(only_layer(file, 12 * 9).output, (Shape{3, 4, 4}));
}

TEST(Rare, QuantizedProductsCostWhatTheirsDo) {
    OnnxFile file({-1, 3, 5, 5}, 13);
    file.weights("w", {4, 3, 3, 3});
    file.node("DynamicQuantizeLinear", {"x"}, "bytes").add_output("scale");
    file.model.mutable_graph()->mutable_node(0)->add_output("zero");
    file.node("ConvInteger", {"bytes", "w", "zero"}, "y");
    const Network network = import_onnx(file.save("quantized.onnx"));
    EXPECT_EQ(network.layers.back().output, (Shape{4, 3, 3}));
    EXPECT_EQ(multiply_adds(network.layers.back().op), 4 * 9 * 27);
}

TEST(Rare, OperatorSetsBeyondOurLibrarys) {
    OnnxFile file({-1, 8, 64}, 23);
    file.weights("k", {64, 16}).weights("v", {64, 16});
    file.node("MatMul", {"x", "k"}, "keys");
    file.node("MatMul", {"x", "v"}, "values");
    auto& node = file.node("Attention", {"x", "keys", "values"}, "rows");
    set(node, "q_num_heads", 8);
    set(node, "kv_num_heads", 2);
    set(node, "is_causal", 1);
    file.node("Swish", {"rows"}, "y");
    const Network network = import_onnx(file.save("newer.onnx"));
    Attention heads{8, 8, 8, 8, true};
    heads.key_heads = 2;
    EXPECT_EQ(network.layers[3].op, Op(heads));
    EXPECT_EQ(to_string(network.layers[4].op), "elementwise:8x64:silu:in8x64");
}

// Periodic and symmetric weights of eight samples, which follow from their number.
TEST(Rare, WindowsOfFramesAreKnown) {
    const auto window = [](const char* type, std::int64_t periodic) {
        OnnxFile file({-1, 8}, 17);
        file.integers("size", {8});
        set(file.node(type, {"size"}, "window"), "periodic", periodic);
        file.node("Mul", {"x", "window"}, "y");
        const Network network = import_onnx(file.save("window.onnx"), {.values = true});
        EXPECT_EQ(parameters(network), 0);
        return network.layers[1].given ? network.layers[1].given->fixed.at(0) : std::vector<float>(8);
    };
    const auto hann = window("HannWindow", 1), hamming = window("HammingWindow", 0),
               blackman = window("BlackmanWindow", 1);
    EXPECT_NEAR(hann[2], 0.5, 1e-6);
    EXPECT_NEAR(hann[4], 1, 1e-6);
    EXPECT_NEAR(hamming[0], 4.0 / 46, 1e-6);  // 25/46 - 21/46
    EXPECT_NEAR(hamming[7], 4.0 / 46, 1e-6);
    EXPECT_NEAR(blackman[2], 0.34, 1e-6);  // 0.42 - 0.08
    EXPECT_NEAR(blackman[4], 1, 1e-6);
}

// Of what a number is cast to be like only the type counts: it stays one number.
TEST(Rare, ACastToAnothersTypeIsOfItsFirstOperand) {
    OnnxFile file({-1, 4, 6}, 19);
    file.constant("two", 2);
    file.node("CastLike", {"two", "x"}, "same");
    file.node("Mul", {"x", "same"}, "y");
    const Network network = import_onnx(file.save("like.onnx"), {});
    EXPECT_THAT(operators(network), testing::ElementsAre("input:4x6", "elementwise:4x6:mul:in4x6:by2"));
}

// What is read for its sizes alone is computed by nobody: the transposition costs nothing.
TEST(Rare, WhatOnlySizesAreAskedOfIsNoLayer) {
    OnnxFile file({-1, 4, 6}, 13);
    file.node("Transpose", {"x"}, "turned");
    file.node("Shape", {"turned"}, "sizes");
    file.node("Size", {"turned"}, "size");
    file.node("Relu", {"x"}, "y");
    EXPECT_THAT(operators(import_onnx(file.save("unread.onnx"), {})),
                testing::ElementsAre("input:4x6", "activation:4x6:relu"));
}

TEST(Rare, RefusesDataAndTextWithItsReason) {
    OnnxFile data({-1, 8}, 13);
    data.node("NonZero", {"x"}, "y");
    EXPECT_THAT([&] { (void)import_onnx(data.save("nonzero.onnx")); },
                ThrowsMessage<InputError>(testing::AllOf(HasSubstr("NonZero"), HasSubstr("depends on data"))));
    OnnxFile text({-1, 8}, 10);
    text.node("StringNormalizer", {"x"}, "y");
    EXPECT_THAT([&] { (void)import_onnx(text.save("text.onnx")); },
                ThrowsMessage<InputError>(testing::AllOf(HasSubstr("StringNormalizer"), HasSubstr("text"))));
}

}  // namespace
}  // namespace rehearse::models
