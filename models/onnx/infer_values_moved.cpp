// SPDX-License-Identifier: Apache-2.0
// The values of small constants that are moved, joined, picked or cut, and not computed.
#include <algorithm>
#include <vector>

#include "models/onnx/infer.hpp"
#include "models/onnx/infer_walk.hpp"

namespace rehearse::models {
namespace {

using Values = std::vector<double>;

}  // namespace

Sizes steps_of_transpose(const onnx::NodeProto& node, const Sizes& strides) {
    const auto perm = list(node, "perm");
    Sizes steps(strides.size());
    for (std::size_t i = 0; i < strides.size(); ++i)
        steps[i] = strides[perm ? static_cast<std::size_t>((*perm)[i]) : strides.size() - 1 - i];
    return steps;
}

Inference::Data Inference::values_moved(const onnx::NodeProto& node, const Shape& shape) const {
    const std::string& type = node.op_type();
    const Data& x = in(node, 0).data;
    const Shape& from = *in(node, 0).dims;
    const auto count = static_cast<std::size_t>(elements(shape));
    if (type == "Reshape" || type == "Squeeze" || type == "Unsqueeze" || type == "Flatten") return x;
    if (type == "Expand") {
        Values made(count);
        walk<1>(shape, {steps_of(from, shape)}, {},
                [&](std::size_t i, const auto& at) { made[i] = (*x)[place(at[0])]; });
        return std::make_shared<const Values>(std::move(made));
    }
    if (type == "Concat") return values_joined(node, shape);
    if (type == "Gather") return values_picked(node, shape);
    if (type == "Tile") {
        Values made(count);
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t rest = i, at = 0, stride = 1;
            for (std::size_t d = shape.size(); d-- > 0;) {
                const auto size = static_cast<std::size_t>(from[d]);
                at += rest % static_cast<std::size_t>(shape[d]) % size * stride;
                rest /= static_cast<std::size_t>(shape[d]);
                stride *= size;
            }
            made[i] = (*x)[at];
        }
        return std::make_shared<const Values>(std::move(made));
    }
    if (type == "Trilu" && from.size() >= 2) {
        const auto k = given(node, 1) && !in(node, 1).data->empty() ? to_integer(in(node, 1).data->front()) : 0;
        const bool upper = integer(node, "upper", 1) != 0;
        const std::int64_t columns = from.back(), rows = from[from.size() - 2];
        Values made = *x;
        for (std::size_t i = 0; i < made.size(); ++i) {
            const auto at = static_cast<std::int64_t>(i);
            const std::int64_t column = at % columns, row = at / columns % rows;
            if (upper ? column - row < k : column - row > k) made[i] = 0;
        }
        return std::make_shared<const Values>(std::move(made));
    }
    if (type != "Slice" && type != "Transpose") return nullptr;
    // Element i of the result is element `offset + strides * indices` of the operand.
    const Sizes strides = strides_of(from);
    Sizes steps = type == "Transpose" ? steps_of_transpose(node, strides) : strides;
    std::int64_t offset = 0;
    if (type == "Slice") {
        auto starts = list(node, "starts");
        if (!starts) starts = known(node, 1);
        if (!starts) return nullptr;
        auto axes = axes_of(node, 3, from.size()).value_or(std::vector<std::int64_t>{});
        const auto asked = given(node, 4) ? known(node, 4) : std::nullopt;
        for (std::size_t i = 0; i < starts->size(); ++i) {
            const std::size_t axis = axes.empty() ? i : static_cast<std::size_t>(axes[i]);
            const std::int64_t step = asked ? (*asked)[i] : 1;
            std::int64_t begin = (*starts)[i] + ((*starts)[i] < 0 ? from[axis] : 0);
            begin =
                std::clamp<std::int64_t>(begin, 0, std::max<std::int64_t>(0, step < 0 ? from[axis] - 1 : from[axis]));
            offset += begin * strides[axis];
            steps[axis] = shape[axis] > 1 ? steps[axis] * step : 0;  // no product of a step that is never taken
        }
    }
    Values made(count);
    bool inside = true;
    walk<1>(shape, {steps}, {offset}, [&](std::size_t i, const auto& at) {
        inside = inside && at[0] >= 0 && at[0] < static_cast<std::int64_t>(x->size());
        if (inside) made[i] = (*x)[place(at[0])];
    });
    return inside ? std::make_shared<const Values>(std::move(made)) : nullptr;
}

