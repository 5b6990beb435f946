// SPDX-License-Identifier: Apache-2.0
// Graphs as exporters leave them: what they mean is written here by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "onnx_file.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Exported, AMatMulAndAnAddOfAConstantAreOneDenseLayer) {
    OnnxFile file({1, 20});
    file.weights("w", {20, 5}).weights("b", {5});
    file.node("MatMul", {"x", "w"}, "product");
    file.node("Add", {"b", "product"}, "y");
    const Network network = import_onnx(file.save("dense.onnx"));
    ASSERT_EQ(network.layers.size(), 3u);
    EXPECT_EQ(network.layers[1].op, (Op{MatMul{.m = 1, .n = 5, .k = 20, .bias = true}}));
    EXPECT_EQ(network.layers[2].op, Op{SoftmaxLoss{5}});
}

TEST(Exported, AProductThatIsReadTwiceKeepsItsAdd) {
    OnnxFile file({1, 20});
    file.weights("w", {20, 20}).weights("b", {20});
    file.node("MatMul", {"x", "w"}, "product");
    file.node("Add", {"product", "b"}, "sum");
    file.node("Add", {"sum", "product"}, "y");
    const Network network = import_onnx(file.save("twice.onnx"));
    EXPECT_EQ(network.layers[2].op, (Op{Elementwise{"add", {20}, {{20}}, {{20}}}}));
    EXPECT_EQ(parameters(network), 420);
}

// Two inputs of which the exporter was told to leave only one's samples open.
OnnxFile half_open() {
    OnnxFile file({-1, 8});
    auto& other = *file.model.mutable_graph()->add_input();
    other = file.model.graph().input(0);
    other.set_name("other");
    other.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_value(4);
    file.node("Mul", {"x", "other"}, "y");
    return file;
}

TEST(Exported, ABatchThatOneInputLeavesOpenIsThatOfTheOthers) {
    const std::string path = half_open().save("half_open.onnx");
    const Network network = import_onnx(path);
    EXPECT_EQ(network.layers[2].op, (Op{Elementwise{"mul", {8}, {{8}, {8}}}}));
    EXPECT_THAT(network.notes, testing::Contains(HasSubstr("the others have 4")));
    EXPECT_EQ(operators(import_onnx(path, {.sizes = {{"open", 4}}})), operators(network));
}

// The size that stands for an open batch is not shown.
TEST(Exported, AnotherBatchThanThatOfTheOthersIsRefused) {
    EXPECT_THAT(
        [path = half_open().save("sized.onnx")] {
            import_onnx(path, {.sizes = {{"open", 6}}});
        },
        ThrowsMessage<InputError>(HasSubstr("Nx8 and 4x8 do not broadcast; --allow-unknown")));
}

TEST(Exported, ABatchLeftOpenIsOneSample) {
    OnnxFile file({-1, 3, 8, 8});
    file.node("Relu", {"x"}, "y");
    EXPECT_EQ(import_onnx(file.save("open.onnx")).layers.back().output, (Shape{3, 8, 8}));
}

// The logits of contrastive learning.
TEST(Exported, ProductsOfPairsOfSamplesAreToldWhereTheirNumberIsOpen) {
    OnnxFile file({-1, 8});
    file.node("Transpose", {"x"}, "turned");
    file.node("MatMul", {"x", "turned"}, "y");
    const std::string path = file.save("pairs.onnx");
    const Network alone = import_onnx(path), together = import_onnx(path, {.sizes = {{"open", 6}}});
    EXPECT_THAT(alone.notes, testing::Contains(HasSubstr("each pair of samples, and a sample alone is counted; --sizes "
                                                         "open=SAMPLES takes")));
    EXPECT_EQ(elements(alone.layers.back().output), 1);
    EXPECT_THAT(together.notes, testing::Contains(HasSubstr("one sample here is all that the file feeds in")));
    EXPECT_EQ(elements(together.layers.back().output), 36);
}

