// SPDX-License-Identifier: Apache-2.0
// What running an imported network takes of its file: numbers of movements, the order of operands, values that weights
// begin with, and why a form does not run.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/error.hpp"
#include "models/models.hpp"
#include "tests/models/onnx_file.hpp"

namespace rehearse::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// 0, 1, 2, ...
void fill(OnnxFile& file, const std::string& name, const Dims& dims) {
    file.weights(name, dims);
    auto& tensor = *file.model.mutable_graph()->mutable_initializer(file.model.graph().initializer_size() - 1);
    const std::int64_t count = std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>{});
    for (std::int64_t i = 0; i < count; ++i) tensor.add_float_data(static_cast<float>(i));
}

Network imported(const OnnxFile& file) {
    ImportOptions options;
    options.values = true;
    return import_onnx(file.save("given.onnx"), options);
}

const Given& given(const Network& network, int layer) {
    static const Given nothing;
    const auto& found = network.layers.at(static_cast<std::size_t>(layer)).given;
    return found == nullptr ? nothing : *found;
}

TEST(Given, DenseWeightsAreTurnedWhereTheFileHasThemSo) {
    OnnxFile file({-1, 3}, 13);
    fill(file, "fc.weight", {2, 3});
    fill(file, "fc.bias", {2});
    set(file.node("Gemm", {"x", "fc.weight", "fc.bias"}, "y"), "transB", std::int64_t{1});
    const Network network = imported(file);
    EXPECT_EQ(network.layers[1].name, "fc");
    EXPECT_THAT(given(network, 1).weights, ElementsAre(0, 3, 1, 4, 2, 5, 0, 1));
}

TEST(Given, WeightsBehindATranspositionAreThoseThatAreRead) {
    OnnxFile file({-1, 4, 3}, 13);
    fill(file, "fc.weight", {2, 3});
    set(file.node("Transpose", {"fc.weight"}, "turned"), "perm", {1, 0});
    file.node("MatMul", {"x", "turned"}, "y");
    EXPECT_THAT(given(imported(file), 1).weights, ElementsAre(0, 3, 1, 4, 2, 5));
}

// Large ones are not kept in both forms.
TEST(Given, LargeWeightsBehindTranspositionsAreThoseThatAreRead) {
    constexpr std::size_t rows = 600, columns = 500;
    OnnxFile once({-1, 4, columns}, 13), twice({-1, 4, rows}, 13);
    for (OnnxFile* file : {&once, &twice}) {
        fill(*file, "fc.weight", {rows, columns});
        set(file->node("Transpose", {"fc.weight"}, "turned"), "perm", {1, 0});
    }
    once.node("MatMul", {"x", "turned"}, "y");
    set(twice.node("Transpose", {"turned"}, "back"), "perm", {1, 0});
    twice.node("MatMul", {"x", "back"}, "y");
    const Network turned = imported(once), back = imported(twice);
    const std::vector<float>&a = given(turned, 1).weights, &b = given(back, 1).weights;
    ASSERT_EQ(a.size(), rows * columns);
    ASSERT_EQ(b.size(), rows * columns);
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j) {
            ASSERT_EQ(a[j * rows + i], static_cast<float>(i * columns + j));
            ASSERT_EQ(b[i * columns + j], static_cast<float>(i * columns + j));
        }
}

// Of element {a, b, c} that is turned to {b, c, a}, to {b, a, c}, taken for {b a, c} and turned once more.
TEST(Given, LargeWeightsMayBeTakenForOtherSizesBetweenTranspositions) {
    constexpr std::size_t as = 20, bs = 30, cs = 500;
    OnnxFile file({-1, 4, cs}, 13);
    fill(file, "fc.weight", {as, bs, cs});
    file.integers("sizes", {as * bs, cs});
    set(file.node("Transpose", {"fc.weight"}, "bca"), "perm", {1, 2, 0});
    set(file.node("Transpose", {"bca"}, "bac"), "perm", {0, 2, 1});
    file.node("Reshape", {"bac", "sizes"}, "rows");
    set(file.node("Transpose", {"rows"}, "turned"), "perm", {1, 0});
    file.node("MatMul", {"x", "turned"}, "y");
    const Network network = imported(file);
    const std::vector<float>& found = given(network, 1).weights;
    ASSERT_EQ(found.size(), as * bs * cs);
    for (std::size_t i = 0; i < found.size(); ++i) {
        const std::size_t c = i / (as * bs), b = i / as % bs, a = i % as;
        ASSERT_EQ(found[i], static_cast<float>((a * bs + b) * cs + c));
    }
}

