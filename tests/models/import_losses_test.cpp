// SPDX-License-Identifier: Apache-2.0
// Losses that a graph computes itself, masks and ids that are fed in, tensors that several nodes share or nobody
// trains.
#include <gmock/gmock.h>

#include <cmath>

#include "core/network.hpp"
#include "core/op.hpp"
#include "models/models.hpp"
#include "tests/models/imported.hpp"
#include "tests/models/onnx_file.hpp"

namespace rehearse::models {
namespace {

Network imported(const OnnxFile& file) {
    ImportOptions options;
    options.values = true;
    return import_onnx(file.save("losses.onnx"), options);
}

template <typename Kind>
std::vector<const Layer*> layers_of(const Network& network) {
    std::vector<const Layer*> found;
    for (const Layer& layer : network.layers)
        if (std::holds_alternative<Kind>(layer.op)) found.push_back(&layer);
    return found;
}

void add_input(OnnxFile& file, const std::string& name, onnx::TensorProto::DataType type, const Dims& dims) {
    auto& input = *file.model.mutable_graph()->add_input();
    input.set_name(name);
    auto& tensor = *input.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    for (const auto dim : dims) {
        auto& added = *tensor.mutable_shape()->add_dim();
        if (dim < 0) added.set_dim_param("open");
        if (dim >= 0) added.set_dim_value(dim);
    }
}

void make_integers(OnnxFile& file) {
    file.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        onnx::TensorProto::INT64);
}

void add_values(OnnxFile& file, const std::string& name, const Dims& dims, const std::vector<double>& values) {
    file.weights(name, dims);
    auto& tensor = *file.model.mutable_graph()->mutable_initializer(file.model.graph().initializer_size() - 1);
    for (const double value : values) tensor.add_float_data(static_cast<float>(value));
}

// The distance of a dense layer's result from a target, squared.
OnnxFile squares() {
    OnnxFile file({-1, 8}, 13);
    add_input(file, "target", onnx::TensorProto::FLOAT, {-1, 4});
    file.weights("dense.weight", {8, 4}).constant("two", 2);
    file.node("MatMul", {"x", "dense.weight"}, "scores");
    file.node("Sub", {"scores", "target"}, "apart");
    file.node("Pow", {"apart", "two"}, "squares");
    return file;
}

TEST(Losses, AMeanOverTheSamplesIsTrainedFor) {
    OnnxFile file = squares();
    set(file.node("ReduceMean", {"squares"}, "y"), "keepdims", 0);
    const Network network = imported(file);
    EXPECT_EQ(why_not_run(network), "");
    EXPECT_EQ(network.layers.back().op, (Op{TermsLoss{1, 1}}));
    EXPECT_EQ(network.layers.back().name, "loss");
    ASSERT_EQ(layers_of<Input>(network).size(), 2U);
    EXPECT_EQ(layers_of<Input>(network)[1]->name, "target");
}

TEST(Losses, AFactorOfAMeanIsInItsTerms) {
    OnnxFile file = squares();
    file.constant("tenth", 0.1F);
    set(file.node("ReduceMean", {"squares"}, "mean"), "keepdims", 0);
    file.node("Mul", {"mean", "tenth"}, "y");
    const Network network = imported(file);
    const auto times = layers_of<Elementwise>(network);
    const Layer& turned = *times[times.size() - 2];
    ASSERT_NE(turned.given, nullptr);
    EXPECT_EQ(turned.given->fixed, (std::vector<std::vector<float>>{{0, 0, -0.1F}}));
    EXPECT_EQ(network.layers.back().op, (Op{TermsLoss{1, 1}}));
}

TEST(Losses, WhatIsComputedOfALossIsPricedAndNotRun) {
    OnnxFile file = squares();
    set(file.node("ReduceMean", {"squares"}, "mean"), "keepdims", 0);
    file.node("Exp", {"mean"}, "y");
    EXPECT_THAT(why_not_run(imported(file)), testing::HasSubstr("brings samples together"));
}

OnnxFile classes(const std::string& loss) {
    OnnxFile file({-1, 8}, 13);
    add_input(file, "wanted", onnx::TensorProto::INT64, {-1});
    file.weights("dense.weight", {8, 4});
    file.node("MatMul", {"x", "dense.weight"}, "scores");
    if (loss == "NegativeLogLikelihoodLoss") set(file.node("LogSoftmax", {"scores"}, "logarithms"), "axis", 1);
    file.node(loss, {loss == "NegativeLogLikelihoodLoss" ? "logarithms" : "scores", "wanted"}, "y");
    return file;
}

TEST(Losses, LabelsThatAreFedInAreTheLosss) {
    for (const std::string loss : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}) {
        const Network network = imported(classes(loss));
        EXPECT_EQ(why_not_run(network), "");
        EXPECT_EQ(network.layers.back().op, (Op{SoftmaxLoss{4}})) << loss;
        EXPECT_EQ(layers_of<Input>(network).size(), 1U);
        EXPECT_TRUE(layers_of<SoftmaxAlong>(network).empty());
    }
}