// Whole lines behind the axis lie one after the other in each operand.
Inference::Data Inference::values_joined(const onnx::NodeProto& node, const Shape& shape) const {
    const auto axis = axis_of(node, shape.size(), 1);
    if (!axis || *axis >= shape.size()) return nullptr;
    const std::int64_t outer = elements(Shape(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(*axis)));
    Values made;
    for (std::int64_t i = 0; i < outer; ++i) {
        for (int k = 0; k < node.input_size(); ++k) {
            if (!given(node, k)) return nullptr;
            const Values& part = *in(node, k).data;
            const auto size = static_cast<std::ptrdiff_t>(part.size() / static_cast<std::size_t>(outer));
            made.insert(made.end(), part.begin() + i * size, part.begin() + (i + 1) * size);
        }
    }
    return std::make_shared<const Values>(std::move(made));
}

Inference::Data Inference::values_picked(const onnx::NodeProto& node, const Shape& shape) const {
    const Shape& from = *in(node, 0).dims;
    const auto axis = axis_of(node, from.size(), 0);
    if (!axis || *axis >= from.size() || !given(node, 1)) return nullptr;
    const auto along = static_cast<std::ptrdiff_t>(*axis);
    const std::int64_t outer = elements(Shape(from.begin(), from.begin() + along));
    const std::int64_t inner = elements(Shape(from.begin() + along + 1, from.end()));
    Values made;
    made.reserve(static_cast<std::size_t>(elements(shape)));
    for (std::int64_t i = 0; i < outer; ++i) {
        for (const double index : *in(node, 1).data) {
            const std::int64_t at = positive_modulo(to_integer(index), from[*axis]);
            if (at < 0 || at >= from[*axis]) return nullptr;
            const auto first = in(node, 0).data->begin() + (i * from[*axis] + at) * inner;
            made.insert(made.end(), first, first + inner);
        }
    }
    return std::make_shared<const Values>(std::move(made));
}

// One of the pieces that a Split makes.
Inference::Data Inference::value_of_piece(const onnx::NodeProto& node, const Shape& shape, int output) const {
    const Value& whole = in(node, 0);
    if (!whole.data || !whole.dims) return nullptr;
    const auto axis = axis_of(node, shape.size(), 0);
    if (!axis || *axis >= shape.size()) return nullptr;
    const auto along = static_cast<std::ptrdiff_t>(*axis);
    const std::vector<std::optional<Shape>> made_shapes = shapes_of_split(node);
    if (static_cast<std::size_t>(output) >= made_shapes.size()) return nullptr;
    std::int64_t first = 0;
    for (int i = 0; i < output; ++i) {
        if (!made_shapes[static_cast<std::size_t>(i)]) return nullptr;
        first += (*made_shapes[static_cast<std::size_t>(i)])[*axis];
    }
    const std::int64_t outer = elements(Shape(shape.begin(), shape.begin() + along));
    const std::int64_t inner = elements(Shape(shape.begin() + along + 1, shape.end()));
    Values made;
    for (std::int64_t i = 0; i < outer; ++i) {
        const auto begin = whole.data->begin() + (i * (*whole.dims)[*axis] + first) * inner;
        made.insert(made.end(), begin, begin + shape[*axis] * inner);
    }
    return std::make_shared<const Values>(std::move(made));
}

}  // namespace rehearse::models
