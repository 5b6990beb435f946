// SPDX-License-Identifier: Apache-2.0
// Biases of attention by the distance of two places, which an export for inference spreads over all pairs, are put
// back:
//
//   onnx::Add_7 {1, h, n, n}: one number for   =>  table {rows, h} -- Gather -- Transpose -- Reshape -- onnx::Add_7
//   each head and distance of two places
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "models/onnx/made_nodes.hpp"

namespace rehearse::models {
namespace {

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

}  // namespace rehearse::models
