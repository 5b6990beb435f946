// SPDX-License-Identifier: Apache-2.0
// What looks like an operator of ours and is another: pads that shift, heads that lie otherwise, scales that are
// computed or stand for rows. What these make as numbers tests/torch/training_operators.py holds to PyTorch.
#include <algorithm>

#include <gmock/gmock.h>

#include "core/network.hpp"
#include "core/op.hpp"
#include "models/models.hpp"
#include "tests/models/imported.hpp"
#include "tests/models/onnx_file.hpp"

namespace rehearse::models {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Network imported(const OnnxFile& file, bool values) {
    ImportOptions options;
    options.values = values;
    return import_onnx(file.save("unlike.onnx"), options);
}

void numbers(OnnxFile& file, const std::string& name, const Dims& dims) {
    file.weights(name, dims);
    auto& tensor = *file.model.mutable_graph()->mutable_initializer(file.model.graph().initializer_size() - 1);
    std::int64_t count = 1;
    for (const auto dim : dims) count *= dim;
    for (std::int64_t i = 0; i < count; ++i) tensor.add_float_data(static_cast<float>((i * 7) % 5 + 1));
}

TEST(Unlike, APadThatKeepsItsSizesMayShift) {
    OnnxFile file({-1, 5, 8}, 13);
    file.integers("pads", {0, 1, 0, 0, -1, 0});
    file.node("Pad", {"x", "pads"}, "y");
    const Network shifted = imported(file, true);
    ASSERT_EQ(shifted.layers.size(), 2U);
    const auto* pad = std::get_if<Rearrangement>(&shifted.layers[1].op);
    ASSERT_NE(pad, nullptr);
    EXPECT_THAT(pad->numbers, ElementsAre(1, 0));  // one row comes before the first

    OnnxFile nothing({-1, 5, 8}, 13);
    nothing.integers("pads", {0, 0, 0, 0, 0, 0});
    nothing.node("Pad", {"x", "pads"}, "z");
    nothing.node("Relu", {"z"}, "y");
    EXPECT_EQ(imported(nothing, true).layers.size(), 2U);  // input and ReLU
}

// x / rms(x) times (1 + w), as Gemma's networks have it.
OnnxFile rms_of(const Dims& scale, bool computed) {
    OnnxFile file({-1, 8, 8}, 13);
    numbers(file, "w", scale);
    file.constant("eps", 1e-6F).constant("one", 1);
    file.node("Mul", {"x", "x"}, "square");
    set(file.node("ReduceMean", {"square"}, "mean"), "axes", Dims{-1});
    file.node("Add", {"mean", "eps"}, "more");
    file.node("Sqrt", {"more"}, "root");
    file.node("Div", {"x", "root"}, "normal");
    if (computed) file.node("Add", {"w", "one"}, "scale");
    file.node("Mul", {"normal", computed ? "scale" : "w"}, "y");
    return file;
}

TEST(Unlike, AScaleThatIsComputedStaysBehindItsNormalization) {
    for (const bool values : {false, true}) {
        const Network network = imported(rms_of({8}, true), values);
        EXPECT_EQ(parameters(network), 8);
        EXPECT_EQ(why_not_run(network), "");
        // Who prices it takes the trained tensor for the scale, which costs as much.
        EXPECT_THAT(operators(network), Contains(HasSubstr(values ? "sets8:rms" : "sets8:gamma8:rms")));
    }
}

TEST(Unlike, AScaleOfRowsIsNoneOfFeatures) {
    for (const bool values : {false, true}) {
        EXPECT_THAT(operators(imported(rms_of({8}, false), values)), Contains(HasSubstr("gamma8")));
        EXPECT_THAT(operators(imported(rms_of({1, 8}, false), values)), Contains(HasSubstr("gamma8")));
        EXPECT_THAT(operators(imported(rms_of({8, 1}, false), values)), Not(Contains(HasSubstr("gamma"))));
    }
}

TEST(Unlike, ALayerNormalizationIsScaledByWhatIsComputed) {
    OnnxFile file({-1, 5, 8}, 17);
    numbers(file, "w", {8});
    numbers(file, "b", {8});
    file.node("Exp", {"w"}, "scale");
    set(file.node("LayerNormalization", {"x", "scale", "b"}, "y"), "axis", std::int64_t{-1});
    const Network network = imported(file, true);
    EXPECT_EQ(parameters(network), 16);
    EXPECT_EQ(why_not_run(network), "");
    EXPECT_THAT(operators(network), Contains(HasSubstr("exp")));
}

TEST(Unlike, ABoundBehindAFunctionIsNotDropped) {
    OnnxFile file({-1, 40}, 13);
    file.constant("least", -10).constant("most", 10);
    file.node("Sigmoid", {"x"}, "s");
    file.node("Mul", {"x", "s"}, "silu");
    file.node("Clip", {"silu", "least", "most"}, "y");
    const Network network = imported(file, true);
    EXPECT_THAT(operators(network), ElementsAre("input:40", "elementwise:40:silu:in40",
                                                "elementwise:40:clip:in40:by-10,10", "softmaxloss:40"));
}

TEST(Unlike, AHardSigmoidOfARelu6HasItsOwnSlope) {
    OnnxFile file({-1, 40}, 13);
    file.constant("three", 3).constant("none", 0).constant("six", 6);
    file.node("Add", {"x", "three"}, "more");
    file.node("Clip", {"more", "none", "six"}, "bounded");
    file.node("Div", {"bounded", "six"}, "y");
    EXPECT_THAT(operators(imported(file, true)),
                ElementsAre("input:40", "elementwise:40:hardsigmoid:in40:by0.16666667,0.5", "softmaxloss:40"));
}

TEST(Unlike, AConstantThatIsComputedKeepsItsAxis) {
    OnnxFile file({-1, 8, 8}, 13);
    numbers(file, "w", {8});
    file.node("Exp", {"w"}, "scale");
    set(file.node("Unsqueeze", {"scale"}, "column"), "axes", Dims{1});
    file.node("Mul", {"x", "column"}, "y");
    EXPECT_THAT(operators(imported(file, true)), Contains(HasSubstr("8x8:mul:in8x8+8x1")));
}

TEST(Unlike, ATableThatIsComputedIsPickedFromAsItIs) {
    OnnxFile file({-1, 6}, 13);
    file.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        onnx::TensorProto::INT64);
    numbers(file, "table", {11, 8});
    file.constant("tenth", 0.1F);
    file.node("Mul", {"table", "tenth"}, "small");
    file.node("Gather", {"small", "x"}, "y");
    const Network network = imported(file, true);
    EXPECT_EQ(why_not_run(network), "");
    EXPECT_THAT(operators(network), Contains(HasSubstr("takerows")));
    EXPECT_THAT(operators(imported(file, false)), Contains("embedding:t6v11c8"));
}

