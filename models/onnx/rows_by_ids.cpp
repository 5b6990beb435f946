// SPDX-License-Identifier: Apache-2.0
// As PyTorch Geometric and torch_scatter spell it:
//
//   x ─ Gather(from) ─ ... ─ ScatterElements(zeros, index, add)       index: to {edges}, as {edges, 1}, expanded
//
// is x ─ takerows(from) ─ ... ─ addrows(to).
#include "models/onnx/rows_by_ids.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "models/onnx/infer.hpp"

namespace rehearse::models {
namespace {

// The integers, one a row, behind indices that are the same all along a row; nothing where they may differ.
std::optional<std::string> one_a_row(const Import& import, std::string name, std::int64_t rows) {
    constexpr int most_steps = 8;
    for (int steps = 0; steps < most_steps; ++steps) {
        const auto shape = import.graph.sample(name);
        if (!shape) return std::nullopt;
        if (elements(*shape) == rows) return name;
        const onnx::NodeProto* maker = import.graph.value(name).maker;
        const bool spread = maker != nullptr && is_one_of(maker->op_type(), {"Expand", "Tile"});
        const bool view = maker != nullptr && is_one_of(maker->op_type(), {"Cast", "Identity", "Reshape", "Unsqueeze"});
        if ((!spread && !view) || shape->front() != rows) return std::nullopt;
        const auto before = import.graph.sample(maker->input(0));
        if (spread && (!before || elements(*before) != rows || before->front() != rows)) return std::nullopt;
        name = maker->input(0);
    }
    return std::nullopt;
}

bool alike_behind(const Shape& a, const Shape& b) {
    return a.size() == b.size() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

bool holds_zeros(const Import& import, const std::string& name) {
    const auto& data = import.graph.value(name).data;
    return import.graph.constant(name) && data && std::ranges::all_of(*data, [](double each) { return each == 0; });
}

}  // namespace

bool picks_samples(Import& import, const onnx::NodeProto& node) {
    const bool puts = node.op_type().starts_with("Scatter");
    if (node.op_type().ends_with("ND") || node.input_size() < 2) return false;
    const Value& from = import.graph.value(puts ? node.output(0) : node.input(0));
    const Value& where = import.graph.value(node.input(1));
    if (where.kind == Value::Kind::constant || from.batch < 0 || !from.dims) return false;
    const std::int64_t axis = positive_modulo(integer(node, "axis", 0), static_cast<std::int64_t>(from.dims->size()));
    const bool rows_of_all = (*from.dims)[static_cast<std::size_t>(from.batch)] > import.graph.batch();
    if (axis != from.batch || (rows_of_all && where.batch >= 0)) return false;
    if (!import.graph.open_batch() || import.graph.sized_batch()) return true;
    ++import.notes
          ["integers pick rows of several samples: what is taken for a sample is a row of one; --sizes with the "
           "number of rows takes all that the file feeds in for one sample"];
    return false;
}

bool takes_rows(Import& import, const onnx::NodeProto& node, int table) {
    const Shape shape = import.builder.shape(table), to = import.sample(node, node.output(0));
    const auto axis = axis_of_sample(import.graph.value(node.input(0)), shape, integer(node, "axis", 0));
    if (!axis || *axis != 0 || import.graph.constant(node.input(1))) return false;
    const auto named = import.graph.sample(node.input(1));
    if (!named) return false;
    Shape taken = shape;
    std::optional<std::string> ids;
    if (node.op_type() == "Gather") {
        taken.front() = elements(*named);
        ids = node.input(1);
    } else if (node.op_type() == "GatherElements" && alike_behind(*named, shape)) {
        taken.front() = named->front();
        ids = one_a_row(import, node.input(1), named->front());
    }
    const bool known = ids && (import.places.contains(*ids) || import.can_be_fed(*ids));
    if (!known || elements(taken) != elements(to)) return false;
    const int from = import.layer_of(node, *ids, {taken.front()});
    import.put(node, Rearrangement{"takerows", {shape, { taken.front() }}, taken}, {table, from});
    return true;
}

bool adds_rows(Import& import, const onnx::NodeProto& node) {
    if (text(node, "reduction", "none") != "add" || node.input_size() < 3) return false;
    const Shape to = import.sample(node, node.output(0));
    std::optional<Import::Beside> same;  // of constants, which are added for each sample
    if (import.graph.constant(node.input(2))) {
        same = import.values_beside(node, import.graph.value(node.input(2)));
        if (!same) return false;
    }
    const Shape moved = same ? same->shape : import.sample(node, node.input(2));
    const auto named = import.graph.sample(node.input(1));
    if (!named || !alike_behind(moved, to)) return false;
    std::optional<std::string> ids;
    if (node.op_type() == "ScatterND") {
        if (named->back() == 1 && elements(*named) == moved.front()) ids = node.input(1);
    } else if (*named == moved) {
        const auto axis = axis_of_sample(import.graph.value(node.output(0)), to, integer(node, "axis", 0));
        if (axis && *axis == 0) ids = one_a_row(import, node.input(1), moved.front());
    }
    const bool known = ids && (import.graph.constant(*ids) || import.places.contains(*ids) || import.can_be_fed(*ids));
    if (!known) return false;
    const int values =
        same ? import.fixed_layer(node, "added", moved, std::move(same->values)) : import.source(node, 2, moved);
    const int from = import.layer_of(node, *ids, {moved.front()});
    const int sums = import.put(node, Rearrangement{"addrows", {moved, {moved.front()}}, to}, {values, from});
    if (holds_zeros(import, node.input(0))) return true;
    const int before = import.source(node, 0, to);
    import.put(node, Add{to, 2}, {before, sums});
    return true;
}

}  // namespace rehearse::models
