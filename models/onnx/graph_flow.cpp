// SPDX-License-Identifier: Apache-2.0
// Control flow that follows from sizes and constants: an If becomes the branch that is taken, a Loop its turns.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include <fmt/format.h>

#include "models/onnx/made_nodes.hpp"

namespace rehearse::models {
namespace {

constexpr std::size_t most_made = 50000;  // nodes of all turns of a loop

using Names = std::unordered_map<std::string, std::string>;

// Whatever of `node` is called by one of `names`, in graphs inside of it, too.
// NOLINTNEXTLINE(misc-no-recursion): graphs in graphs, no deeper than protobuf reads
void rename(onnx::NodeProto& node, const Names& names) {
    const auto change = [&](std::string& value) {
        if (const auto found = names.find(value); found != names.end()) value = found->second;
    };
    for (auto& value : *node.mutable_input()) change(value);
    for (auto& value : *node.mutable_output()) change(value);
    for (auto& attribute : *node.mutable_attribute()) {
        if (!attribute.has_g()) continue;
        for (auto& output : *attribute.mutable_g()->mutable_output()) change(*output.mutable_name());
        for (auto& inner : *attribute.mutable_g()->mutable_node()) rename(inner, names);
    }
}

const onnx::GraphProto* graph_of(const onnx::NodeProto& node, std::string_view attribute) {
    const auto found = std::ranges::find_if(node.attribute(),
                                            [&](const auto& each) { return each.name() == attribute && each.has_g(); });
    return found == node.attribute().end() ? nullptr : &found->g();
}

onnx::NodeProto copy_of(const std::string& from, const std::string& to) { return made_by("Identity", "", {from}, to); }

// What several values are one after the other along an axis, a new one where it is asked for.
std::vector<onnx::NodeProto> joined(const std::vector<std::string>& made, const std::string& to, std::int64_t along,
                                    bool fresh) {
    std::vector<onnx::NodeProto> nodes;
    onnx::NodeProto join = made_by("Concat", "", {}, to);
    attribute(join, "axis", onnx::AttributeProto::INT).set_i(along);
    for (const std::string& each : made) {
        if (!fresh) {
            join.add_input(each);
            continue;
        }
        const std::string row = fmt::format("{}.row{}.{}", each, join.input_size(), to);
        nodes.push_back(made_by("Unsqueeze", "", {each}, row));
        attribute(nodes.back(), "axes", onnx::AttributeProto::INTS).add_ints(along);
        join.add_input(row);
    }
    nodes.push_back(join);
    return nodes;
}

// The sizes of the pieces that a SplitToSequence cuts a `whole` into, by the numbers of its second operand: one for
// all, of which the last piece may have less, or one each. Nothing where they do not make the whole.
std::optional<std::vector<std::int64_t>> sizes_of_pieces(const std::vector<std::int64_t>& said, std::int64_t whole) {
    const std::int64_t first = said.empty() ? 0 : said.front();
    if (said.size() != 1)
        return std::accumulate(said.begin(), said.end(), 0.0) == static_cast<double>(whole) ? std::optional(said)
                                                                                            : std::nullopt;
    if (first < 1 || first > whole || whole / first > static_cast<std::int64_t>(most_made)) return std::nullopt;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(whole / first), first);
    if (whole % first != 0) sizes.push_back(whole % first);
    return sizes;
}

// What makes the pieces of a SplitToSequence, and their names; nothing where its sizes are not those of the axis.
std::optional<std::vector<onnx::NodeProto>> pieces(const onnx::NodeProto& node, const Shape& dims,
                                                   const std::vector<std::int64_t>& said,
                                                   std::vector<std::string>& names) {
    const auto rank = static_cast<std::int64_t>(dims.size());
    const std::int64_t axis = integer(node, "axis", 0) + (integer(node, "axis", 0) < 0 ? rank : 0);
    if (axis < 0 || axis >= rank) return std::nullopt;
    const auto sizes = sizes_of_pieces(said, dims[static_cast<std::size_t>(axis)]);
    if (!sizes || sizes->size() > most_made || std::ranges::any_of(*sizes, [](auto size) { return size < 1; }))
        return std::nullopt;
    const bool lines = node.input_size() < 2 && integer(node, "keepdims", 1) == 0;  // the axis goes
    std::vector<onnx::NodeProto> nodes;
    for (std::size_t i = 0; i < sizes->size(); ++i) {
        names.push_back(fmt::format("{}.piece{}", node.output(0), i));
        if (!lines) continue;
        const std::string index = names.back() + ".index";
        nodes.push_back(constant_node(index, static_cast<std::int64_t>(i), onnx::TensorProto::INT64));
        nodes.push_back(made_by("Gather", "", {node.input(0), index}, names.back()));
        attribute(nodes.back(), "axis", onnx::AttributeProto::INT).set_i(axis);
    }
    if (lines) return nodes;
    onnx::NodeProto split = made_by("Split", "", {node.input(0)}, names.front());
    for (std::size_t i = 1; i < names.size(); ++i) split.add_output(names[i]);
    attribute(split, "axis", onnx::AttributeProto::INT).set_i(axis);
    auto& cuts = attribute(split, "split", onnx::AttributeProto::INTS);
    for (const std::int64_t size : *sizes) cuts.add_ints(size);
    return std::vector{split};
}

}  // namespace

