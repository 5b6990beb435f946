// SPDX-License-Identifier: Apache-2.0
// The values of small constants: the arithmetic on shapes that exporters leave in the graph, masks, scales.
#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "models/onnx/infer.hpp"

namespace rehearse::models {
namespace {

using Values = std::vector<double>;

std::size_t place(std::int64_t at) { return static_cast<std::size_t>(at); }

// How far apart the elements of an operand of shape `from` are, by the dimensions of `to`, to which it broadcasts.
Sizes steps_of(const Shape& from, const Shape& to) {
    Sizes steps(to.size(), 0);
    std::int64_t stride = 1;
    for (std::size_t i = from.size(); i-- > 0;) {
        steps[i + to.size() - from.size()] = from[i] == 1 ? 0 : stride;
        stride *= from[i];
    }
    return steps;
}

// Calls `use(i, places)` for each element of `to` in order: where it is in each operand, whose first one is at `at`.
template <std::size_t operands, typename Use>
void walk(const Shape& to, const std::array<Sizes, operands>& steps, std::array<std::int64_t, operands> at,
          const Use& use) {
    Sizes index(to.size(), 0);
    const auto count = static_cast<std::size_t>(elements(to));
    for (std::size_t i = 0; i < count; ++i) {
        use(i, at);
        for (std::size_t d = to.size(); d-- > 0;) {
            const bool over = ++index[d] == to[d];
            for (std::size_t k = 0; k < operands; ++k) at[k] += over ? steps[k][d] * (1 - to[d]) : steps[k][d];
            if (!over) break;
            index[d] = 0;
        }
    }
}

std::function<double(double, double)> function_of_two(const std::string& type, bool whole) {
    if (type == "Add" || type == "Sum") return [](double a, double b) { return a + b; };
    if (type == "Sub") return [](double a, double b) { return a - b; };
    if (type == "Mul") return [](double a, double b) { return a * b; };
    if (type == "Div" && whole) return [](double a, double b) { return b == 0 ? 0 : std::trunc(a / b); };
    if (type == "Div") return [](double a, double b) { return a / b; };
    if (type == "Mod") return [](double a, double b) { return b == 0 ? 0 : a - b * std::floor(a / b); };
    if (type == "Pow") return [](double a, double b) { return std::pow(a, b); };
    if (type == "Min") return [](double a, double b) { return std::min(a, b); };
    if (type == "Max") return [](double a, double b) { return std::max(a, b); };
    if (type == "Equal") return [](double a, double b) { return static_cast<double>(a == b); };
    if (type == "Greater") return [](double a, double b) { return static_cast<double>(a > b); };
    if (type == "GreaterOrEqual") return [](double a, double b) { return static_cast<double>(a >= b); };
    if (type == "Less") return [](double a, double b) { return static_cast<double>(a < b); };
    if (type == "LessOrEqual") return [](double a, double b) { return static_cast<double>(a <= b); };
    if (type == "And") return [](double a, double b) { return static_cast<double>(a != 0 && b != 0); };
    if (type == "Or") return [](double a, double b) { return static_cast<double>(a != 0 || b != 0); };
    return nullptr;
}

std::function<double(double)> function_of_one(const std::string& type) {
    if (type == "Neg") return [](double a) { return -a; };
    if (type == "Abs") return [](double a) { return std::abs(a); };
    if (type == "Floor") return [](double a) { return std::floor(a); };
    if (type == "Ceil") return [](double a) { return std::ceil(a); };
    if (type == "Sqrt") return [](double a) { return std::sqrt(a); };
    if (type == "Not") return [](double a) { return static_cast<double>(a == 0); };
    if (type == "Exp") return [](double a) { return std::exp(a); };
    if (type == "Reciprocal") return [](double a) { return 1 / a; };
    if (type == "Identity") return [](double a) { return a; };
    if (type == "Sin") return [](double a) { return std::sin(a); };
    if (type == "Cos") return [](double a) { return std::cos(a); };
    if (type == "Log") return [](double a) { return std::log(a); };
    if (type == "Tanh") return [](double a) { return std::tanh(a); };
    if (type == "Sigmoid") return [](double a) { return 1 / (1 + std::exp(-a)); };
    if (type == "Relu") return [](double a) { return std::max(a, 0.0); };
    if (type == "Round") return [](double a) { return std::nearbyint(a); };
    if (type == "Sign") return [](double a) { return static_cast<double>((a > 0) - (a < 0)); };
    return nullptr;
}

// Along the axis; nothing before operator set 13, where all behind the axis was one vector.
std::shared_ptr<const Values> softmax_of(const Values& x, const Shape& shape, std::size_t axis) {
    const auto inner =
        static_cast<std::size_t>(elements(Shape(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end())));
    const auto size = static_cast<std::size_t>(shape[axis]);
    Values made(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (i / inner % size != 0) continue;
        double most = x[i], sum = 0;
        for (std::size_t k = 0; k < size; ++k) most = std::max(most, x[i + k * inner]);
        for (std::size_t k = 0; k < size; ++k) sum += made[i + k * inner] = std::exp(x[i + k * inner] - most);
        for (std::size_t k = 0; k < size; ++k) made[i + k * inner] /= sum;
    }
    return std::make_shared<const Values>(std::move(made));
}

}  // namespace

Inference::Data Inference::values(const onnx::NodeProto& node, const Shape& shape, int output) const {
    const std::string& type = node.op_type();
    if (!node.domain().empty() && node.domain() != "ai.onnx") return nullptr;
    if (type == "Split") return value_of_piece(node, shape, output);
    if (output > 0) return nullptr;
    if (type == "Constant") {
        if (const auto* value = tensor(node, "value"))
            return data_of(*value, graph_.keeps_values() ? graph_.path_ : std::string{});
        Values made;
        for (const auto& attribute : node.attribute()) {
            if (attribute.name() == "value_ints") made.assign(attribute.ints().begin(), attribute.ints().end());
            if (attribute.name() == "value_floats") made.assign(attribute.floats().begin(), attribute.floats().end());
            if (attribute.name() == "value_int") made = {static_cast<double>(attribute.i())};
            if (attribute.name() == "value_float") made = {attribute.f()};
        }
        return std::make_shared<const Values>(std::move(made));
    }
    if (type == "Shape") {
        if (!in(node, 0).dims || shape.size() != 1) return nullptr;
        const Shape& dims = *in(node, 0).dims;
        const auto rank = static_cast<std::int64_t>(dims.size());
        std::int64_t begin = integer(node, "start", 0);
        begin = std::clamp<std::int64_t>(begin < 0 ? begin + rank : begin, 0, rank);
        if (shape.front() > rank - begin) return nullptr;
        Values made;
        for (std::int64_t i = begin; i < begin + shape.front(); ++i)
            made.push_back(static_cast<double>(dims[static_cast<std::size_t>(i)]));
        return std::make_shared<const Values>(std::move(made));
    }
    if (type == "Size")
        return std::make_shared<const Values>(
            Values{static_cast<double>(elements(in(node, 0).dims.value_or(Shape{0})))});
    if (type == "ConstantOfShape") {
        const auto* value = tensor(node, "value");
        const Data one = value == nullptr ? nullptr : data_of(*value);
        return std::make_shared<const Values>(static_cast<std::size_t>(elements(shape)),
                                              one && !one->empty() ? one->front() : 0);
    }
    if (type == "Range") {
        Values made(static_cast<std::size_t>(shape.front()));
        for (std::size_t i = 0; i < made.size(); ++i)
            made[i] = in(node, 0).data->front() + static_cast<double>(i) * in(node, 2).data->front();
        return std::make_shared<const Values>(std::move(made));
    }
    for (int i = 0; i < node.input_size(); ++i)
        if (!node.input(i).empty() && (!in(node, i).data || !in(node, i).dims)) return nullptr;
    if (!given(node, 0)) return nullptr;
    if (Data made = values_by_element(node, shape)) return made;
    if (Data made = values_moved(node, shape)) return made;
    return values_of_tables(node, shape);
}

Inference::Data Inference::values_by_element(const onnx::NodeProto& node, const Shape& shape) const {
    const std::string& type = node.op_type();
    const auto count = static_cast<std::size_t>(elements(shape));
    const Values& x = *in(node, 0).data;
    if (const auto one = function_of_one(type)) {
        if (x.size() != count) return nullptr;
        Values made(count);
        std::ranges::transform(x, made.begin(), one);
        return std::make_shared<const Values>(std::move(made));
    }
    if (type == "Cast") {
        if (x.size() != count) return nullptr;
        const auto to = integer(node, "to", onnx::TensorProto::FLOAT);
        const bool truth = to == onnx::TensorProto::BOOL, whole = !floating(static_cast<int>(to));
        Values made(count);
        std::ranges::transform(x, made.begin(), [&](double a) {
            return truth ? static_cast<double>(a != 0) : whole ? std::trunc(a) : a;
        });
        return std::make_shared<const Values>(std::move(made));
    }
    if (type == "Clip" && x.size() == count) {
        const auto bound = [&](int i, const char* name, double otherwise) {
            return given(node, i) && !in(node, i).data->empty() ? in(node, i).data->front()
                                                                : number(node, name, otherwise);
        };
        const double least = bound(1, "min", -std::numeric_limits<double>::infinity());
        const double most = bound(2, "max", std::numeric_limits<double>::infinity());
        Values made(count);
        std::ranges::transform(x, made.begin(), [&](double a) { return std::min(std::max(a, least), most); });
        return std::make_shared<const Values>(std::move(made));
    }
    if (type == "Softmax" && graph_.opset() >= 13) {
        const auto axis = axis_of(node, shape.size(), -1);
        return axis && *axis < shape.size() && x.size() == count ? softmax_of(x, shape, *axis) : nullptr;
    }
    const auto steps = [&](int i) { return steps_of(*in(node, i).dims, shape); };
    if (type == "Where" && node.input_size() == 3 && given(node, 1) && given(node, 2)) {
        const Values &yes = *in(node, 1).data, &no = *in(node, 2).data;
        Values made(count);
        walk<3>(shape, {steps(0), steps(1), steps(2)}, {}, [&](std::size_t i, const auto& at) {
            made[i] = x[place(at[0])] != 0 ? yes[place(at[1])] : no[place(at[2])];
        });
        return std::make_shared<const Values>(std::move(made));
    }
    const auto both = node.input_size() == 2 ? function_of_two(type, !floating(in(node, 0).element)) : nullptr;
    if (both == nullptr || !given(node, 1)) return nullptr;
    const Values& y = *in(node, 1).data;
    Values made(count);
    walk<2>(shape, {steps(0), steps(1)}, {},
            [&](std::size_t i, const auto& at) { made[i] = both(x[place(at[0])], y[place(at[1])]); });
    return std::make_shared<const Values>(std::move(made));
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
    std::vector<std::int64_t> strides(from.size(), 1), steps(shape.size());
    for (std::size_t i = from.size(); i-- > 1;) strides[i - 1] = strides[i] * from[i];
    std::int64_t offset = 0;
    if (type == "Transpose") {
        const auto perm = list(node, "perm");
        for (std::size_t i = 0; i < shape.size(); ++i)
            steps[i] = strides[perm ? static_cast<std::size_t>((*perm)[i]) : shape.size() - 1 - i];
    } else {
        steps = strides;
        auto starts = list(node, "starts");
        if (!starts) starts = known(node, 1);
        if (!starts) return nullptr;
        auto axes = axes_of(node, 3, from.size()).value_or(std::vector<std::int64_t>{});
        const auto asked = given(node, 4) ? known(node, 4) : std::nullopt;
        for (std::size_t i = 0; i < starts->size(); ++i) {
            const std::size_t axis = axes.empty() ? i : static_cast<std::size_t>(axes[i]);
            const std::int64_t step = asked ? (*asked)[i] : 1;
            std::int64_t begin = (*starts)[i] + ((*starts)[i] < 0 ? from[axis] : 0);
            begin = std::clamp<std::int64_t>(begin, 0, step < 0 ? from[axis] - 1 : from[axis]);
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