TEST(Exported, ABatchOfFourIsFourTimesOneSample) {
    OnnxFile file({4, 3, 8, 8});
    file.weights("w", {10, 192}).integers("flat", {4, -1});
    file.node("Reshape", {"x", "flat"}, "features");
    set(file.node("Gemm", {"features", "w"}, "y"), "transB", 1);
    const Network network = import_onnx(file.save("four.onnx"));
    EXPECT_EQ(network.layers[0].op, (Op{Input{{3, 8, 8}}}));
    EXPECT_EQ(network.layers[2].op, (Op{MatMul{.m = 1, .n = 10, .k = 192, .bias = false}}));
}

TEST(Exported, AnImageSizeLeftOpenIsRefused) {
    OnnxFile file({1, 3, -1, 8});
    file.node("Relu", {"x"}, "y");
    EXPECT_THAT([&] { import_onnx(file.save("open.onnx")); },
                ThrowsMessage<InputError>(HasSubstr("input 'x': dimension 2 ('open') is left open")));
}

TEST(Exported, ArithmeticOnShapesBeforeAReshapeIsNoLayer) {
    // x.view(x.size(0), -1) as PyTorch writes it.
    OnnxFile file({1, 3, 8, 8}, 13);
    file.integers("zero", {0}).integers("rest", {-1});
    file.node("Shape", {"x"}, "shape");
    file.node("Gather", {"shape", "zero"}, "batch");
    set(file.node("Concat", {"batch", "rest"}, "target"), "axis", 0);
    file.node("Reshape", {"x", "target"}, "y");
    const Network network = import_onnx(file.save("view.onnx"));
    ASSERT_EQ(network.layers.size(), 3u);
    EXPECT_EQ(network.layers[1].op, (Op{Flatten{{3, 8, 8}}}));
}

TEST(Exported, ASoftmaxOverOnePixelBecomesAFlattenAndTheLoss) {
    OnnxFile file({1, 10, 1, 1}, 9);
    file.node("Softmax", {"x"}, "y");
    const Network network = import_onnx(file.save("pixel.onnx"));
    ASSERT_EQ(network.layers.size(), 3u);
    EXPECT_EQ(network.layers[2].op, Op{SoftmaxLoss{10}});
}

TEST(Exported, ASoftmaxOverTheRowsOfAnImageGoesAlongThem) {
    OnnxFile file({1, 10, 4, 4}, 13);
    set(file.node("Softmax", {"x"}, "y"), "axis", 2);
    EXPECT_EQ(import_onnx(file.save("pixels.onnx")).layers.back().op, (Op{SoftmaxAlong{{10, 4, 4}, 1}}));
}

TEST(Exported, DropoutsRatioIsReadFromItsAttributeOrItsInput) {
    OnnxFile old({1, 10}, 9);
    auto& ratio = *old.node("Dropout", {"x"}, "y").add_attribute();
    ratio.set_name("ratio");
    ratio.set_type(onnx::AttributeProto::FLOAT);
    ratio.set_f(0.25F);
    EXPECT_EQ(std::get<Dropout>(import_onnx(old.save("old.onnx")).layers[1].op).keep, 0.75);

    OnnxFile now({1, 10}, 13);
    auto& tensor = *now.model.mutable_graph()->add_initializer();
    tensor.set_name("ratio");
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_float_data(0.125F);
    now.node("Dropout", {"x", "ratio"}, "y");
    EXPECT_EQ(std::get<Dropout>(import_onnx(now.save("now.onnx")).layers[1].op).keep, 0.875);
}

TEST(Exported, RunningMeanAndVarianceAreStateNotParameters) {
    OnnxFile file({1, 6, 4, 4});
    file.weights("gamma", {6}).weights("beta", {6}).weights("mean", {6}).weights("variance", {6});
    file.node("BatchNormalization", {"x", "gamma", "beta", "mean", "variance"}, "y");
    const Network network = import_onnx(file.save("norm.onnx"));
    EXPECT_EQ(parameters(network), 12);
    EXPECT_EQ(network.state, 12);
}

