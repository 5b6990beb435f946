// SPDX-License-Identifier: Apache-2.0
// Operators that move values. What only names them anew (Reshape, Squeeze) makes no layer.
#include <algorithm>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "models/onnx/windows.hpp"

namespace rehearse::models {

std::string reshape(Import& import, const onnx::NodeProto& node) {
    import.alias(node, node.output(0), node.input(0));
    return "";
}

namespace {

std::optional<std::vector<std::int64_t>> numbers_of(const Import& import, const onnx::NodeProto& node,
                                                    std::string_view attribute, int input) {
    if (auto values = list(node, attribute)) return values;
    if (input >= node.input_size() || node.input(input).empty()) return std::nullopt;
    return import.graph.numbers(node.input(input));
}

// First and step of each axis of a sample; empty where samples are picked, or the numbers are not known.
std::vector<std::int64_t> slice_numbers(const Import& import, const onnx::NodeProto& node, const Value& value,
                                        const Shape& shape) {
    const auto starts = numbers_of(import, node, "starts", 1);
    auto axes = numbers_of(import, node, "axes", 3);
    const auto steps = numbers_of(import, node, "steps", 4);
    if (!starts) return {};
    if (!axes) {
        axes.emplace(starts->size());
        std::iota(axes->begin(), axes->end(), 0);
    }
    if (axes->size() != starts->size() || (steps && steps->size() != starts->size())) return {};
    std::vector<std::int64_t> numbers(2 * shape.size(), 0);
    std::fill(numbers.begin() + static_cast<std::ptrdiff_t>(shape.size()), numbers.end(), 1);
    for (std::size_t i = 0; i < starts->size(); ++i) {
        const std::int64_t step = steps ? (*steps)[i] : 1;
        const auto axis = axis_of_sample(value, shape, (*axes)[i]);
        const bool all = (*starts)[i] == 0 && step == 1;
        if (!axis && all) continue;
        if (!axis) return {};
        const std::int64_t size = shape[*axis];
        const std::int64_t first = (*starts)[i] + ((*starts)[i] < 0 ? size : 0);
        numbers[*axis] = std::clamp<std::int64_t>(first, 0, std::max<std::int64_t>(0, step < 0 ? size - 1 : size));
        numbers[shape.size() + *axis] = step;
    }
    return numbers;
}

// How much comes before each axis of a sample; empty as above.
std::vector<std::int64_t> pad_numbers(const Import& import, const onnx::NodeProto& node, const Value& value,
                                      const Shape& shape) {
    const auto pads = numbers_of(import, node, "pads", 1);
    auto axes = numbers_of(import, node, "axes", 3);
    if (!pads) return {};
    if (!axes) {
        axes.emplace(pads->size() / 2);
        std::iota(axes->begin(), axes->end(), 0);
    }
    if (pads->size() != 2 * axes->size()) return {};
    std::vector<std::int64_t> numbers(shape.size(), 0);
    for (std::size_t i = 0; i < axes->size(); ++i) {
        const auto axis = axis_of_sample(value, shape, (*axes)[i]);
        if (!axis && ((*pads)[i] != 0 || (*pads)[i + axes->size()] != 0)) return {};
        if (axis) numbers[*axis] = (*pads)[i];
    }
    return numbers;
}

// Whether a node that keeps the sizes of its sample keeps every element in its place, too.
bool moves_nothing(const Import& import, const onnx::NodeProto& node, const Shape& shape) {
    const std::string& type = node.op_type();
    if (type == "Slice") {
        const auto steps = numbers_of(import, node, "steps", 4);
        return !steps || std::ranges::none_of(*steps, [](std::int64_t step) { return step < 0; });
    }
    if (type == "Pad") {  // what comes before may be taken off behind
        const auto before = pad_numbers(import, node, import.graph.value(node.input(0)), shape);
        return !before.empty() && std::ranges::all_of(before, [](std::int64_t count) { return count == 0; });
    }
    return type == "Expand" || type == "Tile";
}

std::string padding(Import& import, const onnx::NodeProto& node, Rearrangement op, int from) {
    const Value& value = import.graph.value(node.input(0));
    const std::string mode = text(node, "mode", "constant");
    op.kind = mode == "constant" ? "pad" : mode;
    op.fill = number(node, "value", 0);
    if (node.input_size() > 2 && !node.input(2).empty()) op.fill = import.graph.scalar(node.input(2)).value_or(op.fill);
    op.fill = std::clamp(op.fill, -1e38, 1e38);
    op.numbers = pad_numbers(import, node, value, op.inputs.front());
    const bool known = !op.numbers.empty() && op.output.size() == op.inputs.front().size();
    const int layer = import.put(node, std::move(op), {from});
    if (!known) import.not_run(layer, "it pads samples, or by numbers that are not known");
    return "";
}

// Blocks of pixels to channels and back: a transposition of what is seen with its blocks' sizes.
std::string blocks(Import& import, const onnx::NodeProto& node, const Shape& shape, const Shape& to) {
    const std::int64_t size = integer(node, "blocksize", 1);
    const bool deep = node.op_type() == "DepthToSpace";
    if (shape.size() != 3 || to.size() != 3 || size < 1) return "it does not rearrange images";
    Shape seen;
    std::vector<std::int64_t> order;
    if (deep && text(node, "mode", "DCR") == "DCR") {
        seen = {size, size, to[0], shape[1], shape[2]}, order = {2, 3, 0, 4, 1};
    } else if (deep) {
        seen = {to[0], size, size, shape[1], shape[2]}, order = {0, 3, 1, 4, 2};
    } else {
        seen = {shape[0], to[1], size, to[2], size}, order = {2, 4, 0, 1, 3};
    }
    Shape made;
    for (const std::int64_t axis : order) made.push_back(seen[static_cast<std::size_t>(axis)]);
    import.put(node, Rearrangement{"transpose", {seen}, made, order}, {import.source(node, 0, seen)});
    return "";
}

// What lies above or below a diagonal becomes 0.
std::string triangle(Import& import, const onnx::NodeProto& node, const Shape& shape, int from) {
    if (shape.size() < 2) return "it reads no matrix";
    const std::int64_t rows = shape[shape.size() - 2], columns = shape.back();
    const bool upper = integer(node, "upper", 1) != 0;
    const double k = node.input_size() > 1 ? import.graph.scalar(node.input(1)).value_or(0) : 0;
    std::vector<float> mask;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
        const auto above = static_cast<double>(i % columns - i / columns);
        mask.push_back((upper ? above >= k : above <= k) ? 1.0F : 0.0F);
    }
    const int layer = import.put(node, Elementwise{"where", shape, {shape}, {}, {{rows, columns}}, {0}, "cxn"}, {from});
    import.given[layer].fixed = {std::move(mask)};
    return "";
}

}  // namespace

