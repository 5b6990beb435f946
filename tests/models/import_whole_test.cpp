// SPDX-License-Identifier: Apache-2.0
// Files as a whole: open sizes, functions, names of modules, what depends on data, every operator of the standard.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "onnx_file.hpp"

namespace rehearse::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(WholeFile, OpenSizesAreGivenByName) {
    OnnxFile file({-1, 3, 8, 8});
    auto& shape = *file.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape.mutable_dim(0)->set_dim_param("batch");
    shape.mutable_dim(2)->set_dim_param("rows");
    file.node("Relu", {"x"}, "y");
    const std::string path = file.save("sizes.onnx");
    EXPECT_THAT([&] { import_onnx(path); }, ThrowsMessage<InputError>(HasSubstr("--sizes rows=SIZE")));
    EXPECT_EQ(import_onnx(path, {.sizes = {{"batch", 4}, {"rows", 5}}}).layers[1].output, (Shape{3, 5, 8}));
    EXPECT_THAT(
        [&] {
            import_onnx(path, {.sizes = {{"rows", 5}, {"rwos", 5}}});
        },
        ThrowsMessage<InputError>(HasSubstr("no input has an open dimension of that name")));
}

TEST(WholeFile, FunctionsOfTheFileArePutIn) {
    OnnxFile file({-1, 8}, 18);
    auto& function = *file.model.add_functions();
    function.set_name("Dense");
    function.set_domain("here");
    function.add_input("a");
    function.add_input("w");
    function.add_output("c");
    auto& inner = *function.add_node();
    inner.set_op_type("MatMul");
    inner.add_input("a");
    inner.add_input("w");
    inner.add_output("b");
    auto& after = *function.add_node();
    after.set_op_type("Relu");
    after.add_input("b");
    after.add_output("c");
    file.weights("w1", {8, 4}).weights("w2", {4, 3});
    file.node("Dense", {"x", "w1"}, "hidden").set_domain("here");
    file.node("Dense", {"hidden", "w2"}, "y").set_domain("here");
    const Network network = import_onnx(file.save("functions.onnx"));
    EXPECT_THAT(operators(network), ElementsAre("input:8", "matmul:m1n4k8", "activation:4:relu", "matmul:m1n3k4",
                                                "activation:3:relu", "softmaxloss:3"));
}

// A function `name` of one input and one output: `op` of it, `times` one after the other.
void add_chain(OnnxFile& file, const std::string& name, const std::string& op, int times) {
    auto& function = *file.model.add_functions();
    function.set_name(name);
    function.set_domain("here");
    function.add_input("v0");
    function.add_output("v" + std::to_string(times));
    for (int i = 0; i < times; ++i) {
        auto& node = *function.add_node();
        node.set_name("n" + std::to_string(i));
        node.set_op_type(op);
        if (op != "Relu") node.set_domain("here");
        node.add_input("v" + std::to_string(i));
        node.add_output("v" + std::to_string(i + 1));
    }
}

TEST(WholeFile, FunctionsInFunctionsNameTheirCallsOnce) {
    OnnxFile file({-1, 8}, 18);
    add_chain(file, "Inner", "Relu", 2);
    add_chain(file, "Outer", "Inner", 1);
    auto& call = file.node("Outer", {"x"}, "y");
    call.set_domain("here");
    call.set_name("block");
    const Network network = import_onnx(file.save("nested.onnx"));
    ASSERT_EQ(network.layers.size(), 4u);  // input, two activations, loss
    EXPECT_EQ(network.layers[1].name, "block.n0.n0");
    EXPECT_EQ(network.layers[2].name, "block.n0.n1");
}

TEST(WholeFile, FunctionsThatDoubleEachOtherAreRefused) {
    OnnxFile file({-1, 8}, 18);
    add_chain(file, "F0", "Relu", 2);
    for (int i = 1; i < 24; ++i) add_chain(file, "F" + std::to_string(i), "F" + std::to_string(i - 1), 2);
    file.node("F23", {"x"}, "y").set_domain("here");
    EXPECT_THAT([&] { import_onnx(file.save("doubling.onnx")); },
                ThrowsMessage<InputError>(HasSubstr("calls of functions make more than 200000 nodes")));
}

