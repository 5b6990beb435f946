// SPDX-License-Identifier: Apache-2.0
// Tensors that an export for inference computed of others, and that the file has besides: PyTorch calls them "onnx::"
// and a number. What they were made of is put back as nodes, as an export for training has them:
//
//   words.weight {v, w} -- Gather                  words.weight -- Gather
//   onnx::MatMul_9 {w, v}, the same turned   =>          \-- Transpose -- onnx::MatMul_9
//
//   onnx::Add_7 {1, h, n, n}: one number for   =>  table {rows, h} -- Gather -- Transpose -- Reshape -- onnx::Add_7
//   each head and distance of two places
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "models/onnx/graph.hpp"

namespace rehearse::models {
namespace {

constexpr std::string_view nameless = "onnx::";

bool uniform_or_absent(const Value& value) {
    return !value.data || value.data->empty() || !value.dims ||
           std::ranges::all_of(*value.data, [&](double each) { return each == value.data->front(); });
}

bool turned_dims(const Value& a, const Value& b) {
    return a.dims && b.dims && a.dims->size() == 2 && b.dims->size() == 2 && (*a.dims)[0] == (*b.dims)[1] &&
           (*a.dims)[1] == (*b.dims)[0];
}

bool is_turned(const Value& a, const Value& b) {
    if (!turned_dims(a, b)) return false;
    const auto rows = static_cast<std::size_t>((*a.dims)[0]), columns = static_cast<std::size_t>((*a.dims)[1]);
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < columns; ++j)
            if ((*a.data)[i * columns + j] != (*b.data)[j * rows + i]) return false;
    return true;
}

onnx::NodeProto made_by(const char* type, const std::string& name, const std::vector<std::string>& inputs,
                        const std::string& output) {
    onnx::NodeProto node;
    node.set_op_type(type);
    node.set_name(name);
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    return node;
}

onnx::AttributeProto& attribute(onnx::NodeProto& node, const char* name, onnx::AttributeProto::AttributeType type) {
    auto& made = *node.add_attribute();
    made.set_name(name);
    made.set_type(type);
    return made;
}

onnx::NodeProto integers_as(const std::string& output, const std::vector<std::int64_t>& values) {
    onnx::NodeProto node = made_by("Constant", output, {}, output);
    auto& list = attribute(node, "value_ints", onnx::AttributeProto::INTS);
    for (const std::int64_t value : values) list.add_ints(value);
    return node;
}

/// A bias of attention by the distance of two places: for each pair of places a row of a table.
struct Distances {
    std::int64_t heads = 1, places = 0, rows = 0;
    std::vector<std::int64_t> row_of{};  // {places, places}
    std::vector<double> table{};         // {rows, heads}; empty where the file has no values
};

// The distance of each pair of an image of `height` x `width` places, as a number.
std::vector<std::int64_t> distances(std::int64_t height, std::int64_t width) {
    std::vector<std::int64_t> made;
    const std::int64_t places = height * width;
    for (std::int64_t i = 0; i < places; ++i)
        for (std::int64_t j = 0; j < places; ++j)
            made.push_back((i / width - j / width + height - 1) * (2 * width - 1) + i % width - j % width + width - 1);
    return made;
}

// The rows that differ, where all pairs of one distance have the same; nothing otherwise.
std::optional<Distances> of_values(const std::vector<double>& values, std::int64_t heads, std::int64_t places,
                                   std::int64_t height) {
    Distances made{.heads = heads, .places = places};
    const auto pairs = static_cast<std::size_t>(places * places);
    const std::vector<std::int64_t> numbers = distances(height, places / height);
    std::map<std::int64_t, std::size_t> first;  // a pair of each distance
    std::map<std::vector<double>, std::int64_t> rows;
    const auto row = [&](std::size_t pair) {
        std::vector<double> of_heads;
        for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h) of_heads.push_back(values[h * pairs + pair]);
        return of_heads;
    };
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        const auto [found, fresh] = first.try_emplace(numbers[pair], pair);
        for (std::size_t h = 0; h < static_cast<std::size_t>(heads) && !fresh; ++h)
            if (values[h * pairs + pair] != values[h * pairs + found->second]) return std::nullopt;
    }
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        const std::vector<double> of_heads = row(first.at(numbers[pair]));
        const auto [found, fresh] = rows.try_emplace(of_heads, static_cast<std::int64_t>(rows.size()));
        if (fresh) made.table.insert(made.table.end(), of_heads.begin(), of_heads.end());
        made.row_of.push_back(found->second);
    }
    made.rows = static_cast<std::int64_t>(rows.size());
    return made;
}