TEST(Given, ATableIsToldWhichOfItsRowsAreMeant) {
    OnnxFile file({-1, 2, 3}, 13);
    fill(file, "places", {4, 3});
    file.integers("rows", {2, 1});
    file.node("Gather", {"places", "rows"}, "picked");
    file.node("Add", {"x", "picked"}, "y");
    const Network network = imported(file);
    EXPECT_EQ(to_string(network.layers[1].op), "elementwise:2x3:add:in2x3:weights4x3");
    ASSERT_EQ(given(network, 1).places.size(), 1U);
    EXPECT_THAT(given(network, 1).places[0], ElementsAre(6, 7, 8, 3, 4, 5));
    EXPECT_EQ(given(network, 1).weights.size(), 12U);
}

TEST(Given, OperandsKeepTheirOrder) {
    OnnxFile file({-1, 2, 3}, 13);
    file.node("Transpose", {"x"}, "z");
    set(*file.model.mutable_graph()->mutable_node(0), "perm", {0, 2, 1});
    fill(file, "w", {2});
    file.node("Div", {"w", "z"}, "y");
    EXPECT_EQ(to_string(imported(file).layers[2].op), "elementwise:3x2:rdiv:in3x2:weights2");
    OnnxFile two({-1, 3}, 13);
    two.numbers("m", {1, 0, 2}).constant("low", -9);
    two.node("Cast", {"m"}, "mask").add_attribute()->CopyFrom([] {
        onnx::AttributeProto to;
        to.set_name("to");
        to.set_type(onnx::AttributeProto::INT);
        to.set_i(onnx::TensorProto::BOOL);
        return to;
    }());
    two.node("Where", {"mask", "x", "low"}, "y");
    const Network network = imported(two);
    EXPECT_EQ(to_string(network.layers[1].op), "elementwise:3:where:in3:fixed3:by-9:ordercxn");
    EXPECT_THAT(given(network, 1).fixed.at(0), ElementsAre(1, 0, 1));
}

TEST(Given, MovementsHaveTheirNumbers) {
    OnnxFile file({-1, 4, 6}, 13);
    file.integers("from", {1, -1}).integers("to", {3, -100}).integers("axes", {1, 2}).integers("steps", {1, -2});
    file.node("Slice", {"x", "from", "to", "axes", "steps"}, "y");
    EXPECT_EQ(to_string(imported(file).layers[1].op), "rearrangement:2x3:slice:from4x6:by1,5,1,-2");
    OnnxFile pieces({-1, 4, 6}, 11);
    auto& split = pieces.node("Split", {"x"}, "a");
    split.add_output("b");
    set(split, "axis", std::int64_t{2});
    set(split, "split", {2, 4});
    pieces.node("Relu", {"b"}, "y");
    EXPECT_EQ(to_string(imported(pieces).layers[1].op), "rearrangement:4x4:slice:from4x6:by0,2,1,1");
    OnnxFile blocks({-1, 8, 2, 3}, 13);
    set(blocks.node("DepthToSpace", {"x"}, "y"), "blocksize", std::int64_t{2});
    const Network network = imported(blocks);
    EXPECT_EQ(to_string(network.layers[2].op), "rearrangement:2x2x2x3x2:transpose:from2x2x2x2x3:by2,3,0,4,1");
}

TEST(Given, SortingGoesAlongItsAxis) {
    OnnxFile sorted({-1, 6, 4}, 13);
    sorted.integers("k", {2});
    auto& node = sorted.node("TopK", {"x", "k"}, "largest");
    node.add_output("which");
    set(node, "axis", std::int64_t{1});
    sorted.node("Cast", {"which"}, "places").add_attribute()->CopyFrom([] {
        onnx::AttributeProto to;
        to.set_name("to");
        to.set_type(onnx::AttributeProto::INT);
        to.set_i(onnx::TensorProto::FLOAT);
        return to;
    }());
    sorted.node("Mul", {"largest", "places"}, "y");
    const Network network = imported(sorted);
    EXPECT_EQ(to_string(network.layers[1].op), "rearrangement:2x4:largest:from6x4:by0");
    EXPECT_EQ(to_string(network.layers[2].op), "rearrangement:2x4:largestat:from6x4:by0");
    EXPECT_THAT(given(network, 1).not_run, IsEmpty());
}

