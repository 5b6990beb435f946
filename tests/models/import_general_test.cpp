// SPDX-License-Identifier: Apache-2.0
// Networks beyond convolutions: what PyTorch users export, each graph written by hand with the operator it must become.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "onnx_file.hpp"

namespace rehearse::models {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

void set_float(onnx::NodeProto& node, const std::string& name, float value) {
    auto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(onnx::AttributeProto::FLOAT);
    attribute.set_f(value);
}

// nn.Linear(8, 1)(x) + 1.0: the scalar has no last dimension.
TEST(General, AScalarIsAddedToADenseLayerOfOneFeature) {
    OnnxFile file({-1, 8}, 13);
    file.weights("w", {1, 8}).weights("b", {1}).constant("one", 1);
    set(file.node("Gemm", {"x", "w", "b"}, "scores"), "transB", 1);
    file.node("Add", {"scores", "one"}, "y");
    const Network network = import_onnx(file.save("scalar.onnx"));
    EXPECT_THAT(operators(network), ElementsAre("input:8", "matmul:m1n1k8:bias", "elementwise:1:add:in1:by1"));
    EXPECT_EQ(parameters(network), 9);
}

TEST(General, ABatchNormalizationKeepsItsEpsilonAndMomentum) {
    OnnxFile file({1, 6, 4, 4});
    file.weights("gamma", {6}).weights("beta", {6}).weights("mean", {6}).weights("variance", {6});
    auto& node = file.node("BatchNormalization", {"x", "gamma", "beta", "mean", "variance"}, "y");
    set_float(node, "epsilon", 1e-3F);
    set_float(node, "momentum", 0.99F);
    const auto norm = std::get<BatchNorm>(import_onnx(file.save("epsilon.onnx")).layers[1].op);
    EXPECT_EQ(norm.epsilon, 1e-3);
    EXPECT_EQ(norm.momentum, 0.01);
    EXPECT_EQ(to_string(Op{norm}), "batchnorm:c6h4w4:eps0.001:momentum0.01");
}

// BatchNorm2d(affine=False): PyTorch writes constants where scale and shift would be.
TEST(General, ABatchNormalizationWithoutScaleAndShiftTrainsNothing) {
    OnnxFile file({1, 2, 4, 4}, 13);
    file.weights("mean", {2}).weights("variance", {2});
    for (const auto& [name, number] : {std::pair{"one", 1.0F}, {"zero", 0.0F}}) {
        auto& attribute = *file.node("Constant", {}, name).add_attribute();
        attribute.set_name("value_floats");
        attribute.set_type(onnx::AttributeProto::FLOATS);
        for (int i = 0; i < 2; ++i) attribute.add_floats(number);
    }
    file.node("BatchNormalization", {"x", "one", "zero", "mean", "variance"}, "y");
    const Network network = import_onnx(file.save("plain.onnx"));
    EXPECT_EQ(parameters(network), 0);
    EXPECT_EQ(network.state, 4);
    EXPECT_FALSE(std::get<BatchNorm>(network.layers[1].op).affine);
}

TEST(General, AWeightOfTwoConvolutionsIsCountedOnce) {
    OnnxFile file({1, 4, 8, 8});
    file.weights("w", {4, 4, 1, 1});
    file.node("Conv", {"x", "w"}, "a");
    file.node("Relu", {"a"}, "b");
    file.node("Conv", {"b", "w"}, "y");
    const Network network = import_onnx(file.save("twice_conv.onnx"));
    EXPECT_EQ(parameters(network), 16);
    EXPECT_EQ(network.layers[3].weights_of, 1);
    EXPECT_EQ(to_string(network.layers[3].op), "shared:" + to_string(network.layers[1].op));
    EXPECT_EQ(flops(network.layers[3].op, Pass::backward_weights), flops(network.layers[1].op, Pass::backward_weights));
    EXPECT_EQ(network.layers[1].output, network.layers[3].output);
    expect_counts(network);
}

// Two normalizations whose gammas are all 1 are stored once by exporters.
TEST(General, TensorsThatNoTrainingTouchedAreNotShared) {
    OnnxFile file({1, 2, 4, 4});
    file.numbers("one", {1, 1}).numbers("zero", {0, 0}).weights("mean", {2}).weights("variance", {2});
    file.node("BatchNormalization", {"x", "one", "zero", "mean", "variance"}, "a");
    file.node("BatchNormalization", {"a", "one", "zero", "mean", "variance"}, "y");
    EXPECT_EQ(parameters(import_onnx(file.save("ones.onnx"))), 8);
}

// PyTorch's export for inference names the weights that took a batch normalization in onnx::Conv_N.
TEST(General, AFoldedBatchNormalizationIsSeenAndPutBack) {
    OnnxFile file({1, 3, 8, 8});
    file.weights("onnx::Conv_10", {4, 3, 3, 3}).weights("onnx::Conv_11", {4});
    file.node("Conv", {"x", "onnx::Conv_10", "onnx::Conv_11"}, "y");
    const std::string path = file.save("folded.onnx");
    const Network folded = import_onnx(path);
    ASSERT_EQ(folded.notes.size(), 1u);
    EXPECT_THAT(folded.notes[0], HasSubstr("--unfold"));
    EXPECT_EQ(parameters(folded), 4 * 27 + 4);
    const Network whole = import_onnx(path, {.unfold = true});
    EXPECT_THAT(operators(whole), ElementsAre("input:3x8x8", "conv2d:c3h8w8k4r3s3:pad0:stride1", "batchnorm:c4h6w6"));
    EXPECT_EQ(parameters(whole), 4 * 27 + 8);
    EXPECT_EQ(whole.state, 8);
    EXPECT_TRUE(whole.notes.empty());
}

TEST(General, LayerNormalizationInEightOperatorsIsOne) {
    OnnxFile file({-1, 5, 8}, 13);
    file.weights("gamma", {8}).weights("beta", {8}).constant("two", 2).constant("eps", 1e-5F);
    set(file.node("ReduceMean", {"x"}, "mean"), "axes", Dims{-1});
    file.node("Sub", {"x", "mean"}, "centred");
    file.node("Pow", {"centred", "two"}, "square");
    set(file.node("ReduceMean", {"square"}, "variance"), "axes", Dims{-1});
    file.node("Add", {"variance", "eps"}, "more");
    file.node("Sqrt", {"more"}, "deviation");
    file.node("Div", {"centred", "deviation"}, "normal");
    file.node("Mul", {"normal", "gamma"}, "scaled");
    file.node("Add", {"scaled", "beta"}, "y");
    const Network network = import_onnx(file.save("layernorm.onnx"));
    EXPECT_THAT(operators(network), ElementsAre("input:5x8", "layernorm:r5c8"));
    EXPECT_EQ(parameters(network), 16);
}

TEST(General, RmsNormalizationIsOne) {
    OnnxFile file({-1, 5, 8}, 13);
    file.weights("gamma", {8}).constant("two", 2).constant("eps", 1e-6F).constant("one", 1);
    file.node("Pow", {"x", "two"}, "square");
    set(file.node("ReduceMean", {"square"}, "mean"), "axes", Dims{-1});
    file.node("Add", {"mean", "eps"}, "more");
    file.node("Sqrt", {"more"}, "root");
    file.node("Div", {"one", "root"}, "inverse");
    file.node("Mul", {"x", "inverse"}, "normal");
    file.node("Mul", {"gamma", "normal"}, "y");
    const Network network = import_onnx(file.save("rms.onnx"));
    EXPECT_THAT(operators(network), ElementsAre("input:5x8", "normalization:5x8:sets5:gamma8:rms:eps1e-06"));
    EXPECT_EQ(flops(network.layers[1].op, Pass::forward).value, 4 * 40);  // 3 and gamma an element
}

struct Spelling {
    const char* name;
    void (*write)(OnnxFile&);
    const char* op;
};

TEST(General, FunctionsAreFoundInEverySpelling) {
    const std::vector<Spelling> spellings{
        {"gelu",
         [](OnnxFile& f) {
             f.constant("root", 1.41421354F).constant("one", 1).constant("half", 0.5F);
             f.node("Div", {"x", "root"}, "a");
             f.node("Erf", {"a"}, "b");
             f.node("Add", {"b", "one"}, "c");
             f.node("Mul", {"x", "c"}, "d");
             f.node("Mul", {"d", "half"}, "y");
         },
         "activation:40:gelu"},
        {"gelu, halved first",
         [](OnnxFile& f) {
             f.constant("root", 0.70710677F).constant("one", 1).constant("half", 0.5F);
             f.node("Mul", {"x", "half"}, "h");
             f.node("Mul", {"x", "root"}, "a");
             f.node("Erf", {"a"}, "b");
             f.node("Add", {"one", "b"}, "c");
             f.node("Mul", {"h", "c"}, "y");
         },
         "activation:40:gelu"},
        {"gelu by tanh",
         [](OnnxFile& f) {
             f.constant("three", 3)
                 .constant("c", 0.044715F)
                 .constant("s", 0.7978845F)
                 .constant("one", 1)
                 .constant("half", 0.5F);
             f.node("Pow", {"x", "three"}, "cube");
             f.node("Mul", {"cube", "c"}, "part");
             f.node("Add", {"x", "part"}, "sum");
             f.node("Mul", {"sum", "s"}, "in");
             f.node("Tanh", {"in"}, "t");
             f.node("Add", {"t", "one"}, "more");
             f.node("Mul", {"x", "half"}, "h");
             f.node("Mul", {"h", "more"}, "y");
         },
         "elementwise:40:gelutanh:in40"},
        {"silu",
         [](OnnxFile& f) {
             f.node("Sigmoid", {"x"}, "s");
             f.node("Mul", {"x", "s"}, "y");
         },
         "elementwise:40:silu:in40"},
        {"no function of ours",
         [](OnnxFile& f) {
             f.node("Sigmoid", {"x"}, "s");
             f.node("Add", {"x", "s"}, "y");
         },
         "activation:40:sigmoid"},
    };
    for (const Spelling& spelling : spellings) {
        SCOPED_TRACE(spelling.name);
        OnnxFile file({-1, 40}, 13);
        spelling.write(file);
        EXPECT_EQ(to_string(import_onnx(file.save("function.onnx")).layers[1].op), spelling.op);
    }
}

// Two heads of 4 over 5 tokens, with a causal mask or one of another kind.
OnnxFile attention(bool causal) {
    OnnxFile file({-1, 5, 8}, 13);
    for (const char* name : {"wq", "wk", "wv"}) file.weights(name, {8, 8});
    file.integers("split", {0, 5, 2, 4}).integers("joined", {0, 5, 8}).constant("scale", 2);
    std::vector<float> mask;
    for (int i = 0; i < 25; ++i) mask.push_back((causal ? i % 5 > i / 5 : i % 5 == 0) ? -1e9F : 0);
    file.numbers("onnx::mask", mask);
    auto& tensor = *file.model.mutable_graph()->mutable_initializer(file.model.graph().initializer_size() - 1);
    tensor.clear_dims();
    tensor.add_dims(5);
    tensor.add_dims(5);
    for (const std::string part : {"q", "k", "v"}) {
        file.node("MatMul", {"x", "w" + part}, part);
        file.node("Reshape", {part, "split"}, part + "h");
        set(file.node("Transpose", {part + "h"}, part + "t"), "perm",
            part == "k" ? Dims{0, 2, 3, 1} : Dims{0, 2, 1, 3});
    }
    file.node("MatMul", {"qt", "kt"}, "scores");
    file.node("Div", {"scores", "scale"}, "scaled");
    file.node("Add", {"scaled", "onnx::mask"}, "masked");
    set(file.node("Softmax", {"masked"}, "p"), "axis", -1);
    file.node("MatMul", {"p", "vt"}, "o");
    set(file.node("Transpose", {"o"}, "ot"), "perm", {0, 2, 1, 3});
    file.node("Reshape", {"ot", "joined"}, "y");
    return file;
}

TEST(General, AttentionIsFoundWithItsCausalMask) {
    const Network network = import_onnx(attention(true).save("attention.onnx"));
    EXPECT_THAT(operators(network), ElementsAre("input:5x8", "matmul:m5n8k8", "matmul:m5n8k8", "matmul:m5n8k8",
                                                "attention:h2q5k5d4:causal"));
    EXPECT_THAT(network.layers.back().inputs, ElementsAre(1, 2, 3));
    EXPECT_EQ(multiply_adds(network.layers.back().op), 2 * 2 * 5 * 5 * 4);
}

TEST(General, AttentionWithAnotherMaskStaysInTheGeneralForm) {
    const Network network = import_onnx(attention(false).save("masked.onnx"));
    double products = 0;
    for (const Layer& layer : network.layers) products += multiply_adds(layer.op);
    EXPECT_EQ(products, 3 * 5 * 8 * 8 + 2 * 2 * 5 * 5 * 4);
    expect_counts(network);
}

TEST(General, TheSamplesMayLieBehindTheSequence) {
    OnnxFile file({7, -1, 6}, 13);
    auto& input = *file.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
    input.mutable_shape()->mutable_dim(1)->set_dim_param("batch");
    file.weights("w", {1, 32, 6}).weights("r", {1, 32, 8}).weights("b", {1, 64});
    auto& node = file.node("LSTM", {"x", "w", "r", "b"}, "y");
    set(node, "hidden_size", 8);
    const Network network = import_onnx(file.save("lstm.onnx"));
    EXPECT_THAT(operators(network), ElementsAre("input:7x6", "recurrent:t7c6h8d1:lstm:bias"));
    EXPECT_EQ(parameters(network), 32 * 6 + 32 * 8 + 64);
    EXPECT_EQ(multiply_adds(network.layers[1].op), 7 * 32 * (6 + 8));
}

// 3 weights a number: of the input, output and forget gates, a multiply-add each at each step.
TEST(General, PeepholesOfAnLstmCount) {
    OnnxFile file({7, -1, 6}, 13);
    auto& input = *file.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
    input.mutable_shape()->mutable_dim(1)->set_dim_param("batch");
    file.weights("w", {1, 32, 6}).weights("r", {1, 32, 8}).weights("b", {1, 64}).weights("p", {1, 24});
    auto& node = file.node("LSTM", {"x", "w", "r", "b", "", "", "", "p"}, "y");
    set(node, "hidden_size", 8);
    const Network network = import_onnx(file.save("peepholes.onnx"));
    ASSERT_EQ(network.layers.size(), 3U);
    EXPECT_EQ(parameters(network), 32 * 6 + 32 * 8 + 64 + 24);
    EXPECT_EQ(flops(network.layers[2].op, Pass::forward).value, 7 * 8 * 3 * 2);
    EXPECT_EQ(network.layers[2].output, network.layers[1].output);
    expect_counts(network);
}

TEST(General, IntegersPickRowsOfTables) {
    OnnxFile file({-1, 6}, 13);
    file.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        onnx::TensorProto::INT64);
    file.weights("words", {50, 8})
        .weights("places", {16, 8})
        .integers("range", {0, 1, 2, 3, 4, 5})
        .weights("head", {8, 50});
    file.node("Gather", {"words", "x"}, "w");
    file.node("Gather", {"places", "range"}, "p");
    file.node("Add", {"w", "p"}, "sum");
    file.node("MatMul", {"sum", "head"}, "y");
    const Network network = import_onnx(file.save("words.onnx"));
    EXPECT_EQ(network.layers[0].op, (Op{Input{{6}, 50}}));
    EXPECT_EQ(network.layers[1].op, (Op{Embedding{6, 50, 8}}));
    EXPECT_EQ(network.layers.back().op, (Op{SoftmaxLoss{.classes = 50, .rows = 6}}));
    EXPECT_EQ(parameters(network), 50 * 8 + 16 * 8 + 8 * 50);
    expect_counts(network);
}

// A language model that is exported for one token after others.
TEST(General, OfOneTokenTheScoresAreAVector) {
    OnnxFile file({-1, 1}, 13);
    file.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        onnx::TensorProto::INT64);
    file.weights("words", {50, 8}).weights("head", {8, 50});
    file.node("Gather", {"words", "x"}, "w");
    file.node("MatMul", {"w", "head"}, "y");
    EXPECT_EQ(import_onnx(file.save("word.onnx")).layers.back().op, Op{SoftmaxLoss{50}});
}

}  // namespace
}  // namespace rehearse::models
