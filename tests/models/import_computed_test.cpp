// SPDX-License-Identifier: Apache-2.0
// Constants that are layers (weights that are computed, first states, blurs), loops of a known length, several images a
// sample, weights that are used more than once.
#include <limits>

#include <gmock/gmock.h>

#include "core/network.hpp"
#include "core/op.hpp"
#include "models/models.hpp"
#include "tests/models/imported.hpp"
#include "tests/models/onnx_file.hpp"

namespace rehearse::models {
namespace {

Network imported(const OnnxFile& file, bool values = false) {
    ImportOptions options;
    options.values = values;
    return import_onnx(file.save("computed.onnx"), options);
}

void fill(OnnxFile& file, const std::string& name, const Dims& dims) {
    file.weights(name, dims);
    auto& tensor = *file.model.mutable_graph()->mutable_initializer(file.model.graph().initializer_size() - 1);
    std::int64_t count = 1;
    for (const auto dim : dims) count *= dim;
    for (std::int64_t i = 0; i < count; ++i) tensor.add_float_data(static_cast<float>(i + 1));
}

// weight = g * v / |v| of each filter (Salimans and Kingma 2016), as PyTorch's weight_norm is exported.
OnnxFile weight_normalized() {
    OnnxFile file({-1, 3, 8, 8}, 13);
    fill(file, "conv.weight_g", {4, 1, 1, 1});
    fill(file, "conv.weight_v", {4, 3, 3, 3});
    set(file.node("ReduceL2", {"conv.weight_v"}, "length"), "axes", {1, 2, 3});
    file.node("Div", {"conv.weight_v", "length"}, "direction");
    file.node("Mul", {"direction", "conv.weight_g"}, "weight");
    file.node("Conv", {"x", "weight"}, "y");
    return file;
}

TEST(Computed, ANormalizedWeightCountsWithItsLength) {
    const Network network = imported(weight_normalized());
    EXPECT_EQ(parameters(network), 4 * 27 + 4);
    EXPECT_EQ(products(network), 6 * 6 * 4 * 27);
}

TEST(Computed, ANormalizedWeightRuns) {
    const Network network = imported(weight_normalized(), true);
    EXPECT_EQ(why_not_run(network), "");
    EXPECT_EQ(parameters(network), 4 * 27 + 4);
    EXPECT_EQ(products(network), 6 * 6 * 4 * 27);
}

TEST(Computed, ABlurIsNotTrained) {
    OnnxFile file({-1, 3, 8, 8}, 13);
    fill(file, "kernel", {3, 1, 3, 3});
    auto& buffers = *file.model.add_metadata_props();
    buffers.set_key("rehearse.buffers");
    buffers.set_value("kernel");
    auto& node = file.node("Conv", {"x", "kernel"}, "y");
    set(node, "group", std::int64_t{3});
    set(node, "strides", {2, 2});
    const Network network = imported(file, true);
    EXPECT_EQ(parameters(network), 0);
    EXPECT_EQ(products(network), 3 * 3 * 3 * 9);
    EXPECT_EQ(why_not_run(network), "");
}

// A cell's first step multiplies a state of zeros, which PyTorch computes as well.
TEST(Computed, AFirstStateIsMultiplied) {
    OnnxFile file({-1, 6}, 13);
    fill(file, "hh.weight", {6, 6});
    file.integers("first", {0}).integers("six", {6});
    file.node("Shape", {"x"}, "sizes");
    file.node("Gather", {"sizes", "first"}, "batch");
    set(file.node("Concat", {"batch", "six"}, "state_sizes"), "axis", std::int64_t{0});
    file.node("ConstantOfShape", {"state_sizes"}, "state");
    file.node("MatMul", {"state", "hh.weight"}, "turned");
    file.node("Add", {"x", "turned"}, "next");
    file.node("MatMul", {"next", "hh.weight"}, "y");
    const Network network = imported(file);
    EXPECT_EQ(parameters(network), 36);
    EXPECT_EQ(products(network), 2 * 36);
}

TEST(Computed, ADenseLayerThatIsUsedTwiceHasOneBias) {
    OnnxFile file({-1, 5, 6}, 13);
    fill(file, "fc.weight", {6, 6});
    fill(file, "fc.bias", {6});
    file.node("MatMul", {"x", "fc.weight"}, "a");
    file.node("Add", {"a", "fc.bias"}, "b");
    file.node("MatMul", {"b", "fc.weight"}, "c");
    file.node("Add", {"fc.bias", "c"}, "y");
    EXPECT_EQ(parameters(imported(file)), 42);
    EXPECT_EQ(products(imported(file)), 2 * 5 * 36);
}

TEST(Computed, PiecesOfASquareAreWeightsOfTheirOwn) {
    OnnxFile file({-1, 5, 6}, 13);
    fill(file, "in_proj", {6, 18});
    auto& cut = file.node("Split", {"in_proj"}, "q");
    cut.add_output("k");
    cut.add_output("v");
    set(cut, "axis", std::int64_t{1});
    for (const std::string piece : {"q", "k", "v"}) file.node("MatMul", {"x", piece}, piece + "x");
    file.node("Add", {"qx", "kx"}, "sum");
    file.node("Add", {"sum", "vx"}, "y");
    EXPECT_EQ(parameters(imported(file)), 6 * 18);
}

void constant_number(onnx::GraphProto& graph, const std::string& name, std::int64_t value, int type) {
    auto& tensor = *graph.add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(type);
    if (type == onnx::TensorProto::BOOL) tensor.add_int32_data(static_cast<std::int32_t>(value));
    if (type != onnx::TensorProto::BOOL) tensor.add_int64_data(value);
}

// for i in range(turns): x = tanh(x @ w); out.append(x)
OnnxFile loop(std::int64_t turns) {
    OnnxFile file({-1, 6}, 13);
    fill(file, "w", {6, 6});
    auto& graph = *file.model.mutable_graph();
    constant_number(graph, "turns", turns, onnx::TensorProto::INT64);
    constant_number(graph, "true", 1, onnx::TensorProto::BOOL);
    auto& node = file.node("Loop", {"turns", "true", "x"}, "last");
    node.add_output("all");
    auto& attribute = *node.add_attribute();
    attribute.set_name("body");
    attribute.set_type(onnx::AttributeProto::GRAPH);
    auto& body = *attribute.mutable_g();
    for (const char* name : {"i", "go_on", "state"}) body.add_input()->set_name(name);
    for (const char* name : {"goes_on", "next", "next"}) body.add_output()->set_name(name);
    const auto inner = [&](const std::string& type, const std::vector<std::string>& inputs, const std::string& output) {
        auto& added = *body.add_node();
        added.set_op_type(type);
        for (const auto& input : inputs) added.add_input(input);
        added.add_output(output);
    };
    inner("MatMul", {"state", "w"}, "product");
    inner("Tanh", {"product"}, "next");
    inner("Identity", {"go_on"}, "goes_on");
    set(file.node("ReduceSum", {"all"}, "sum"), "axes", std::vector<std::int64_t>{0});
    file.node("Add", {"sum", "last"}, "y");
    return file;
}

TEST(Flow, ALoopOfAKnownLengthIsItsTurns) {
    const Network network = imported(loop(4));
    EXPECT_EQ(products(network), 4 * 36);
    EXPECT_EQ(parameters(network), 36);
    EXPECT_THROW(imported(loop(60000)), InputError);
}

// As operator set 11 has a list that a scripted loop fills: a tensor that is cut into its rows.
TEST(Sequences, OfATensorsRowsAreKnown) {
    OnnxFile file({-1, 3, 4}, 11);
    auto& split = file.node("SplitToSequence", {"x"}, "rows");
    set(split, "axis", std::int64_t{1});
    set(split, "keepdims", std::int64_t{0});
    auto& joined = file.node("ConcatFromSequence", {"rows"}, "together");
    set(joined, "axis", std::int64_t{1});
    file.weights("fc.weight", {12, 2});
    file.node("MatMul", {"together", "fc.weight"}, "y");
    const Network network = import_onnx(file.save("rows.onnx"));
    EXPECT_EQ(network.layers[network.layers.size() - 2].output, Shape{2});
    EXPECT_EQ(products(network), 24);
}

// As repeat_interleave() of an open batch is exported: a list of sizes, which may differ.
TEST(Sequences, OfPiecesOfSizesThatAreListedAreKnown) {
    using List = std::vector<std::int64_t>;
    for (const auto& [sizes, expected] : {std::pair{List{1, 1, 1}, 8}, {List{1, 2}, 16}, {List{2}, 8}}) {
        OnnxFile file({-1, 3, 4}, 13);
        file.integers("sizes", sizes).integers("last", {-1});
        set(file.node("SplitToSequence", {"x", "sizes"}, "pieces"), "axis", std::int64_t{1});
        file.node("SequenceAt", {"pieces", "last"}, "piece");
        file.weights("fc.weight", {4, 2});
        file.node("MatMul", {"piece", "fc.weight"}, "y");
        const Network network = import_onnx(file.save("pieces.onnx"));
        EXPECT_EQ(products(network), expected) << sizes.size();
    }
    OnnxFile file({-1, 3, 4}, 13);
    set(file.integers("sizes", {2, 2}).node("SplitToSequence", {"x", "sizes"}, "pieces"), "axis", std::int64_t{1});
    EXPECT_THROW(import_onnx(file.save("pieces.onnx")), InputError);
}

// x.shape[2:] of a matrix, which an index of all its rows and columns leaves behind: a list of no sizes.
TEST(Sizes, OfNothingAreKnown) {
    OnnxFile file({-1, 6}, 14);
    file.integers("two", {2}).integers("many", {std::numeric_limits<std::int64_t>::max()}).integers("zero", {0});
    file.integers("pairs", {-1, 3, 2});
    file.node("Shape", {"x"}, "shape");
    file.node("Slice", {"shape", "two", "many", "zero"}, "rest");
    set(file.node("Concat", {"pairs", "rest"}, "sizes"), "axis", std::int64_t{0});
    file.node("Reshape", {"x", "sizes"}, "seen");
    file.node("Softmax", {"seen"}, "y");
    EXPECT_EQ(imported(file).layers.back().output, (Shape{3, 2}));
}

// x @ v of a vector v: the samples stay where they were, in files of fixed sizes, too.
TEST(Products, WithAVectorKeepTheirSamples) {
    OnnxFile file({2, 5, 4}, 13);
    file.weights("v", {4});
    file.node("MatMul", {"x", "v"}, "y");
    const Network network = imported(file);
    EXPECT_THAT(network.notes, testing::IsEmpty());
    EXPECT_EQ(products(network), 20);
}

TEST(Flow, ASequenceOfAKnownLengthIsWhatItHolds) {
    OnnxFile file({-1, 6}, 13);
    file.node("Tanh", {"x"}, "a");
    file.node("Sigmoid", {"x"}, "b");
    file.node("SequenceConstruct", {"a"}, "one");
    file.node("SequenceInsert", {"one", "b"}, "two");
    set(file.node("ConcatFromSequence", {"two"}, "y"), "axis", std::int64_t{1});
    EXPECT_EQ(imported(file).layers.back().op, (Op{SoftmaxLoss{.classes = 12}}));
}

// Frames of a film as images of one batch: {n, 5, 3, 8, 8} seen as {5 n, 3, 8, 8}.
TEST(Images, SeveralOfASampleAreAVolumeOfPlanes) {
    OnnxFile file({-1, 5, 3, 8, 8}, 13);
    file.weights("conv.weight", {4, 3, 3, 3}).integers("frames", {-1, 3, 8, 8}).integers("film", {-1, 5, 4, 3, 3});
    for (const char* name : {"bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}) fill(file, name, {4});
    file.node("Reshape", {"x", "frames"}, "images");
    file.node("Conv", {"images", "conv.weight"}, "seen");
    file.node("BatchNormalization", {"seen", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"}, "normal");
    file.node("Relu", {"normal"}, "bent");
    auto& pool = file.node("MaxPool", {"bent"}, "small");
    set(pool, "kernel_shape", {2, 2});
    set(pool, "strides", {2, 2});
    file.node("Reshape", {"small", "film"}, "y");
    const Network network = imported(file, true);
    EXPECT_EQ(products(network), 5 * 6 * 6 * 4 * 27);
    EXPECT_EQ(parameters(network), 4 * 27 + 8);
    EXPECT_EQ(elements(network.layers.back().output), 5 * 4 * 3 * 3);
    // One transposition to a volume; what is made stays one.
    int turned = 0;
    for (const Layer& layer : network.layers) turned += std::holds_alternative<Rearrangement>(layer.op) ? 1 : 0;
    EXPECT_EQ(turned, 1);
}

// Two heads of a clip, pooled each by the same filters: {n, 2, 4, 6, 8, 8} seen as {2 n, 4, 6, 8, 8}.
TEST(Images, SeveralVolumesOfASampleShareTheirFilters) {
    OnnxFile file({-1, 2, 4, 6, 8, 8}, 13);
    file.weights("conv.weight", {4, 1, 3, 3, 3})
        .integers("heads", {-1, 4, 6, 8, 8})
        .integers("clip", {-1, 2, 4, 3, 2, 2});
    file.node("Reshape", {"x", "heads"}, "volumes");
    auto& conv = file.node("Conv", {"volumes", "conv.weight"}, "seen");
    set(conv, "group", std::int64_t{4});
    set(conv, "pads", {1, 1, 1, 1, 1, 1});
    set(conv, "strides", {1, 2, 2});
    auto& pool = file.node("MaxPool", {"seen"}, "small");
    set(pool, "kernel_shape", {2, 2, 2});
    set(pool, "strides", {2, 2, 2});
    file.node("Reshape", {"small", "clip"}, "y");
    const Network network = imported(file, true);
    EXPECT_EQ(products(network), 2 * 4 * 6 * 4 * 4 * 27);
    EXPECT_EQ(parameters(network), 4 * 27);
    EXPECT_EQ(elements(network.layers.back().output), 2 * 4 * 3 * 2 * 2);
}

}  // namespace
}  // namespace rehearse::models