// Of {2, 3} elements of each sample, the last of row 0 and the first of row 1.
TEST(Given, ConstantIndicesNameTheSamePlacesOfEachSample) {
    OnnxFile file({2, 2, 3}, 13);
    auto& picked = *file.model.mutable_graph()->add_initializer();
    picked.set_name("which");
    picked.set_data_type(onnx::TensorProto::INT64);
    for (const std::int64_t dim : {2, 2, 1}) picked.add_dims(dim);
    for (const std::int64_t index : {2, 0, 2, -3}) picked.add_int64_data(index);
    set(file.node("GatherElements", {"x", "which"}, "y"), "axis", std::int64_t{2});
    EXPECT_THAT(given(imported(file), 1).places.at(0), ElementsAre(2, 3));
    auto& other = *file.model.mutable_graph()->mutable_initializer(0);
    other.set_int64_data(3, 1);  // of the second sample another place
    EXPECT_THAT(given(imported(file), 1).not_run, HasSubstr("depends on data"));
}

TEST(Given, APartOfATensorBelongsToWhoReadsIt) {
    OnnxFile file({-1, 2, 2}, 13);
    fill(file, "both", {4});
    for (const auto& [name, begin, end] : {std::tuple{"a", 0, 2}, {"b", 2, 4}}) {
        const std::string part = name;
        file.integers(part + "0", {begin}).integers(part + "1", {end});
        file.node("Slice", {"both", part + "0", part + "1"}, part);
    }
    file.node("Mul", {"x", "a"}, "scaled");
    file.node("Add", {"scaled", "b"}, "y");
    const Network network = imported(file);
    EXPECT_THAT(given(network, 1).weights, ElementsAre(0, 1));
    EXPECT_THAT(given(network, 2).weights, ElementsAre(2, 3));
    EXPECT_THAT(given(network, 2).not_run, IsEmpty());
}

// Angles of positions, as Hugging Face's rotary embeddings compute them: cos(i j).
TEST(Given, TablesThatTheFileComputesAreKnown) {
    OnnxFile file({-1, 3, 2}, 13);
    for (const auto& [name, dims] : {std::pair{"rows", Dims{3, 1}}, {"columns", Dims{1, 2}}}) {
        auto& attribute = *file.node("Constant", {}, name).add_attribute();
        attribute.set_name("value");
        attribute.set_type(onnx::AttributeProto::TENSOR);
        auto& tensor = *attribute.mutable_t();
        tensor.set_data_type(onnx::TensorProto::FLOAT);
        for (const auto dim : dims) tensor.add_dims(dim);
        for (int i = 0; i < std::max(dims[0], dims[1]); ++i) tensor.add_float_data(static_cast<float>(i));
    }
    file.node("MatMul", {"rows", "columns"}, "angles");
    file.node("Cos", {"angles"}, "cosines");
    file.node("Mul", {"x", "cosines"}, "y");
    const std::vector<float> values = given(imported(file), 1).fixed.at(0);
    ASSERT_EQ(values.size(), 6U);
    EXPECT_EQ(values[0], 1);
    EXPECT_NEAR(values[3], 0.5403, 1e-4);   // cos 1
    EXPECT_NEAR(values[5], -0.4161, 1e-4);  // cos 2
}

TEST(Given, ATableThatNobodyTrainsIsNoWeight) {
    OnnxFile file({-1, 4, 3}, 13);
    fill(file, "table", {3, 2});
    auto& entry = *file.model.add_metadata_props();
    entry.set_key("rehearse.buffers");
    entry.set_value("table");
    file.node("MatMul", {"x", "table"}, "y");
    const Network network = imported(file);
    EXPECT_EQ(parameters(network), 0);
    EXPECT_EQ(to_string(network.layers[2].op), "batchedmatmul:4x3:by3x2");
    EXPECT_THAT(given(network, 1).fixed.at(0), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Given, RowsOfPaddingAreTrainedAndANoteSaysSo) {
    OnnxFile file({-1, 3}, 13);
    file.node("Relu", {"x"}, "y");
    EXPECT_TRUE(imported(file).notes.empty());
    auto& entry = *file.model.add_metadata_props();
    entry.set_key("rehearse.padding");
    entry.set_value("words.weight:0");
    const Network network = imported(file);
    ASSERT_EQ(network.notes.size(), 1U);
    EXPECT_THAT(network.notes[0],
                testing::AllOf(testing::HasSubstr("trained like all others"), testing::HasSubstr("words.weight:0")));
}

namespace {

// Both branches of an If make something of "x".
void add_branches(onnx::NodeProto& node) {
    for (const std::string name : {"then_branch", "else_branch"}) {
        auto& attribute = *node.add_attribute();
        attribute.set_name(name);
        attribute.set_type(onnx::AttributeProto::GRAPH);
        auto& inner = *attribute.mutable_g()->add_node();
        inner.set_op_type(name == "then_branch" ? "Relu" : "Tanh");
        inner.add_input("x");
        inner.add_output(name + ".made");
        attribute.mutable_g()->add_output()->set_name(name + ".made");
    }
}

}  // namespace

TEST(Given, ABranchThatIsFedInIsNamed) {
    OnnxFile file({-1, 4}, 13);
    auto& fed = *file.model.mutable_graph()->add_input();
    fed.set_name("training");
    fed.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::BOOL);
    fed.mutable_type()->mutable_tensor_type()->mutable_shape();
    add_branches(file.node("If", {"training"}, "seen"));
    file.node("Neg", {"seen"}, "y");
    EXPECT_THAT([&] { imported(file); }, testing::ThrowsMessage<InputError>(testing::AllOf(
                                             HasSubstr("If node 'the_seen'"), HasSubstr("depends on data"))));
}