// Of a tensor {heads, n, n}. Without values one of a square window's places is taken for such a table.
std::optional<Distances> distances_in(const Value& value) {
    if (!value.dims || value.dims->size() < 3) return std::nullopt;
    const Shape& dims = *value.dims;
    const std::int64_t places = dims.back(), heads = dims[dims.size() - 3];
    constexpr std::int64_t most_places = 4096;
    if (places < 4 || places > most_places || dims[dims.size() - 2] != places || heads < 1 ||
        elements(dims) != heads * places * places)
        return std::nullopt;
    const auto side = static_cast<std::int64_t>(std::lround(std::sqrt(static_cast<double>(places))));
    if (!value.data) {
        if (side * side != places) return std::nullopt;
        return Distances{
            .heads = heads, .places = places, .rows = (2 * side - 1) * (2 * side - 1), .row_of = distances(side, side)};
    }
    std::vector<std::int64_t> heights{1};  // of a line: fewest distances
    if (side * side == places) heights.push_back(side);
    for (std::int64_t height = 2; height < places; ++height)
        if (places % height == 0 && height != side) heights.push_back(height);
    for (const std::int64_t height : heights)
        if (auto found = of_values(*value.data, heads, places, height)) return found;
    return std::nullopt;
}

}  // namespace

// A tensor without a name that is a named one, turned or in another shape: the named one is what training changes.
std::vector<onnx::NodeProto> OnnxGraph::moved_tensors() {
    std::vector<onnx::NodeProto> nodes;
    std::vector<std::string> turned;
    bool unseen = false;
    std::map<std::int64_t, std::vector<std::string>> named;  // by their number of elements
    for (const auto& tensor : model_.graph().initializer()) {
        const Value& value = given_.at(tensor.name());
        if (!tensor.name().starts_with(nameless) && !value.weights.empty())
            named[elements(*value.dims)].push_back(tensor.name());
    }
    for (const auto& tensor : model_.graph().initializer()) {
        const std::string& name = tensor.name();
        const Value& value = given_.at(name);
        if (!name.starts_with(nameless) || value.weights.empty()) continue;
        for (const std::string& other : named[elements(*value.dims)]) {
            const Value& from = given_.at(other);
            unseen = unseen || (!value.data && turned_dims(value, from) && value.dims->front() != value.dims->back() &&
                                name.starts_with("onnx::MatMul") && is_table(other));
            if (uniform_or_absent(value) || uniform_or_absent(from) || value.dims == from.dims) continue;
            if (is_turned(value, from)) {
                nodes.push_back(made_by("Transpose", name, {other}, name));
                auto& order = attribute(nodes.back(), "perm", onnx::AttributeProto::INTS);
                order.add_ints(1);
                order.add_ints(0);
            } else if (*value.data == *from.data) {
                nodes.push_back(integers_as(name + ".shape", *value.dims));
                nodes.push_back(made_by("Reshape", name, {other, name + ".shape"}, name));
            } else {
                continue;
            }
            turned.push_back(name);
            break;
        }
    }
    for (const std::string& name : turned) given_.erase(name);
    if (unseen)
        ++notes_
            ["a dense layer has the sizes of a table, turned: whether both are one tensor cannot be seen in an "
             "export for inference without weights"];
    return nodes;
}

std::vector<onnx::NodeProto> OnnxGraph::distance_tables() {
    std::vector<onnx::NodeProto> nodes;
    std::vector<std::pair<std::string, Distances>> found;
    for (const auto& tensor : model_.graph().initializer()) {
        const auto given = given_.find(tensor.name());
        if (!tensor.name().starts_with("onnx::Add") || given == given_.end() || given->second.weights.empty()) continue;
        if (given->second.data && uniform_or_absent(given->second)) continue;
        if (auto distances = distances_in(given->second)) found.emplace_back(tensor.name(), std::move(*distances));
    }
    for (auto& [name, each] : found) {
        const std::string table = name + ".table";
        const Shape dims = *given_.at(name).dims;
        Value value = given_.at(name);
        value.dims = Shape{each.rows, each.heads};
        value.weights = {table};
        value.data = nullptr;
        if (!each.table.empty())
            value.data = std::make_shared<const std::vector<double>>(std::move(each.table));
        else
            ++notes_
                ["tensors without values that an export for inference folded are taken for biases by the distance "
                 "of two places in a square window"];
        given_.erase(name);
        given_[table] = std::move(value);
        nodes.push_back(integers_as(name + ".rows", each.row_of));
        nodes.push_back(made_by("Gather", name + ".picked", {table, name + ".rows"}, name + ".picked"));
        nodes.push_back(made_by("Transpose", name + ".turned", {name + ".picked"}, name + ".turned"));
        auto& order = attribute(nodes.back(), "perm", onnx::AttributeProto::INTS);
        order.add_ints(1);
        order.add_ints(0);
        nodes.push_back(integers_as(name + ".shape", dims));
        nodes.push_back(made_by("Reshape", name, {name + ".turned", name + ".shape"}, name));
    }
    return nodes;
}

void OnnxGraph::unfold_tensors() {
    std::vector<const onnx::NodeProto*> all;
    for (const auto& nodes : {moved_tensors(), distance_tables()})
        for (const onnx::NodeProto& node : nodes) all.push_back(&made_.emplace_back(node));
    nodes_.insert(nodes_.begin(), all.begin(), all.end());
}

}  // namespace rehearse::models
