// SPDX-License-Identifier: Apache-2.0
// torch.nn.EmbeddingBag as PyTorch exports it: a Loop over the bags, of which each turn takes its rows of the table and
// adds them up. Bags of one size are rows that are picked together:
//
//   ids {bags * n} -- Loop { Slice from offset i to offset i + 1 -- Gather rows of the table -- ReduceSum }
//   becomes  ids -- Reshape {bags, n} -- Gather rows of the table -- ReduceSum along n
#include <algorithm>

#include <fmt/format.h>

#include "models/onnx/graph.hpp"

namespace rehearse::models {
namespace {

const onnx::NodeProto* maker_in(const onnx::GraphProto& body, const std::string& value) {
    const auto found = std::ranges::find_if(
        body.node(), [&](const auto& node) { return std::ranges::find(node.output(), value) != node.output().end(); });
    return found == body.node().end() ? nullptr : &*found;
}

// The node of this kind that makes the value, behind others that only see it as another shape.
const onnx::NodeProto* behind(const onnx::GraphProto& body, std::string value, std::string_view kind) {
    constexpr int most = 4;
    for (int i = 0; i < most; ++i) {
        const onnx::NodeProto* maker = maker_in(body, value);
        if (maker == nullptr || maker->op_type().starts_with(kind)) return maker;
        const bool view = maker->op_type() == "Unsqueeze" || maker->op_type() == "Squeeze" ||
                          maker->op_type() == "Identity" || maker->op_type() == "Cast";
        if (!view || maker->input_size() < 1) return nullptr;
        value = maker->input(0);
    }
    return nullptr;
}

onnx::NodeProto made(const onnx::NodeProto& like, std::string_view type, std::vector<std::string> from,
                     const std::string& to) {
    onnx::NodeProto node;
    node.set_op_type(std::string{type});
    node.set_name(like.name());
    for (const std::string& input : from) node.add_input(input);
    node.add_output(to);
    return node;
}

}  // namespace

bool OnnxGraph::put_bags(const onnx::NodeProto& loop, std::vector<const onnx::NodeProto*>& open) {
    const auto body =
        std::ranges::find_if(loop.attribute(), [](const auto& each) { return each.name() == "body" && each.has_g(); });
    const auto bags = loop.input_size() < 1 ? std::nullopt : scalar(loop.input(0));
    if (body == loop.attribute().end() || body->g().output_size() != 2 || loop.output_size() != 1 || !bags)
        return false;
    const onnx::GraphProto& turn = body->g();
    const onnx::NodeProto* sum = behind(turn, turn.output(1).name(), "Reduce");
    const onnx::NodeProto* rows = sum == nullptr ? nullptr : behind(turn, sum->input(0), "Gather");
    const onnx::NodeProto* own = rows == nullptr ? nullptr : behind(turn, rows->input(1), "Slice");
    const bool takes = own != nullptr && own->input_size() > 2 && maker_in(turn, own->input(0)) == nullptr &&
                       integer(*rows, "axis", 0) == 0 && list(*sum, "axes") != std::vector<std::int64_t>{1};
    if (!takes) return false;
    const onnx::NodeProto* first = behind(turn, own->input(1), "Gather");
    const auto table = dims(rows->input(0)), ids = dims(own->input(0));
    const auto count = static_cast<std::int64_t>(*bags);
    if (first == nullptr || !constant(rows->input(0)) || !table || table->size() != 2 || !ids || ids->size() != 1 ||
        count < 1 || ids->front() % count != 0)
        return false;
    const std::int64_t size = ids->front() / count;
    const auto offsets = numbers(first->input(0));
    if (!offsets || static_cast<std::int64_t>(offsets->size()) < count) return false;
    for (std::int64_t i = 0; i < count; ++i)
        if ((*offsets)[static_cast<std::size_t>(i)] != i * size) return false;
    const std::string name = loop.output(0), sizes = name + ".sizes", seen = name + ".ids", picked = name + ".rows";
    onnx::NodeProto constant = made(loop, "Constant", {}, sizes);
    auto& value = *constant.add_attribute();
    value.set_name("value_ints");
    value.set_type(onnx::AttributeProto::INTS);
    value.add_ints(count);
    value.add_ints(size);
    onnx::NodeProto added = made(*sum, sum->op_type(), {picked}, name);
    auto& axes = *added.add_attribute();
    axes.set_name("axes");
    axes.set_type(onnx::AttributeProto::INTS);
    axes.add_ints(1);
    auto& keep = *added.add_attribute();
    keep.set_name("keepdims");
    keep.set_type(onnx::AttributeProto::INT);
    keep.set_i(0);
    std::vector<onnx::NodeProto> nodes{constant, made(*rows, "Reshape", {own->input(0), sizes}, seen),
                                       made(*rows, "Gather", {rows->input(0), seen}, picked), added};
    open_up(std::move(nodes), open);
    return true;
}

}  // namespace rehearse::models