// Two heads of 4 over 5 tokens: numbers of a row as `seen` has them, turned by `order`.
OnnxFile attention(const Dims& seen, const Dims& order) {
    OnnxFile file({-1, 5, 8}, 13);
    for (const char* name : {"wq", "wk", "wv"}) numbers(file, name, {8, 8});
    file.integers("split", seen).integers("joined", {0, 5, 8}).constant("scale", 2);
    for (const std::string part : {"q", "k", "v"}) {
        file.node("MatMul", {"x", "w" + part}, part);
        file.node("Reshape", {part, "split"}, part + "h");
        set(file.node("Transpose", {part + "h"}, part + "t"), "perm", order);
    }
    set(file.node("Transpose", {"kt"}, "keys"), "perm", {0, 1, 3, 2});
    file.node("MatMul", {"qt", "keys"}, "scores");
    file.node("Div", {"scores", "scale"}, "scaled");
    set(file.node("Softmax", {"scaled"}, "p"), "axis", -1);
    file.node("MatMul", {"p", "vt"}, "o");
    set(file.node("Transpose", {"o"}, "ot"), "perm", seen[2] == 2 ? Dims{0, 2, 1, 3} : Dims{0, 2, 3, 1});
    file.node("Reshape", {"ot", "joined"}, "y");
    return file;
}

TEST(Unlike, HeadsLieSideBySideInAttention) {
    for (const bool values : {false, true}) {
        const Network ours = imported(attention({0, 5, 2, 4}, {0, 2, 1, 3}), values);
        EXPECT_THAT(operators(ours), Contains("attention:h2q5k5d4"));
        const Network others = imported(attention({0, 5, 4, 2}, {0, 3, 1, 2}), values);
        EXPECT_THAT(operators(others), Not(Contains(HasSubstr("attention"))));
        EXPECT_EQ(products(ours), products(others));
    }
}

TEST(Unlike, InterpolationGoesByTheScaleOfTheFile) {
    for (const bool exact : {true, false}) {
        OnnxFile file({-1, 2, 8, 8}, 13);
        const float scale = exact ? 1.5F : 1.7F;
        file.numbers("scales", {1, 1, scale, scale});
        auto& node = file.node("Resize", {"x", "", "scales"}, "y");
        set_text(node, "mode", "linear");
        set_text(node, "coordinate_transformation_mode", "pytorch_half_pixel");
        const auto resizes = [](const Network& network) {
            return std::ranges::any_of(operators(network),
                                       [](const std::string& op) { return op.starts_with("resize"); });
        };
        EXPECT_EQ(resizes(imported(file, true)), exact);  // else 13 pixels of 8 are 1.7 apart
        EXPECT_TRUE(resizes(imported(file, false)));
    }
}

TEST(Unlike, OfAFileThatNamesItsBuffersNoneIsGuessed) {
    for (const bool said : {false, true}) {
        OnnxFile file({-1, 8}, 13);
        file.model.set_producer_name("pytorch");
        file.numbers("decay", {0.0F, 0.125F, 0.25F, 0.375F, 0.5F, 0.625F, 0.75F, 0.875F});
        file.node("Mul", {"x", "decay"}, "y");
        if (said) file.model.add_metadata_props()->set_key("rehearse.buffers");
        EXPECT_EQ(parameters(imported(file, true)), said ? 8 : 0);
    }
}

TEST(Unlike, WhatIsRepeatedOrReadInPiecesCountsAsItsTensor) {
    OnnxFile repeated({-1, 4, 8, 8}, 13);
    numbers(repeated, "w", {1, 1, 3, 3});
    repeated.integers("times", {4, 1, 1, 1});
    repeated.node("Tile", {"w", "times"}, "filters");
    set(repeated.node("Conv", {"x", "filters"}, "y"), "group", std::int64_t{4});
    for (const bool values : {false, true}) EXPECT_EQ(parameters(imported(repeated, values)), 9);

    OnnxFile pieces({-1, 5, 8}, 13);
    numbers(pieces, "w", {8, 6});
    pieces.integers("zero", {0}).integers("two", {2}).integers("three", {3}).integers("last", {-1});
    pieces.node("Slice", {"w", "zero", "three", "last"}, "left");
    pieces.node("Slice", {"w", "zero", "two", "last"}, "narrow");
    pieces.node("MatMul", {"x", "left"}, "a");
    pieces.node("Identity", {"a"}, "y");
    pieces.node("MatMul", {"x", "narrow"}, "z");
    pieces.model.mutable_graph()->add_output()->set_name("z");
    EXPECT_EQ(parameters(imported(pieces, false)), 48);
}

}  // namespace
}  // namespace rehearse::models
