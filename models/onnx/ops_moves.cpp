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

// A place that numbers of an axis go to: the axis of one sample; nothing where it is the samples' own.
std::optional<std::size_t> axis_of_sample(const Value& value, const Shape& sample, std::int64_t axis) {
    const std::int64_t found = in_sample(value, sample, axis);
    if (found < 0 || static_cast<std::size_t>(found) >= sample.size()) return std::nullopt;
    return static_cast<std::size_t>(found);
}

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
        numbers[*axis] = std::clamp<std::int64_t>(first, 0, step < 0 ? size - 1 : size);
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
    std::vector<std::int64_t> numbers(shape.size(), 0);
    for (std::size_t i = 0; i < axes->size(); ++i) {
        const auto axis = axis_of_sample(value, shape, (*axes)[i]);
        if (!axis && ((*pads)[i] != 0 || (*pads)[i + axes->size()] != 0)) return {};
        if (axis) numbers[*axis] = (*pads)[i];
    }
    return numbers;
}

bool has_negative_step(const Import& import, const onnx::NodeProto& node) {
    const auto steps = numbers_of(import, node, "steps", 4);
    return steps && std::ranges::any_of(*steps, [](std::int64_t step) { return step < 0; });
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
    if (value.kind == Value::Kind::constant) {  // weights that stand beside each sample
        if (value.weights.empty()) return "it moves a constant";
        import.put(node, Parameter{to}, {}, import.tensors(node, 0, 0));
        return "";
    }
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    if (shape == to && (type == "Slice" || type == "Expand" || type == "Tile" || type == "Pad") &&
        (type != "Slice" || !has_negative_step(import, node))) {
        import.alias(node, node.output(0), node.input(0));  // whole, once, by nothing
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

namespace {

// A tensor of the file beside each sample: trained, or fixed; -1 where it is neither.
int beside(Import& import, const onnx::NodeProto& node, int input) {
    const std::string& name = node.input(input);
    const Value& value = import.graph.value(name);
    const std::vector<std::string> tensors = import.tensors(node, input, input);
    onnx::NodeProto named;
    named.set_name(tensors.empty() ? name : tensors.front());
    if (tensors.empty()) {
        if (!value.dims || !value.data || !import.graph.keeps_values()) return -1;
        const Shape dims = import.beside_samples(node, *value.dims).value_or(*value.dims);
        Elementwise op{.function = "copy", .shape = dims.empty() ? Shape{1} : dims, .inputs = {}};
        op.constants = {op.shape};
        const int made = import.builder.layer(import.name_for(named), op, {});
        import.given[made].fixed.emplace_back(value.data->begin(), value.data->end());
        return made;
    }
    if (import.owners.contains(tensors.front()) && !import.graph.uniform(tensors.front())) return -1;
    Shape dims = *import.graph.dims(tensors.front());
    const auto read = import.beside_samples(node, dims);
    if (read) dims = *read;
    const int made = import.builder.layer(import.name_for(named), Parameter{dims.empty() ? Shape{1} : dims}, {});
    import.starts[made] = {{ tensors.front() }};
    for (std::size_t i = 0; value.places && i < static_cast<std::size_t>(elements(import.builder.shape(made))); ++i) {
        if (i < value.places->size() && (*value.places)[i] != static_cast<double>(i))
            import.not_run(made, "what it holds is moved before it is read");
    }
    for (const std::string& tensor : tensors) import.owners.emplace(tensor, made);
    return made;
}

}  // namespace

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

namespace {

// Which element of a sample of the table each of the result is, where whole slices along an axis are picked.
std::vector<std::int32_t> picked(const Shape& table, std::size_t axis, const std::vector<std::int64_t>& indices) {
    const auto along = static_cast<std::ptrdiff_t>(axis);
    const std::int64_t outer = elements(Shape(table.begin(), table.begin() + along));
    const std::int64_t inner = elements(Shape(table.begin() + along + 1, table.end()));
    std::vector<std::int32_t> places;
    for (std::int64_t i = 0; i < outer; ++i) {
        for (const std::int64_t index : indices) {
            const std::int64_t at = index < 0 ? index + table[axis] : index;
            for (std::int64_t j = 0; j < inner; ++j)
                places.push_back(static_cast<std::int32_t>((i * table[axis] + at) * inner + j));
        }
    }
    return places;
}

}  // namespace

std::string gather(Import& import, const onnx::NodeProto& node) {
    if (node.input_size() < 2) import.graph.fail(node, "it has no input 1");
    const Value& table = import.graph.value(node.input(0));
    const Value& where = import.graph.value(node.input(1));
    const Shape to = import.sample(node, node.output(0));
    const auto dims = import.graph.sample(node.input(1));
    const std::int64_t count = where.kind == Value::Kind::constant ? where.dims ? elements(*where.dims) : 1
                               : dims                              ? elements(*dims)
                                                                   : 1;
    if (table.kind == Value::Kind::constant) {
        const bool rows =
            node.op_type() == "Gather" && integer(node, "axis", 0) == 0 && table.dims && table.dims->size() == 2;
        if (rows && where.kind == Value::Kind::side) {
            const std::int64_t vocabulary = (*table.dims)[0], width = (*table.dims)[1];
            const int ids = import.indices(node.input(1), count, vocabulary);
            import.put(node, Embedding{count, vocabulary, width}, {ids}, import.tensors(node, 0, 0));
            return "";
        }
        const bool trained = !table.weights.empty();
        Shape whole = table.dims.value_or(Shape{1});
        if (whole.empty()) whole = {1};
        const int layer = import.put(node, Gather{whole, to, count, trained}, {}, import.tensors(node, 0, 0));
        import.not_run(layer, "which elements it takes depends on integers that are fed in");
        return "";
    }
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    if (elements(shape) == elements(to) && count == 1) {
        import.alias(node, node.output(0), node.input(0));
        return "";
    }
    const auto indices = import.graph.numbers(node.input(1));
    const auto axis = axis_of_sample(table, shape, integer(node, "axis", 0));
    const bool known = where.kind == Value::Kind::constant && node.op_type() == "Gather" && indices && axis;
    if (where.kind == Value::Kind::constant && node.op_type() == "Gather" && count == 1) {
        Rearrangement op{"slice", {shape}, to};
        if (known) {  // the axis stays, of size 1
            Shape one = shape;
            one[*axis] = 1;
            op.output = one;
            op.numbers.assign(shape.size(), 0);
            op.numbers[*axis] = indices->front() + (indices->front() < 0 ? shape[*axis] : 0);
            op.numbers.resize(2 * shape.size(), 1);
        }
        const int layer = import.put(node, std::move(op), {from});
        if (!known) import.not_run(layer, "which of its elements it takes is not known");
        return "";
    }
    const int layer = import.put(node, Gather{shape, to, std::max<std::int64_t>(1, count)}, {from});
    if (known) import.given[layer].places = {picked(shape, *axis, *indices)};
    if (!known) import.not_run(layer, "which elements it takes depends on data, or is not known");
    return "";
}

std::string scatter(Import& import, const onnx::NodeProto& node) {
    const int updates = node.op_type() == "ScatterND" || node.op_type().starts_with("Scatter") ? 2 : 1;
    if (node.input_size() <= updates) import.graph.fail(node, fmt::format("it has no input {}", updates));
    const bool data = import.places.contains(node.input(0)), put = import.places.contains(node.input(updates));
    const Shape to = import.sample(node, node.output(0));
    if (!data || !put) {  // one of them is fixed: the other's values move
        const int i = data ? 0 : updates;
        if (!data && !put) return "it moves constants";
        const int from = import.source(node, i);
        import.not_run(import.put(node, Rearrangement{"pack", {import.builder.shape(from)}, to}, {from}),
                       "where its values go is not known");
        return "";
    }
    const int from = import.source(node, 0), values = import.source(node, updates);
    const std::int64_t count = elements(import.builder.shape(values));
    import.not_run(
        import.put(node, Gather{import.builder.shape(from), import.builder.shape(values), count, false, true},
                   {from, values}),
        "where its values go depends on data, or is not known");
    return "";
}

}  // namespace rehearse::models