std::string rearrange(Import& import, const onnx::NodeProto& node) {
    const std::string& type = node.op_type();
    const Shape to = import.sample(node, node.output(0));
    const Value& value = import.graph.value(node.input(0));
    if (value.kind == Value::Kind::constant && value.weights.empty()) return "it moves a constant";
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    if (shape == to && moves_nothing(import, node, shape)) {
        import.alias(node, node.output(0), node.input(0));
        return "";
    }
    if (value.kind == Value::Kind::constant && (type == "Expand" || type == "Tile") &&
        elements(shape) == elements(to)) {
        import.places[node.output(0)] = {from, ""};  // once for each sample
        return "";
    }
    if (type == "Pad") return padding(import, node, {"pad", {shape}, to}, from);
    if (type == "DepthToSpace" || type == "SpaceToDepth") return blocks(import, node, shape, to);
    if (type == "Trilu") return triangle(import, node, shape, from);
    Rearrangement op{type == "Transpose" ? "transpose"
                     : type == "Slice"   ? "slice"
                     : type == "Expand"  ? "expand"
                                         : "tile",
                     {shape},
                     to};
    std::string unknown;
    if (type == "Slice") {
        op.numbers = slice_numbers(import, node, value, shape);
        if (op.numbers.empty() || to.size() != shape.size())
            unknown = "it picks samples, or by numbers that are not known";
    }
    if (type == "Transpose") {
        std::vector<std::int64_t> perm = list(node, "perm").value_or(std::vector<std::int64_t>{});
        const auto rank = static_cast<std::int64_t>(value.dims->size());
        if (perm.empty())
            for (std::int64_t i = rank; i-- > 0;) perm.push_back(i);
        // Without the samples' dimension; where sizes of 1 alone change places, nothing moves.
        std::vector<std::int64_t> kept, large;
        const bool dropped = value.batch >= 0 && shape.size() < value.dims->size();
        for (const std::int64_t axis : perm) {
            if (dropped && axis == value.batch) continue;
            kept.push_back(dropped && axis > value.batch ? axis - 1 : axis);
            if (static_cast<std::size_t>(kept.back()) < shape.size() &&
                shape[static_cast<std::size_t>(kept.back())] > 1)
                large.push_back(kept.back());
        }
        if (std::ranges::is_sorted(large)) {
            import.alias(node, node.output(0), node.input(0));
            return "";
        }
        op.numbers = kept;
        if (kept.size() != shape.size()) unknown = "it moves the samples among a sample's axes";
    }
    const int layer = import.put(node, std::move(op), {from});
    if (!unknown.empty()) import.not_run(layer, unknown);
    return "";
}