// squeeze() of a size that may be 1, as PyTorch exports it: the branch that the sizes choose.
TEST(Given, ABranchThatSizesChooseIsTaken) {
    OnnxFile file({-1, 4, 1}, 13);
    file.node("Shape", {"x"}, "sizes");
    file.integers("last", {2}).integers("one", {1});
    file.node("Gather", {"sizes", "last"}, "size");
    file.node("Equal", {"size", "one"}, "alone");
    add_branches(file.node("If", {"alone"}, "seen"));
    file.node("Neg", {"seen"}, "y");
    const Network network = imported(file);
    EXPECT_EQ(network.layers.size(), 3U);
    EXPECT_THAT(to_string(network.layers[1].op), HasSubstr("relu"));
}

// Of 3 pixels 5.
TEST(Given, InterpolationsThatAreNotOursAreProducts) {
    OnnxFile file({-1, 2, 3, 3}, 13);
    file.numbers("scales", {1, 1, 1, 5.0F / 3});
    auto& node = file.node("Resize", {"x", "", "scales"}, "y");
    set_text(node, "mode", "nearest");
    set_text(node, "nearest_mode", "floor");
    set_text(node, "coordinate_transformation_mode", "asymmetric");
    const Network network = imported(file);
    const auto matrix = std::ranges::find_if(
        network.layers, [](const Layer& layer) { return layer.given != nullptr && !layer.given->fixed.empty(); });
    ASSERT_NE(matrix, network.layers.end());  // pixel i is pixel floor(3 i / 5)
    EXPECT_THAT(matrix->given->fixed[0], ElementsAre(1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 1));
}

TEST(Given, WhatDoesNotRunSaysWhy) {
    OnnxFile mixed({-1, 6}, 13);
    set(mixed.node("ReduceMean", {"x"}, "mean"), "axes", std::vector<std::int64_t>{0});
    mixed.node("Sub", {"x", "mean"}, "y");
    EXPECT_THAT(given(imported(mixed), 1).not_run, HasSubstr("samples"));
    OnnxFile plain({-1, 3}, 13);
    fill(plain, "w", {3});
    plain.node("Mul", {"x", "w"}, "y");
    EXPECT_THAT(given(imported(plain), 1).not_run, IsEmpty());
}

TEST(Given, AnExternalFileIsReadOrMissed) {
    OnnxFile file({-1, 2}, 13);
    file.weights("fc.weight", {2, 1});
    auto& tensor = *file.model.mutable_graph()->mutable_initializer(0);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : {std::pair{"location", "given.bin"}, {"offset", "4"}, {"length", "8"}}) {
        auto& entry = *tensor.add_external_data();
        entry.set_key(key);
        entry.set_value(value);
    }
    file.node("MatMul", {"x", "fc.weight"}, "y");
    EXPECT_THAT([&] { imported(file); }, testing::ThrowsMessage<InputError>(HasSubstr("absent or too short")));
    const float values[] = {7, 0.5F, -2};
    write_file("given.bin", {reinterpret_cast<const char*>(values), sizeof values});
    EXPECT_THAT(given(imported(file), 1).weights, ElementsAre(0.5F, -2));
    auto& entries = *file.model.mutable_graph()->mutable_initializer(0)->mutable_external_data();
    for (const char* offset : {"9223372036854775807", "-9223372036854775808", "13", "-1"}) {
        entries[1].set_value(offset);
        EXPECT_THAT([&] { imported(file); }, testing::ThrowsMessage<InputError>(HasSubstr("absent or too short")));
    }
    entries[0].set_value(".");  // a folder opens, and is as long as an integer can say
    entries[1].set_value("0");
    EXPECT_THAT([&] { imported(file); }, testing::ThrowsMessage<InputError>(HasSubstr("absent or too short")));
}

}  // namespace
}  // namespace rehearse::models
