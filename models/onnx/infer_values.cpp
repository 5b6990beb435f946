// SPDX-License-Identifier: Apache-2.0
// The values of small constants: the arithmetic on shapes that exporters leave in the graph, masks, scales.
#include <algorithm>
#include <functional>
#include <limits>

#include "models/onnx/infer.hpp"
#include "models/onnx/infer_walk.hpp"

namespace rehearse::models {
namespace {

using Values = std::vector<double>;

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
    if (elements(shape) == 0) return std::make_shared<const Values>();  // other sizes may be as large as they like
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

}  // namespace rehearse::models
