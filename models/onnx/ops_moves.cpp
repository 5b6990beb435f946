// SPDX-License-Identifier: Apache-2.0
// Operators that move values. What only names them anew (Reshape, Squeeze) makes no layer.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "models/onnx/windows.hpp"

namespace rehearse::models {

std::string reshape(Import& import, const onnx::NodeProto& node) {
    import.alias(node, node.output(0), node.input(0));
    return "";
}

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
    if (shape == to && (type == "Slice" || type == "Expand" || type == "Tile" || type == "Pad")) {
        import.alias(node, node.output(0), node.input(0));  // whole, once, by nothing
        return "";
    }
    Rearrangement op{type == "Transpose" ? "transpose"
                     : type == "Slice"   ? "slice"
                     : type == "Pad"     ? "pad"
                     : type == "Expand"  ? "expand"
                     : type == "Tile"    ? "tile"
                                         : "pack",
                     {shape},
                     to};
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
    }
    import.put(node, std::move(op), {from});
    return "";
}

std::string split(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    for (int i = 0; i < node.output_size(); ++i) {
        if (node.output(i).empty() || import.graph.readers(node.output(i)) == 0) continue;
        const Shape to = import.sample(node, node.output(i));
        if (to == shape) {
            import.alias(node, node.output(i), node.input(0));
        } else {
            import.put(node, Rearrangement{"slice", {shape}, to}, {from}, {}, i);
        }
    }
    return "";
}

std::string concat(Import& import, const onnx::NodeProto& node) {
    std::vector<int> from;
    std::vector<Shape> shapes;
    const Shape to = import.sample(node, node.output(0));
    bool layers = true;
    for (int i = 0; i < node.input_size(); ++i) {
        if (import.graph.constant(node.input(i))) {
            layers = false;
            const std::vector<std::string> tensors = import.tensors(node, i, i);
            if (tensors.empty()) continue;
            if (import.owners.contains(tensors.front()) && !import.graph.uniform(tensors.front())) continue;
            onnx::NodeProto named;
            named.set_name(tensors.front());
            const Shape dims = *import.graph.dims(tensors.front());
            from.push_back(import.builder.layer(import.name_for(named), Parameter{dims.empty() ? Shape{1} : dims}, {}));
            for (const std::string& tensor : tensors) import.owners.emplace(tensor, from.back());
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
    if (value.batch >= 0 && axis > value.batch && value.dims && to.size() < value.dims->size()) --axis;
    import.put(node, Rearrangement{"join", shapes, to, { axis }}, std::move(from));
    return "";
}

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
        import.put(node, Gather{whole, to, count, trained}, {}, import.tensors(node, 0, 0));
        return "";
    }
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    if (elements(shape) == elements(to) && count == 1) {
        import.alias(node, node.output(0), node.input(0));
        return "";
    }
    if (where.kind == Value::Kind::constant && node.op_type() == "Gather" && count == 1) {
        import.put(node, Rearrangement{"slice", {shape}, to}, {from});
        return "";
    }
    import.put(node, Gather{shape, to, std::max<std::int64_t>(1, count)}, {from});
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
        import.put(node, Rearrangement{"pack", {import.builder.shape(from)}, to}, {from});
        return "";
    }
    const int from = import.source(node, 0), values = import.source(node, updates);
    const std::int64_t count = elements(import.builder.shape(values));
    import.put(node, Gather{import.builder.shape(from), import.builder.shape(values), count, false, true},
               {from, values});
    return "";
}

}  // namespace rehearse::models