TEST(Losses, ASumIsPricedAndNotRun) {
    OnnxFile file = classes("SoftmaxCrossEntropyLoss");
    set_text(*file.model.mutable_graph()->mutable_node(1), "reduction", "sum");
    EXPECT_THAT(why_not_run(imported(file)), testing::HasSubstr("'sum'"));
}

// A program that weighs the loss of each token itself asks for all of them: log-softmax, and the labels' rows of it.
TEST(Losses, OfEachTokenStayInTheGeneralForm) {
    OnnxFile file({-1, 5, 3}, 13);
    auto& labels = *file.model.mutable_graph()->add_input();
    labels = file.model.graph().input(0);
    labels.set_name("labels");
    auto& type = *labels.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::INT64);
    type.mutable_shape()->mutable_dim()->DeleteSubrange(1, 1);
    file.weights("classes", {5});
    set_text(file.node("SoftmaxCrossEntropyLoss", {"x", "labels", "classes"}, "rows"), "reduction", "none");
    set(file.node("ReduceMean", {"rows"}, "y"), "keepdims", 0);
    const Network network = import_onnx(file.save("each_token.onnx"));
    EXPECT_EQ(parameters(network), 5);
    ASSERT_EQ(layers_of<SoftmaxAlong>(network).size(), 1U);
    EXPECT_EQ(layers_of<SoftmaxAlong>(network).front()->op, Op(SoftmaxAlong{.shape = {5, 3}, .axis = 0, .log = true}));
    EXPECT_TRUE(is_loss(network.layers.back().op));
}

// ids[:, :-1] are read, ids[:, 1:] asked for: of a text of 5, labels 1 to 4.
TEST(Losses, WhatFollowsEachTokenIsTakenFromTheText) {
    OnnxFile file({-1, 5}, 13);
    make_integers(file);
    file.weights("words", {10, 8}).integers("zero", {0}).integers("one", {1}).integers("four", {4});
    file.integers("many", {100}).integers("rows", {-1, 10}).integers("flat", {-1}).weights("head", {8, 10});
    file.node("Slice", {"x", "zero", "four", "one"}, "read");
    file.node("Slice", {"x", "one", "many", "one"}, "next");
    file.node("Gather", {"words", "read"}, "embedded");
    file.node("MatMul", {"embedded", "head"}, "scores");
    file.node("Reshape", {"scores", "rows"}, "all_scores");
    file.node("Reshape", {"next", "flat"}, "all_next");
    file.node("SoftmaxCrossEntropyLoss", {"all_scores", "all_next"}, "y");
    const Network network = imported(file);
    EXPECT_EQ(why_not_run(network), "");
    const Layer& loss = network.layers.back();
    EXPECT_EQ(loss.op, (Op{SoftmaxLoss{.classes = 10, .rows = 4}}));
    ASSERT_NE(loss.given, nullptr);
    EXPECT_EQ(loss.given->places, (std::vector<std::vector<std::int32_t>>{{1, 2, 3, 4}}));
    ASSERT_NE(network.layers.front().given, nullptr);
    EXPECT_EQ(network.layers.front().given->places, (std::vector<std::vector<std::int32_t>>{{0, 1, 2, 3}}));
}

