// SPDX-License-Identifier: Apache-2.0
// What an export for inference folds, counted as an export for training has it; constants that nobody trains.
#include <gmock/gmock.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "models/models.hpp"
#include "tests/models/imported.hpp"
#include "tests/models/onnx_file.hpp"

namespace rehearse::models {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

void add_values(OnnxFile& file, const std::string& name, const Dims& dims, const std::vector<double>& values) {
    file.weights(name, dims);
    auto& tensor = *file.model.mutable_graph()->mutable_initializer(file.model.graph().initializer_size() - 1);
    for (const double value : values) tensor.add_float_data(static_cast<float>(value));
}

Network imported(const OnnxFile& file, const ImportOptions& options = {}) {
    return import_onnx(file.save("folded.onnx"), options);
}

void make_integers(OnnxFile& file) {
    file.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
        onnx::TensorProto::INT64);
}

// Three words of two numbers, whose table is the last layer, too.
OnnxFile language_model(bool with_values) {
    OnnxFile file({-1, 4}, 13);
    make_integers(file);
    const std::vector<double> none;
    add_values(file, "words.weight", {3, 2}, with_values ? std::vector<double>{1, 2, 3, 4, 5, 6} : none);
    add_values(file, "onnx::MatMul_9", {2, 3}, with_values ? std::vector<double>{1, 3, 5, 2, 4, 6} : none);
    file.node("Gather", {"words.weight", "x"}, "rows");
    file.node("MatMul", {"rows", "onnx::MatMul_9"}, "y");
    return file;
}

TEST(Folded, ATurnedTableIsTheTable) {
    const Network network = imported(language_model(true));
    EXPECT_EQ(parameters(network), 6);
    EXPECT_THAT(network.notes, Not(Contains(HasSubstr("one tensor"))));
}

TEST(Folded, WithoutValuesNobodyKnows) {
    const Network network = imported(language_model(false));
    EXPECT_EQ(parameters(network), 12);
    EXPECT_THAT(network.notes, Contains(HasSubstr("whether both are one tensor cannot be seen")));
}

// Scores of two heads between the places of an image of 2 x 2, and a bias of theirs.
Network biased(const std::vector<double>& bias) {
    OnnxFile file({-1, 2, 4, 4}, 13);
    add_values(file, "onnx::Add_7", {1, 2, 4, 4}, bias);
    file.node("Add", {"x", "onnx::Add_7"}, "y");
    return imported(file);
}

TEST(Folded, ABiasByDistanceIsATable) {
    std::vector<double> bias;  // places 0 1 / 2 3: rows and columns apart
    for (int head = 0; head < 2; ++head)
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) bias.push_back(100 * head + 10 * (i / 2 - j / 2) + (i % 2 - j % 2));
    EXPECT_EQ(parameters(biased(bias)), 3 * 3 * 2);  // -1, 0, 1 down, as many across
    bias[5] += 1;                                    // no longer by distance
    EXPECT_EQ(parameters(biased(bias)), 2 * 4 * 4);
    EXPECT_EQ(parameters(biased({})), 3 * 3 * 2);  // without values, of a square window
}

void convolution(OnnxFile& file, const std::string& from, const std::string& bias, const std::string& to) {
    set(file.node("Conv", {from, "onnx::Conv_1", bias}, to), "pads", {1, 1, 1, 1});
}

TEST(Folded, ANormalizationIsSharedAsItsConvolutionIs) {
    OnnxFile file({-1, 4, 8, 8}, 13);
    file.weights("onnx::Conv_1", {4, 4, 3, 3}).weights("onnx::Conv_2", {4});
    convolution(file, "x", "onnx::Conv_2", "a");
    convolution(file, "a", "onnx::Conv_2", "y");
    EXPECT_EQ(parameters(imported(file)), 4 * 4 * 9 + 4);
    EXPECT_EQ(parameters(imported(file, {.unfold = true})), 4 * 4 * 9 + 2 * 4);
}

TEST(Folded, WeightsAloneHadLengths) {
    OnnxFile file({-1, 4, 8, 8}, 13);
    file.weights("onnx::Conv_1", {4, 4, 3, 3}).weights("conv.bias", {4});
    convolution(file, "x", "conv.bias", "y");
    const Network network = imported(file, {.unfold = true});
    EXPECT_EQ(parameters(network), 4 * 4 * 9 + 4 + 4);
    EXPECT_THAT(network.notes, Contains(HasSubstr("weight_norm")));
    EXPECT_EQ(parameters(imported(file)), 4 * 4 * 9 + 4);
}

