// SPDX-License-Identifier: Apache-2.0
// Rotary embeddings (Su et al. 2021) as Hugging Face and GPT-J spell them: each pair of numbers is turned by an angle.
//
//   x --+-- Mul cos -----------------------------------------------------+-- Add
//       +-- Slice or Split -- Neg --+-- Concat (halves), or Unsqueeze,   |
//       +-- Slice or Split ---------+   Concat, Reshape (neighbours) -- Mul sin
#include "models/onnx/patterns_rotary.hpp"

#include <algorithm>
#include <set>

namespace rehearse::models {
namespace {

using Node = const onnx::NodeProto*;

// The node of a product with a table that no layer makes: its other operand, and the table.
struct Scaled {
    Node node = nullptr;
    std::string from, table;
};

std::optional<Scaled> scaled(const OnnxGraph& graph, const std::string& value) {
    Node node = graph.value(value).maker;
    if (node == nullptr || node->op_type() != "Mul" || node->input_size() != 2) return std::nullopt;
    const int at = graph.activation(node->input(0)) ? 0 : 1;
    if (!graph.activation(node->input(at)) || graph.activation(node->input(1 - at))) return std::nullopt;
    return Scaled{node, node->input(at), node->input(1 - at)};
}

// The nodes that make `value` of pieces of `from` alone: one is negated, and they are joined once.
std::optional<std::vector<Node>> halves_of(const OnnxGraph& graph, const std::string& value, const std::string& from) {
    std::vector<Node> nodes;
    std::vector<std::string> open{value};
    int negated = 0, joined = 0;
    while (!open.empty()) {
        const std::string next = open.back();
        open.pop_back();
        if (next == from) continue;
        Node node = graph.value(next).maker;
        if (node == nullptr || nodes.size() > 12) return std::nullopt;
        if (std::ranges::find(nodes, node) != nodes.end()) continue;  // a Split has two readers
        const std::string& type = node->op_type();
        negated += type == "Neg" ? 1 : 0;
        joined += type == "Concat" ? 1 : 0;
        const bool piece = type == "Slice" || type == "Split" || type == "Gather";
        const bool shapes = type == "Unsqueeze" || type == "Squeeze" || type == "Reshape" || type == "Flatten";
        if (type != "Neg" && type != "Concat" && !piece && !shapes) return std::nullopt;
        nodes.push_back(node);
        for (int i = 0; i < (type == "Concat" ? node->input_size() : 1); ++i) open.push_back(node->input(i));
    }
    if (negated != 1 || joined != 1) return std::nullopt;
    return nodes;
}

bool closed(const OnnxGraph& graph, const Rotary& found) {
    for (Node node : found.nodes) {
        if (node == found.last) continue;
        for (const std::string& output : node->output()) {
            const auto readers = computing_readers(graph, output);
            if (!readers || !std::ranges::all_of(*readers, [&](Node reader) {
                    return std::ranges::find(found.nodes, reader) != found.nodes.end();
                }))
                return false;
        }
    }
    return true;
}

}  // namespace

std::optional<std::vector<const onnx::NodeProto*>> computing_readers(const OnnxGraph& graph, const std::string& value) {
    std::vector<Node> readers = graph.readers_of(value);
    if (graph.readers(value) != static_cast<int>(readers.size())) return std::nullopt;
    std::erase_if(readers, [](Node node) { return node->op_type() == "Shape" || node->op_type() == "Size"; });
    return readers;
}

std::optional<Rotary> rotary_at(const OnnxGraph& graph, const onnx::NodeProto& sum) {
    if (sum.op_type() != "Add" || sum.input_size() != 2) return std::nullopt;
    for (const int i : {0, 1}) {
        const auto plain = scaled(graph, sum.input(i)), turned = scaled(graph, sum.input(1 - i));
        if (!plain || !turned || graph.dims(plain->from) != graph.dims(turned->from)) continue;
        const auto between = halves_of(graph, turned->from, plain->from);
        if (!between || graph.dims(plain->from) != graph.dims(sum.output(0))) continue;
        Rotary found{.from = plain->from, .last = &sum, .nodes = *between};
        found.nodes.insert(found.nodes.end(), {plain->node, turned->node, &sum});
        for (const std::string& table : {plain->table, turned->table}) {
            const Shape dims = graph.dims(table).value_or(Shape{});
            found.tables.push_back(dims.empty() ? Shape{1} : dims);
        }
        if (closed(graph, found)) return found;
    }
    return std::nullopt;
}

int put_rotary(Import& import, const Rotary& rotary, int from) {
    const Shape shape = import.builder.shape(from);
    Elementwise op{"rotary", shape, {shape}};
    op.constants = rotary.tables;
    return import.builder.layer(import.name_for(*rotary.last), std::move(op), {from});
}

void find_rotary(const OnnxGraph& graph, Patterns& patterns) {
    for (Node node : graph.nodes()) {
        const auto found = rotary_at(graph, *node);
        if (!found || std::ranges::any_of(found->nodes, [&](Node each) {
                return patterns.at.contains(each) || patterns.inside.contains(each);
            }))
            continue;
        for (Node each : found->nodes)
            if (each != node) patterns.inside.insert(each);
        patterns.at[node] = [rotary = *found](Import& import) {
            const int from = import.layer_of(*rotary.last, rotary.from, import.sample(*rotary.last, rotary.from));
            import.places[rotary.last->output(0)] = {put_rotary(import, rotary, from), ""};
        };
    }
}

}  // namespace rehearse::models