TEST(WholeFile, LayersAreNamedByTheirModules) {
    OnnxFile file({-1, 3, 8, 8}, 13);
    file.weights("layer1.0.conv1.weight", {4, 3, 3, 3});
    file.node("Conv", {"x", "layer1.0.conv1.weight"}, "a").set_name("/layer1/layer1.0/conv1/Conv");
    file.node("Relu", {"a"}, "b").set_name("/layer1/layer1.0/relu/Relu");
    file.node("Add", {"b", "a"}, "y").set_name("/layer1/layer1.0/Add");
    const Network network = import_onnx(file.save("modules.onnx"));
    EXPECT_EQ(network.layers[1].name, "layer1.0.conv1");
    EXPECT_EQ(network.layers[2].name, "layer1.0.relu");
    EXPECT_EQ(network.layers[3].name, "layer1.0.Add");
}

TEST(WholeFile, WhatDependsOnDataIsRefusedWithItsNode) {
    OnnxFile file({-1, 8}, 13);
    file.node("NonZero", {"x"}, "where");
    file.node("Relu", {"where"}, "y");
    EXPECT_THAT([&] { import_onnx(file.save("data.onnx")); },
                ThrowsMessage<InputError>(HasSubstr("NonZero node 'the_where': what it makes depends on data")));
}

// As a detector: an image without a batch, a convolution, and what tells its boxes apart.
TEST(WholeFile, ADetectorEndsWhereDataSayHowMuchIsComputed) {
    OnnxFile file({3, 8, 8}, 13);
    file.weights("conv.weight", {4, 3, 3, 3}).integers("front", {0});
    file.node("Unsqueeze", {"x", "front"}, "image");
    file.node("Conv", {"image", "conv.weight"}, "scores");
    file.node("NonZero", {"scores"}, "where");
    file.node("Relu", {"where"}, "boxes");
    file.node("Neg", {"boxes"}, "y");
    const std::string path = file.save("detector.onnx");
    EXPECT_THAT([&] { import_onnx(path); },
                ThrowsMessage<InputError>(AllOf(HasSubstr("NonZero node 'the_where'"), HasSubstr("--allow-unknown"))));
    const Network network = import_onnx(path, {.allow_unknown = true});
    EXPECT_EQ(parameters(network), 4 * 3 * 9);
    EXPECT_EQ(network.layers.back().name, "conv");
    EXPECT_THAT(network.notes, Contains(HasSubstr("without 3 values that follow from the NonZero node 'the_where'")));
}

TEST(WholeFile, OperatorsOfTheStandardDomainHaveAForm) {
    struct Case {
        const char* type;
        std::vector<std::string> inputs;
        const char* op;
    };
    const std::vector<Case> cases{
        {"HardSwish", {"x"}, "elementwise:4x6x5:hardswish:in4x6x5"},
        {"Erf", {"x"}, "elementwise:4x6x5:erf:in4x6x5"},
        {"Sqrt", {"x"}, "elementwise:4x6x5:sqrt:in4x6x5"},
        {"PRelu", {"x", "channel"}, "elementwise:4x6x5:prelu:in4x6x5:weights4x1x1"},
        {"Mul", {"x", "channel"}, "elementwise:4x6x5:mul:in4x6x5:weights4x1x1"},
        {"Transpose", {"x"}, "rearrangement:5x6x4:transpose:from4x6x5:by2,1,0"},
        {"ReduceMean", {"x"}, "pool:c4h6w5r6s5:pad0:stride1:average"},
        {"ReduceMax", {"x"}, "reduction:4x6x5:max:axes1,2:keep"},
        {"Pad", {"x", "pads"}, "rearrangement:4x8x7:pad:from4x6x5:by0,1,1"},
        {"Expand", {"x", "more"}, "rearrangement:2x4x6x5:expand:from4x6x5"},
        {"InstanceNormalization", {"x", "four", "four2"}, "normalization:4x6x5:sets4:gamma4:beta4:inner30"},
    };
    for (const Case& each : cases) {
        SCOPED_TRACE(each.type);
        OnnxFile file({1, 4, 6, 5}, 13);
        file.weights("channel", {4, 1, 1}).weights("four", {4}).weights("four2", {4});
        file.integers("pads", {0, 0, 1, 1, 0, 0, 1, 1}).integers("more", {2, 4, 6, 5});
        auto& node = file.node(each.type, each.inputs, "y");
        if (std::string(each.type) == "Transpose") set(node, "perm", {0, 3, 2, 1});
        if (std::string(each.type).starts_with("Reduce")) set(node, "axes", {2, 3});
        const Network network = import_onnx(file.save("form.onnx"));
        EXPECT_EQ(to_string(network.layers[1].op), each.op);
        expect_counts(network);
    }
}

}  // namespace
}  // namespace rehearse::models