TEST(Exported, NodesWithoutOrWithEqualNamesGetNamesOfTheirOwn) {
    OnnxFile file({1, 6, 4, 4});
    file.node("Relu", {"x"}, "a").clear_name();
    file.node("Relu", {"a"}, "b:0").clear_name();
    file.node("Relu", {"b:0"}, "c").set_name("input");
    file.node("Relu", {"c"}, "y").set_name("a");
    const Network network = import_onnx(file.save("names.onnx"));
    std::vector<std::string> names;
    for (const Layer& layer : network.layers) names.push_back(layer.name);
    EXPECT_THAT(names, testing::ElementsAre("input", "a", "b_0", "input#1", "a#2"));
}

struct Wrong {
    const char* name;
    OnnxFile file;
    const char* message;
};

std::vector<Wrong> wrong_graphs() {
    std::vector<Wrong> wrong;
    const auto graph = [&](const char* name, const char* message, const Dims& input = {1, 4, 8, 8}) -> OnnxFile& {
        wrong.push_back({name, OnnxFile(input), message});
        return wrong.back().file;
    };
    wrong.reserve(16);
    graph("no_such_value", "reads 'ghost', which no node before it makes").node("Relu", {"ghost"}, "y");
    graph("no_weights", "Conv node 'the_y': it has no input 1").node("Conv", {"x"}, "y");
    graph("flat_weights", "are 8x4, not a tensor of 4").weights("w", {8, 4}).node("Conv", {"x", "w"}, "y");
    graph("other_channels", "do not fit 4 channels").weights("w", {8, 3, 3, 3}).node("Conv", {"x", "w"}, "y");
    set(graph("no_groups", "'group' of 0 is impossible").weights("w", {8, 4, 3, 3}).node("Conv", {"x", "w"}, "y"),
        "group", 0);
    set(graph("no_stride", "'strides' of 0 is impossible").weights("w", {8, 4, 3, 3}).node("Conv", {"x", "w"}, "y"),
        "strides", {1, 0});
    set(graph("three_strides", "3 values in 'strides', not 2").weights("w", {8, 4, 3, 3}).node("Conv", {"x", "w"}, "y"),
        "strides", {1, 1, 1});
    set(graph("negative_pad", "padding of -1").weights("w", {8, 4, 3, 3}).node("Conv", {"x", "w"}, "y"), "pads",
        {-1, 0, 0, 0});
    set(graph("impossible_groups", "'num_groups' of 4294967296 is impossible")
            .weights("w", {4})
            .node("GroupNormalization", {"x", "w", "w"}, "y"),
        "num_groups", std::int64_t{1} << 32);
    graph("big_window", "does not fit").weights("w", {8, 4, 9, 9}).node("Conv", {"x", "w"}, "y");
    graph("no_kernel", "it has no kernel_shape").node("MaxPool", {"x"}, "y");
    set_text(graph("odd_auto_pad", "auto_pad 'SOME' does not exist")
                 .weights("w", {8, 4, 3, 3})
                 .node("Conv", {"x", "w"}, "y"),
             "auto_pad", "SOME");
    graph("huge_batch", "a batch of 1099511627776 samples", {std::int64_t{1} << 40, 4}).node("Relu", {"x"}, "y");
    graph("dense_on_image", "it reads 1x4x8x8, not a matrix").weights("w", {4, 4}).node("Gemm", {"x", "w"}, "y");
    graph("two_tensors", "two initializers are called 'w'")
        .weights("w", {8, 4, 3, 3})
        .weights("w", {8, 4, 1, 1})
        .node("Conv", {"x", "w"}, "y");
    OnnxFile& twice = graph("made_twice", "Relu node 'the_y': 'y' is made already");
    twice.node("Relu", {"x"}, "y");
    twice.node("Relu", {"x"}, "y");
    return wrong;
}

TEST(WrongGraph, IsRefusedWithItsNodeAndReason) {
    for (const Wrong& wrong : wrong_graphs()) {
        SCOPED_TRACE(wrong.name);
        const std::string path = wrong.file.save("wrong.onnx");
        EXPECT_THAT([&] { import_onnx(path); }, ThrowsMessage<InputError>(HasSubstr(wrong.message)));
    }
}

}  // namespace
}  // namespace rehearse::models