TEST(Folded, ADenseLayersWeightsHadLengthsWhereTheyLieAsItsOwn) {
    OnnxFile file({-1, 4}, 13);
    file.weights("onnx::Gemm_1", {3, 4}).weights("fc.bias", {3});
    set(file.node("Gemm", {"x", "onnx::Gemm_1", "fc.bias"}, "y"), "transB", std::int64_t{1});
    EXPECT_EQ(parameters(imported(file, {.unfold = true})), 12 + 3 + 3);
}

// PyTorch begins with weights and biases up to 1 / 6 where a filter has 36 inputs.
Network begun_with(double bias, double weight) {
    OnnxFile file({-1, 4, 8, 8}, 13);
    std::vector<double> weights(std::size_t{8 * 36});
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = weight * std::cos(static_cast<double>(i)) * (i == 0 ? 1 : 0.9);
    add_values(file, "onnx::Conv_1", {8, 4, 3, 3}, weights);
    add_values(file, "onnx::Conv_2", {8}, {bias, -bias / 2, 0.01, 0, -0.02, 0.01, bias / 3, -0.01});
    convolution(file, "x", "onnx::Conv_2", "y");
    return imported(file, {.unfold = true});
}

TEST(Folded, ABiasBeforeANormalizationIsSeenAtTheBeginningOfTraining) {
    constexpr std::int64_t weights = 8 * 36, norm = 16, bias = 8;
    constexpr double bound = 1.0 / 6;
    EXPECT_EQ(parameters(begun_with(0.9 * bound, 0.999 * bound)), weights + norm + bias);
    EXPECT_EQ(parameters(begun_with(2 * bound, 0.999 * bound)), weights + norm);      // trained
    EXPECT_EQ(parameters(begun_with(0.9 * bound, 3 * bound)), weights + norm);        // not PyTorch's weights
    EXPECT_EQ(parameters(begun_with(0.001 * bound, 0.999 * bound)), weights + norm);  // too small for one
}

TEST(Folded, WhatIsLeftToOneIsTheSameTensor) {
    OnnxFile file({-1, 4}, 13);
    file.numbers("mix", {0.1F, 0.5F, 0.25F, 0.75F}).numbers("onnx::Mul_3", {0.9F, 0.5F, 0.75F, 0.25F});
    file.node("Mul", {"x", "mix"}, "new");
    file.node("Mul", {"x", "onnx::Mul_3"}, "old");
    file.node("Add", {"new", "old"}, "y");
    EXPECT_EQ(parameters(imported(file)), 4);
}

TEST(Folded, ATensorRepeatedForEachSampleCountsOnce) {
    OnnxFile file({2, 3, 4}, 13);
    add_values(file, "onnx::Concat_1", {2, 1, 4}, {1, 2, 3, 4, 1, 2, 3, 4});
    set(file.node("Concat", {"onnx::Concat_1", "x"}, "y"), "axis", std::int64_t{1});
    const Network network = imported(file);
    EXPECT_EQ(parameters(network), 4);
    EXPECT_EQ(network.layers.back().output, (Shape{4, 4}));
}

// A vision transformer's first token and the others, each with its part of one table of positions.
TEST(Constants, PartsOfATensorCountOnceThoughOneIsComputed) {
    OnnxFile file({2, 4, 3}, 13);
    file.weights("cls", {1, 1, 3}).weights("places", {1, 5, 3}).integers("zero", {0}).integers("one", {1});
    file.integers("end", {5}).integers("sizes", {2, 1, 3});
    file.node("Slice", {"places", "one", "end", "one"}, "others");
    file.node("Slice", {"places", "zero", "one", "one"}, "first");
    file.node("Add", {"x", "others"}, "rows");
    file.node("Add", {"cls", "first"}, "token");
    file.node("Expand", {"token", "sizes"}, "tokens");
    set(file.node("Concat", {"tokens", "rows"}, "y"), "axis", std::int64_t{1});
    EXPECT_EQ(parameters(imported(file)), 3 + 5 * 3);
}

TEST(Folded, MaskedWeightsHaveNoLengths) {
    OnnxFile file({-1, 1, 8, 8}, 13);
    add_values(file, "onnx::Conv_1", {1, 1, 3, 3}, {1, 2, 3, 4, 0, 0, 0, 0, 0});
    file.weights("conv.bias", {1});
    convolution(file, "x", "conv.bias", "y");
    EXPECT_EQ(parameters(imported(file, {.unfold = true})), 9 + 1);
}

TEST(Constants, MasksPlacesAndAnchorsAreNotTrained) {
    OnnxFile file({-1, 4}, 13);
    file.model.set_producer_name("pytorch");
    file.numbers("mask", {0, 1, 1, 0}).numbers("anchors", {10, 13, 16, 30}).numbers("centres", {0, 0.5F, 1, 1.5F});
    file.numbers("rates", {1, 2, 4, 8}).numbers("gain", {0.1F, 0.5F, -0.3F, 0.7F}).numbers("gate.bias", {0, 1, 1, 0});
    std::string from = "x";
    for (const char* table : {"mask", "anchors", "centres", "rates", "gain", "gate.bias"}) {
        const std::string to = std::string{table} == "gate.bias" ? "y" : std::string{table} + "_applied";
        file.node("Mul", {from, table}, to);
        from = to;
    }
    EXPECT_EQ(parameters(imported(file)), 2 * 4);  // gain and the gate's bias
}