std::string split(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    const Value& value = import.graph.value(node.input(0));
    const auto axis = axis_of_sample(value, shape, integer(node, "axis", 0));
    std::int64_t first = 0;
    for (int i = 0; i < node.output_size(); ++i) {
        if (node.output(i).empty()) continue;
        const Shape to = import.sample(node, node.output(i));
        Rearrangement op{"slice", {shape}, to};
        if (axis && to.size() == shape.size()) {
            op.numbers.assign(shape.size(), 0);
            op.numbers[*axis] = first;
            op.numbers.resize(2 * shape.size(), 1);
            first += to[*axis];
        }
        if (import.graph.readers(node.output(i)) == 0) continue;
        if (to == shape) {
            import.alias(node, node.output(i), node.input(0));
            continue;
        }
        const bool known = !op.numbers.empty();
        const int layer = import.put(node, std::move(op), {from}, {}, i);
        if (!known) import.not_run(layer, "it parts the samples");
    }
    return "";
}

int beside(Import& import, const onnx::NodeProto& node, int input) {
    const std::string& name = node.input(input);
    const Value& value = import.graph.value(name);
    const bool moved = import.graph.keeps_values() && !value.weights.empty() && (value.places || !value.moved);
    if (moved || import.is_computed(name) || import.places.contains(name)) return import.bring(node, name);
    const std::vector<std::string> tensors = value.weights;
    onnx::NodeProto named;
    named.set_name(tensors.empty() ? name : tensors.front());
    if (tensors.empty()) {
        auto known = import.graph.keeps_values() ? import.values_beside(node, value) : std::nullopt;
        return known ? import.fixed_layer(named, "values", known->shape, std::move(known->values)) : -1;
    }
    if (import.owners.contains(tensors.front()) && !import.graph.uniform(tensors.front())) return -1;
    const auto whole = import.graph.dims(tensors.front());
    if (!whole) import.graph.fail(node, fmt::format("the size of '{}' is not known", tensors.front()));
    Shape dims = *whole;
    const auto read = import.beside_samples(node, dims);
    if (read) dims = *read;
    const int made = import.builder.layer(import.name_for(named), Parameter{dims.empty() ? Shape{1} : dims}, {});
    import.starts[made] = {{ tensors.front() }};
    if (value.places && !value.places->in_order()) import.not_run(made, "what it holds is moved before it is read");
    for (const std::string& tensor : tensors) import.owners.emplace(tensor, made);
    return made;
}

std::string concat(Import& import, const onnx::NodeProto& node) {
    std::vector<int> from;
    std::vector<Shape> shapes;
    const Shape to = import.sample(node, node.output(0));
    bool layers = true, all = true;
    for (int i = 0; i < node.input_size(); ++i) {
        if (import.graph.constant(node.input(i))) {
            layers = false;
            const int made = beside(import, node, i);
            all = all && made >= 0;
            if (made < 0) continue;
            from.push_back(made);
        } else {
            from.push_back(import.source(node, i));
        }
        shapes.push_back(import.builder.shape(from.back()));
    }
    if (from.size() == 1 && elements(shapes.front()) == elements(to)) {
        import.alias(node, node.output(0), node.input(0));
        return "";
    }
    const auto channels = [&](const Shape& shape) {
        return (shape.size() == 3 || shape.size() == 4) &&
               std::equal(shape.begin() + 1, shape.end(), to.begin() + 1, to.end());
    };
    const Value& value = import.graph.value(node.output(0));
    std::int64_t axis = integer(node, "axis", 1);
    if (axis < 0 && value.dims) axis += static_cast<std::int64_t>(value.dims->size());
    if (layers && value.batch == 0 && axis == 1 && std::ranges::all_of(shapes, channels)) {
        Concat op;
        for (const Shape& shape : shapes) op.channels.push_back(shape[0]);
        op.depth = to.size() == 4 ? to[1] : 0;
        op.height = to[to.size() - 2];
        op.width = to.back();
        import.put(node, std::move(op), std::move(from));
        return "";
    }
    const bool samples = value.dims && to.size() < value.dims->size() && axis == value.batch;
    if (value.batch >= 0 && axis > value.batch && value.dims && to.size() < value.dims->size()) --axis;
    if (value.batch < 0 && value.dims && to.size() < value.dims->size() && axis > 0) --axis;
    const int layer = import.put(node, Rearrangement{"join", shapes, to, {axis}}, std::move(from));
    if (samples) import.not_run(layer, "it joins samples");
    if (!all) import.not_run(layer, "one of its pieces is neither trained here nor made by a layer");
    return "";
}

}  // namespace rehearse::models
