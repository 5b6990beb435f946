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

// A half of the numbers that are turned, as they are joined: where it begins, every which number it takes.
struct Half {
    bool negated = false, apart = false;  // apart: along an axis of its own
    std::int64_t start = -1, step = 1;
};

std::optional<std::int64_t> first_number(const OnnxGraph& graph, Node node, std::string_view attribute, int input) {
    if (const auto values = list(*node, attribute); values && values->size() == 1) return values->front();
    if (input >= node->input_size() || node->input(input).empty()) return std::nullopt;
    const auto values = graph.numbers(node->input(input));
    return values && values->size() == 1 ? std::optional{values->front()} : std::nullopt;
}

// Back from a join's operand to the piece of `size` numbers that it is.
std::optional<Half> half_of(const OnnxGraph& graph, std::string value, std::int64_t size) {
    Half half;
    for (int i = 0; i < 6; ++i) {
        Node node = graph.value(value).maker;
        if (node == nullptr || node->input_size() < 1) return std::nullopt;
        const std::string& type = node->op_type();
        if (type == "Slice") {
            half.start = first_number(graph, node, "starts", 1).value_or(-1);
            half.step = first_number(graph, node, "steps", 4).value_or(1);
            if (half.start < 0) half.start += size;
            return half;
        }
        const auto from = graph.dims(node->input(0));
        if (type == "Split" || type == "Gather") {
            std::int64_t index = 0;
            while (type == "Split" && node->output(static_cast<int>(index)) != value) ++index;
            if (type == "Gather") index = node->input_size() > 1 && graph.scalar(node->input(1)) == 1.0 ? 1 : 0;
            if (!from || from->empty() ||
                (type == "Gather" && (node->input_size() < 2 || !graph.scalar(node->input(1)))))
                return std::nullopt;
            const bool pairs = from->back() == 2 && size != 2;  // {..., size / 2, 2}
            half.start = pairs ? index : index * size / 2;
            half.step = pairs ? 2 : 1;
            return half;
        }
        half.negated = half.negated || type == "Neg";
        half.apart = half.apart || type == "Unsqueeze";
        if (type != "Neg" && type != "Unsqueeze" && type != "Squeeze" && type != "Reshape") return std::nullopt;
        value = node->input(0);
    }
    return std::nullopt;
}

// Which numbers are pairs; nothing where it is not one of both ways.
std::optional<Rotation> rotation_by(const OnnxGraph& graph, const std::vector<Node>& between, std::int64_t size) {
    const auto join =
        std::ranges::find_if(between, [](Node node) { return node->op_type() == "Concat" && node->input_size() == 2; });
    if (join == between.end() || size < 2 || size % 2 != 0) return std::nullopt;
    const auto second = half_of(graph, (*join)->input(0), size), first = half_of(graph, (*join)->input(1), size);
    if (!first || !second || !second->negated || first->negated || first->start != 0) return std::nullopt;
    const bool neighbours = second->start == 1 && second->step == 2 && first->step == 2 && first->apart;
    const bool halves = second->start == size / 2 && second->step == 1 && first->step == 1 && !first->apart;
    if (!neighbours && !(halves && size > 2)) return std::nullopt;
    return Rotation{.size = size, .turned = size, .neighbours = neighbours};
}

// Where a table of `size` numbers a row has its rows, counted from behind, beside a value of so many dimensions: 2 or
// 3; 0 of a single row, nothing where it has more axes.
std::optional<std::size_t> rows_axis(const Shape& table, std::int64_t size) {
    if (table.empty() || table.back() != size) return std::nullopt;
    std::size_t axis = 0;
    for (std::size_t i = 0; i + 1 < table.size(); ++i) {
        if (table[i] == 1) continue;
        if (axis != 0) return std::nullopt;
        axis = table.size() - i;
    }
    return axis <= 3 ? std::optional{axis} : std::nullopt;
}

void find_rotation(const OnnxGraph& graph, const std::vector<Node>& between, Rotary& found) {
    const Shape dims = graph.dims(found.from).value_or(Shape{});
    if (dims.empty()) return;
    const auto rotation = rotation_by(graph, between, dims.back());
    std::optional<std::size_t> axis;
    for (const std::string& table : found.tables) {
        const auto own = rows_axis(graph.dims(table).value_or(Shape{}), dims.back());
        if (!own || (axis && *axis != *own)) return;
        axis = own;
        if (*own > dims.size()) return;
        const std::int64_t rows = *own == 0 ? 1 : dims[dims.size() - *own];
        if (graph.keeps_values() && (!graph.value(table).data ||
                                     static_cast<std::int64_t>(graph.value(table).data->size()) != rows * dims.back()))
            return;
    }
    found.rotation = rotation;
    found.rows_first = axis && *axis == 3;
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
        if (!graph.dims(plain->from) || graph.dims(plain->from)->empty()) continue;
        const auto between = halves_of(graph, turned->from, plain->from);
        if (!between || graph.dims(plain->from) != graph.dims(sum.output(0))) continue;
        Rotary found{.from = plain->from, .last = &sum, .nodes = *between};
        found.nodes.insert(found.nodes.end(), {plain->node, turned->node, &sum});
        found.tables = {plain->table, turned->table};
        find_rotation(graph, *between, found);
        if (closed(graph, found) && (found.rotation || !graph.keeps_values())) return found;
    }
    return std::nullopt;
}

int put_rotary(Import& import, const Rotary& rotary, int from) {
    const Shape shape = import.builder.shape(from);
    Elementwise op{"rotary", shape, {shape}};
    std::vector<Shape> tables;
    for (const std::string& table : rotary.tables) {
        const Shape dims = import.graph.dims(table).value_or(Shape{});
        tables.push_back(dims.empty() ? Shape{1} : dims);
    }
    if (rotary.rotation) {
        op = rehearse::rotary(shape, *rotary.rotation, shape.back() / rotary.rotation->size, std::move(tables));
    } else {
        op.constants = std::move(tables);
    }
    const int layer = import.builder.layer(import.name_for(*rotary.last), std::move(op), {from});
    for (const std::string& table : rotary.tables) {
        const auto& data = import.graph.value(table).data;
        if (data && import.graph.keeps_values()) import.given[layer].fixed.emplace_back(data->begin(), data->end());
    }
    return layer;
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
            Shape shape = import.sample(*rotary.last, rotary.from);
            if (rotary.rows_first && shape.size() == 3) shape = {shape[0], shape[1] * shape[2]};
            const int from = import.layer_of(*rotary.last, rotary.from, shape);
            import.places[rotary.last->output(0)] = {put_rotary(import, rotary, from), ""};
        };
    }
}

}  // namespace rehearse::models
