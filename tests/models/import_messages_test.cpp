// SPDX-License-Identifier: Apache-2.0
// Messages along the edges of a graph, as PyTorch Geometric's spelling of them is exported.
#include <gmock/gmock.h>

#include <string>

#include "core/error.hpp"
#include "models/models.hpp"
#include "tests/models/imported.hpp"
#include "tests/models/onnx_file.hpp"

namespace rehearse::models {
namespace {

using testing::Contains;
using testing::HasSubstr;

void add_edges(OnnxFile& file, const Dims& dims) {
    auto& input = *file.model.mutable_graph()->add_input();
    input.set_name("edges");
    auto& tensor = *input.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx::TensorProto::INT64);
    for (const auto dim : dims) {
        auto& added = *tensor.mutable_shape()->add_dim();
        if (dim < 0) added.set_dim_param("open");
        if (dim >= 0) added.set_dim_value(dim);
    }
}

// Six nodes of four features, ten edges from edges[0] to edges[1]: a dense layer, the sum of what comes.
OnnxFile one_graph(std::int64_t nodes) {
    OnnxFile file({nodes, 4}, 16);
    add_edges(file, {2, 10});
    file.weights("dense.weight", {4, 3}).integers("column", {10, 1}).integers("rows", {10, 3}).integers("all", {6, 3});
    for (const std::string name : {"0", "1"}) {
        auto& index = *file.model.mutable_graph()->add_initializer();
        index.set_name(name);
        index.set_data_type(onnx::TensorProto::INT64);
        index.add_int64_data(name == "1" ? 1 : 0);
    }
    file.node("MatMul", {"x", "dense.weight"}, "h");
    file.node("Gather", {"edges", "0"}, "from");
    file.node("Gather", {"edges", "1"}, "to");
    file.node("Gather", {"h", "from"}, "messages");
    file.node("Reshape", {"to", "column"}, "to_column");
    file.node("Expand", {"to_column", "rows"}, "index");
    file.node("ConstantOfShape", {"all"}, "zeros");
    set_text(file.node("ScatterElements", {"zeros", "index", "messages"}, "y"), "reduction", "add");
    return file;
}

Op op_behind(const Network& network, const std::string& kind) {
    for (const Layer& layer : network.layers) {
        const auto* moved = std::get_if<Rearrangement>(&layer.op);
        if (moved != nullptr && moved->kind == kind) return layer.op;
    }
    return Input{};
}

TEST(Messages, ThatLeadFromNodeToNodeMakeTheGraphOneSample) {
    const OnnxFile file = one_graph(6);
    ImportOptions options;
    options.values = true;
    const Network network = import_onnx(file.save("graph.onnx"), options);
    EXPECT_EQ(op_behind(network, "takerows"), (Op{Rearrangement{"takerows", {{6, 3}, {10}}, {10, 3}}}));
    EXPECT_EQ(op_behind(network, "addrows"), (Op{Rearrangement{"addrows", {{10, 3}, {10}}, {6, 3}}}));
    EXPECT_EQ(products(network), 6 * 4 * 3);
    EXPECT_EQ(why_not_run(network), "");
}

TEST(Messages, OfAGraphOfOpenSizeAreOneSampleOnceTheSizeIsGiven) {
    const std::string path = one_graph(-1).save("open.onnx");
    EXPECT_THAT(import_onnx(path).notes, Contains(HasSubstr("--sizes")));
    const Network network = import_onnx(path, {.sizes = {{"open", 6}}});
    EXPECT_EQ(op_behind(network, "addrows"), (Op{Rearrangement{"addrows", {{10, 3}, {10}}, {6, 3}}}));
    EXPECT_EQ(products(network), 6 * 4 * 3);
}

// A graph with each sample: torch.gather and scatter_add along the second axis.
TEST(Messages, OfAGraphWithEachSample) {
    OnnxFile file({-1, 6, 3}, 16);
    add_edges(file, {-1, 10});
    file.integers("last", {2}).integers("rows", {1, 1, 3});
    file.node("Unsqueeze", {"edges", "last"}, "column");
    file.node("Expand", {"column", "rows"}, "index");
    set(file.node("GatherElements", {"x", "index"}, "messages"), "axis", std::int64_t{1});
    auto& sums = file.node("ScatterElements", {"x", "index", "messages"}, "y");
    set(sums, "axis", std::int64_t{1});
    set_text(sums, "reduction", "add");
    const Network network = import_onnx(file.save("graphs.onnx"), {.values = true});
    EXPECT_EQ(op_behind(network, "takerows"), (Op{Rearrangement{"takerows", {{6, 3}, {10}}, {10, 3}}}));
    EXPECT_EQ(op_behind(network, "addrows"), (Op{Rearrangement{"addrows", {{10, 3}, {10}}, {6, 3}}}));
    EXPECT_EQ(network.layers.back().op, (Op{Add{{6, 3}, 2}}));
    EXPECT_EQ(why_not_run(network), "");
}

// All samples' rows one after the other, as DGCNN has them: the batch is followed through a fixed size, too.
TEST(Messages, BetweenRowsOfAllSamplesStayInTheirSample) {
    OnnxFile file({2, 6, 3}, 13);
    add_edges(file, {2, 10});
    file.integers("flat", {12, 3}).integers("line", {20}).integers("back", {2, 10, 3}).weights("dense.weight", {3, 5});
    file.node("Reshape", {"x", "flat"}, "all");
    file.node("Reshape", {"edges", "line"}, "index");
    file.node("Gather", {"all", "index"}, "taken");
    file.node("Reshape", {"taken", "back"}, "messages");
    file.node("MatMul", {"messages", "dense.weight"}, "y");
    const Network network = import_onnx(file.save("rows.onnx"));
    EXPECT_EQ(network.layers.back().output, (Shape{10, 5}));
}

}  // namespace
}  // namespace rehearse::models