void OnnxGraph::open_up(std::vector<onnx::NodeProto> nodes, std::vector<const onnx::NodeProto*>& open) {
    for (std::size_t i = nodes.size(); i-- > 0;) open.push_back(&made_.emplace_back(std::move(nodes[i])));
}

// Of the second operand of a CastLike only the type counts. False where that is not known.
bool OnnxGraph::put_cast(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open) {
    if (node.op_type() != "CastLike" || node.input_size() != 2 || node.output_size() != 1) return false;
    const int element = value(node.input(1)).element;
    if (element == onnx::TensorProto::UNDEFINED) return false;
    onnx::NodeProto cast = made_by("Cast", node.name(), {node.input(0)}, node.output(0));
    attribute(cast, "to", onnx::AttributeProto::INT).set_i(element);
    open_up({cast}, open);
    return true;
}

// A sequence whose length is known, as a list in a scripted function is: what it holds, by name. False where the node
// has nothing to do with one.
bool OnnxGraph::put_sequence(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open) {
    const std::string& type = node.op_type();
    const std::string first = node.input_size() > 0 ? node.input(0) : "",
                      made = node.output_size() > 0 ? node.output(0) : "";
    if (type == "SequenceEmpty" || type == "SequenceConstruct") {
        sequences_[made].assign(node.input().begin(), node.input().end());
        return true;
    }
    if (type == "SplitToSequence" && dims(first)) {
        const auto said = node.input_size() > 1 ? numbers(node.input(1)) : std::vector<std::int64_t>{1};
        std::vector<std::string> names;
        auto nodes = said ? pieces(node, *dims(first), *said, names) : std::nullopt;
        if (!nodes) return false;
        open_up(*std::move(nodes), open);
        sequences_[made] = std::move(names);
        return true;
    }
    const auto found = sequences_.find(first);
    if (found == sequences_.end()) return false;
    std::vector<std::string> held = found->second;
    const auto place = [&](int input, std::int64_t otherwise) -> std::optional<std::size_t> {
        const bool said = input < node.input_size() && !node.input(input).empty();
        const auto number = said ? scalar(node.input(input)) : std::optional<double>(static_cast<double>(otherwise));
        const auto size = static_cast<double>(held.size());
        if (!number || !(std::abs(*number) <= size)) return std::nullopt;
        return static_cast<std::size_t>(*number < 0 ? *number + size : *number);
    };
    if (type == "SequenceInsert" && node.input_size() > 1) {
        const auto at = place(2, static_cast<std::int64_t>(held.size()));
        if (!at || held.size() >= most_made) return false;
        held.insert(held.begin() + static_cast<std::ptrdiff_t>(*at), node.input(1));
    } else if (type == "SequenceErase") {
        const auto at = place(1, static_cast<std::int64_t>(held.size()) - 1);
        if (!at || *at >= held.size()) return false;
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(*at));
    } else if (type == "SequenceAt") {
        const auto at = place(1, 0);
        if (!at || *at >= held.size()) return false;
        open_up({copy_of(held[*at], made)}, open);
        return true;
    } else if (type == "SequenceLength") {
        open_up({constant_node(made, static_cast<std::int64_t>(held.size()), onnx::TensorProto::INT64)}, open);
        return true;
    } else if (type == "ConcatFromSequence" && !held.empty()) {
        open_up(joined(held, made, integer(node, "axis", 0), integer(node, "new_axis", 0) != 0), open);
        return true;
    } else if (type != "Identity") {
        return false;
    }
    sequences_[made] = std::move(held);
    return true;
}

// A branch whose condition follows from sizes, as PyTorch exports squeeze(), takes the place of its If: its nodes, then
// its outputs by their outer names. False where the condition depends on data.
bool OnnxGraph::put_branch(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open) {
    if (node.input_size() != 1) return false;
    const auto condition = scalar(node.input(0));
    if (!condition) return false;
    const std::string_view name = *condition != 0 ? "then_branch" : "else_branch";
    const onnx::GraphProto* const graph = graph_of(node, name);
    if (graph == nullptr) fail(node, fmt::format("it has no {}", name));
    if (graph->output_size() < node.output_size()) fail(node, fmt::format("its {} makes too few outputs", name));
    for (const auto& tensor : graph->initializer()) values_[tensor.name()] = initializer(tensor, true);
    for (int i = node.output_size(); i-- > 0;)
        open.push_back(&made_.emplace_back(copy_of(graph->output(i).name(), node.output(i))));
    for (int i = graph->node_size(); i-- > 0;) {
        check_attributes(graph->node(i));
        open.push_back(&graph->node(i));
    }
    return true;
}