// A mask of integers, and one that follows from the ids.
TEST(Fed, MasksAreLayersOfWhatIsFedIn) {
    OnnxFile file({-1, 6}, 13);
    make_integers(file);
    add_input(file, "mask", onnx::TensorProto::INT64, {-1, 6});
    file.weights("words", {10, 8}).integers("zero", {0}).integers("last", {2}).constant("low", -1e9F);
    file.node("Gather", {"words", "x"}, "embedded");
    file.node("Equal", {"x", "zero"}, "ends");
    file.node("Equal", {"mask", "zero"}, "hidden");
    file.node("Or", {"ends", "hidden"}, "either");
    file.node("Unsqueeze", {"either", "last"}, "wide");
    file.node("Where", {"wide", "low", "embedded"}, "y");
    const Network network = imported(file);
    EXPECT_EQ(why_not_run(network), "");
    EXPECT_EQ(layers_of<Input>(network).size(), 3U);  // ids, and both as numbers
    EXPECT_TRUE(find_layer(network, "mask").has_value());
}

TEST(Fed, BagsOfOneSizeAreRowsPickedTogether) {
    OnnxFile file({-1, 3}, 13);
    make_integers(file);
    file.weights("table", {20, 4}).integers("flat", {-1}).integers("start", {0}).integers("three", {3});
    file.integers("axis", {0}).integers("index", {0});
    file.node("Reshape", {"x", "flat"}, "ids");
    file.node("Shape", {"x"}, "sizes");
    set(file.node("Gather", {"sizes", "index"}, "samples1"), "axis", 0);
    file.node("Squeeze", {"samples1"}, "samples");
    file.node("Shape", {"ids"}, "all1");
    file.node("Squeeze", {"all1"}, "all");
    file.node("Squeeze", {"start"}, "from");
    file.node("Squeeze", {"three"}, "by");
    file.node("Range", {"from", "all", "by"}, "begins");
    set(file.node("Concat", {"begins", "all1"}, "offsets"), "axis", 0);
    file.node("Slice", {"offsets", "one", "most", "axis"}, "ends");
    file.integers("one", {1}).integers("most", {1 << 30});
    auto& loop = file.node("Loop", {"samples", ""}, "y");
    auto& body = *loop.add_attribute();
    body.set_name("body");
    body.set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto& graph = *body.mutable_g();
    for (const char* name : {"turn", "goes"}) graph.add_input()->set_name(name);
    for (const char* name : {"goes_on", "sum"}) graph.add_output()->set_name(name);
    const auto inner = [&](const std::string& type, const std::vector<std::string>& from, const std::string& to) {
        onnx::NodeProto& node = *graph.add_node();
        node.set_op_type(type);
        for (const auto& each : from) node.add_input(each);
        node.add_output(to);
        return &node;
    };
    inner("Gather", {"offsets", "turn"}, "a");
    inner("Gather", {"ends", "turn"}, "b");
    inner("Unsqueeze", {"a", "axis"}, "a1");
    inner("Unsqueeze", {"b", "axis"}, "b1");
    inner("Slice", {"ids", "a1", "b1", "axis"}, "own");
    inner("Gather", {"table", "own"}, "rows");
    set(*inner("ReduceSum", {"rows", "axis"}, "sum"), "keepdims", 0);
    inner("Identity", {"goes"}, "goes_on");
    const Network network = imported(file);
    EXPECT_EQ(why_not_run(network), "");
    ASSERT_EQ(layers_of<Embedding>(network).size(), 1U);
    EXPECT_EQ(std::get<Embedding>(layers_of<Embedding>(network)[0]->op).tokens, 3);
    EXPECT_EQ(network.layers[static_cast<std::size_t>(network.layers.size() - 2)].output, (Shape{4}));
}