TEST(EinsumOfTwo, WhatSumsNothingIsNoProduct) {
    OnnxFile file({-1, 3, 4}, 13);
    file.weights("w", {4, 5});
    set_text(file.node("Einsum", {"x", "w"}, "y"), "equation", "bld,dn->bldn");
    const Network network = imported(file);
    EXPECT_EQ(products(network), 0);
    EXPECT_EQ(network.layers.back().output, (Shape{3, 4, 5}));
    EXPECT_EQ(parameters(network), 20);
}

Network einsum(const std::string& equation, const Dims& x, const Dims& w) {
    OnnxFile file(x, 13);
    file.weights("w", w);
    set_text(file.node("Einsum", {"x", "w"}, "y"), "equation", equation);
    return import_onnx(file.save("einsum.onnx"));
}

// More than 2^28 multiply-adds: a limit of what is worked out of constants, which is no limit of an operator.
TEST(EinsumOfTwo, IsAProductHoweverLarge) {
    const Network network = einsum("bsd,df->bsf", {-1, 2048, 1024}, {1024, 512});
    EXPECT_EQ(products(network), 2048.0 * 1024 * 512);
    EXPECT_EQ(to_string(network.layers[1].op), "matmul:m2048n512k1024");
}

TEST(EinsumOfTwo, MayLeaveAxesOrItsResultOpen) {
    for (const char* equation : {"...d,df->...f", "bsd,df", "bsd,df->bsf", "... d , d f -> ... f"}) {
        const Network network = einsum(equation, {-1, 10, 16}, {16, 8});
        EXPECT_EQ(products(network), 10 * 16 * 8) << equation;
        EXPECT_EQ(network.layers[1].output, (Shape{10, 8})) << equation;
    }
}

TEST(EinsumOfTwo, ThatDoesNotFitItsOperandsSaysWhy) {
    const auto refuses = [](const std::string& equation, const Dims& w, const std::string& why) {
        EXPECT_THAT(
            [&] {
                einsum(equation, {-1, 10, 16}, w);
            },
            testing::ThrowsMessage<InputError>(testing::HasSubstr(why)));
    };
    refuses("bsd,df->bsf", {8, 4}, "meets a size of 16 with one of 8 in 'd'");
    refuses("bd,df->bf", {16, 4}, "has 2 letters for");
    refuses("bsd,df->bsz", {16, 4}, "makes 'z', which no operand has");
    refuses("bsd->bs", {16, 4}, "is not of 2 operands");
}

// The table's own axis k is summed first and once for all samples, as PyTorch does; then 10 rows of 16 x 8 products,
// and 10 x 15 x 8 additions.
TEST(EinsumOfTwo, SumsAloneWhatOneOperandHasAlone) {
    const Network network = einsum("bsd,dkf->bsf", {-1, 10, 16}, {16, 16, 8});
    EXPECT_EQ(network.layers[1].output, (Shape{10, 8}));
    EXPECT_NEAR(flops(network.layers[1].op, Pass::forward).value, 10 * 16 * 8 + 10 * 15 * 8, 1e-6);
}

TEST(Samples, AreGroupsOfAConvolutionWithWeightsOfTheirOwn) {
    OnnxFile file({2, 4, 8, 8}, 13);  // two samples of four channels
    file.weights("style", {2, 4, 3, 3}).integers("joined", {1, 8, 8, 8}).integers("apart", {2, 2, 8, 8});
    file.integers("filters", {4, 4, 3, 3}).integers("axes", {2, 3}).integers("five", {2, 1, 4, 1, 1});
    set(file.node("ReduceMean", {"x"}, "means"), "axes", {2, 3});
    file.node("Reshape", {"means", "five"}, "scales");
    file.node("Mul", {"scales", "style"}, "modulated");
    file.node("Reshape", {"modulated", "filters"}, "weights");
    file.node("Reshape", {"x", "joined"}, "image");
    auto& conv = file.node("Conv", {"image", "weights"}, "convolved");
    set(conv, "pads", {1, 1, 1, 1});
    set(conv, "group", std::int64_t{2});
    file.node("Reshape", {"convolved", "apart"}, "y");
    const Network network = imported(file);
    EXPECT_EQ(products(network), 2 * 64 * 36);  // two filters of 36 taps at 64 pixels
    EXPECT_EQ(parameters(network), 2 * 36);
}

}  // namespace
}  // namespace rehearse::models