// Whether the loop goes on after each of its turns: its condition is the one that it began with, or a constant.
bool OnnxGraph::goes_on(const onnx::NodeProto& loop, const onnx::GraphProto& body) const {
    const bool begins = loop.input_size() < 2 || loop.input(1).empty() || scalar(loop.input(1)).value_or(0) != 0;
    std::string name = body.output(0).name();
    for (int steps = 0; begins && steps <= body.node_size(); ++steps) {
        if (name == body.input(1).name()) return true;
        const auto maker = std::ranges::find_if(
            body.node(), [&](const auto& each) { return each.output_size() > 0 && each.output(0) == name; });
        if (maker == body.node().end()) return scalar(name).value_or(0) != 0;
        if (maker->op_type() == "Constant") {
            const auto* const value = tensor(*maker, "value");
            const Value made = value == nullptr ? Value{} : initializer(*value, false);
            return made.data && made.data->size() == 1 && made.data->front() != 0;
        }
        if ((maker->op_type() != "Identity" && maker->op_type() != "Cast") || maker->input_size() != 1) return false;
        name = maker->input(0);
    }
    return false;
}

// A Loop of a constant number of turns, as PyTorch exports a scripted `for`: the nodes of each turn, with names of
// their own. False where the number depends on data.
bool OnnxGraph::put_turns(const onnx::NodeProto& node, std::vector<const onnx::NodeProto*>& open) {
    const onnx::GraphProto* const body = graph_of(node, "body");
    const auto turns = node.input_size() < 1 ? std::nullopt : scalar(node.input(0));
    if (body == nullptr || !turns || !(*turns >= 1)) return false;
    // As often as there are samples, or that many times more.
    if (open_batch_ && std::fmod(*turns, static_cast<double>(batch_)) == 0) return false;
    const int carried = node.input_size() - 2;
    if (carried < 0 || body->input_size() != carried + 2 || body->output_size() != node.output_size() + 1 ||
        node.output_size() < carried || !goes_on(node, *body))
        return false;
    if (*turns * (body->node_size() + body->output_size()) > static_cast<double>(most_made))
        fail(node, fmt::format("its {:.0f} turns would be more than {} nodes", *turns, most_made));
    for (const auto& tensor : body->initializer()) values_[tensor.name()] = initializer(tensor, true);
    for (const auto& inner : body->node()) check_attributes(inner);
    std::vector<onnx::NodeProto> made;
    std::vector<std::vector<std::string>> rows(static_cast<std::size_t>(node.output_size() - carried));
    std::vector<std::string> state(node.input().begin() + 2, node.input().end());
    for (std::int64_t turn = 0; turn < static_cast<std::int64_t>(*turns); ++turn) {
        const std::string mark = fmt::format("@{}.{}", node.output_size() > 0 ? node.output(0) : node.name(), turn);
        Names names{{body->input(0).name(), body->input(0).name() + mark},
                    {body->input(1).name(), body->input(1).name() + mark}};
        made.push_back(constant_node(body->input(0).name() + mark, turn, onnx::TensorProto::INT64));
        made.push_back(constant_node(body->input(1).name() + mark, 1, onnx::TensorProto::BOOL));
        for (int i = 0; i < carried; ++i) names[body->input(i + 2).name()] = state[static_cast<std::size_t>(i)];
        for (const auto& inner : body->node())
            for (const std::string& output : inner.output())
                if (!output.empty()) names[output] = output + mark;
        for (const auto& inner : body->node()) rename(made.emplace_back(inner), names);
        const auto called = [&](int output) {
            const std::string& name = body->output(output).name();
            const auto found = names.find(name);
            return found == names.end() ? name : found->second;
        };
        for (int i = 0; i < carried; ++i) state[static_cast<std::size_t>(i)] = called(i + 1);
        for (std::size_t i = 0; i < rows.size(); ++i) {
            const std::string row = fmt::format("{}{}.row", called(carried + 1 + static_cast<int>(i)), mark);
            made.push_back(copy_of(called(carried + 1 + static_cast<int>(i)), row));
            rows[i].push_back(row);
        }
    }
    for (int i = 0; i < carried; ++i) made.push_back(copy_of(state[static_cast<std::size_t>(i)], node.output(i)));
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::string& to = node.output(carried + static_cast<int>(i));
        if (to.empty()) continue;
        for (onnx::NodeProto& each : joined(rows[i], to, 0, true)) made.push_back(std::move(each));
    }
    open_up(std::move(made), open);
    return true;
}

}  // namespace rehearse::models