TEST(Einsum, OfThreeOperandsIsTwoProductsFromTheLeft) {
    OnnxFile file({-1, 5, 6, 7}, 13);
    file.weights("a", {3, 6}).weights("b", {7, 2});
    set_text(file.node("Einsum", {"x", "a", "b"}, "y"), "equation", "bchw,kh,wl->bckl");
    const Network network = imported(file);
    EXPECT_EQ(why_not_run(network), "");
    EXPECT_EQ(products(network), 5 * 7 * 3 * 6 + 5 * 3 * 2 * 7);
    EXPECT_EQ(parameters(network), 18 + 14);
}

TEST(Tensors, FrequenciesAreNotTrained) {
    const auto with = [](double first) {
        OnnxFile file({-1, 4}, 13);
        add_values(file, "frequencies", {4}, {first, 0.1, 0.01, 0.001});
        file.node("Mul", {"x", "frequencies"}, "y");
        return parameters(import_onnx(file.save("frequencies.onnx")));
    };
    EXPECT_EQ(with(1), 0);
    EXPECT_EQ(with(0.9), 4);
}

TEST(Tensors, TablesOfSinesAreNotTrained) {
    const auto with = [](bool sines) {
        OnnxFile file({-1, 4, 6}, 13);
        std::vector<double> values;
        for (int row = 0; row < 4; ++row)
            for (int i = 0; i < 6; ++i) {
                const double angle = row / std::pow(100.0, (i / 2) / 3.0);
                values.push_back(sines ? (i % 2 == 0 ? std::sin(angle) : std::cos(angle)) : 0.1 * row + 0.01 * i);
            }
        add_values(file, "places", {1, 4, 6}, values);
        file.node("Add", {"x", "places"}, "y");
        return parameters(import_onnx(file.save("sines.onnx")));
    };
    EXPECT_EQ(with(true), 0);
    EXPECT_EQ(with(false), 24);
}

// Of PyTorch 1.13 and later each tensor has a name of its own, so that one that two nodes read is one.
TEST(Tensors, AModuleThatIsCalledTwiceCountsOnce) {
    const auto with = [](const std::string& second, const std::string& scope) {
        OnnxFile file({-1, 4, 6}, 13);
        add_values(file, "onnx::Mul_1", {4, 1}, {1, 1, 1, 1});
        file.node("Identity", {"onnx::Mul_1"}, "onnx::Mul_2");
        file.node("Mul", {"x", "onnx::Mul_1"}, "first").set_name("/g/Mul");
        file.node("Relu", {"first"}, "between").set_name("/Relu");
        file.node("Mul", {"between", second}, "y").set_name(scope + "Mul");
        return parameters(import_onnx(file.save("twice.onnx")));
    };
    EXPECT_EQ(with("onnx::Mul_1", "/g_1/"), 4);
    EXPECT_EQ(with("onnx::Mul_2", "/g_1/"), 4);
    EXPECT_EQ(with("onnx::Mul_2", "/h/"), 8);  // another module, untrained like the first
}

TEST(Tensors, VectorsOfSpectralNormAreNotTrained) {
    OnnxFile file({-1, 6}, 13);
    file.weights("b.weight_orig", {4, 6}).weights("b.weight_u", {4}).weights("b.weight_v", {6});
    file.node("MatMul", {"b.weight_orig", "b.weight_v"}, "right");
    file.node("MatMul", {"b.weight_u", "right"}, "length");
    file.node("Div", {"b.weight_orig", "length"}, "weight");
    set(file.node("Gemm", {"x", "weight"}, "y"), "transB", 1);
    EXPECT_EQ(parameters(import_onnx(file.save("spectral.onnx"))), 24);
}

}  // namespace
}  // namespace rehearse::models
