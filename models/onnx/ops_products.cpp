// SPDX-License-Identifier: Apache-2.0
// Products: of rows with weights a dense layer, of two activations, or with more than a matrix of weights, a stack.
#include <algorithm>

#include <fmt/format.h>

#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

// Rows of an activation times a matrix of weights.
std::string dense(Import& import, const onnx::NodeProto& node, const Shape& weights, bool bias, bool turned) {
    const Shape sample = import.sample(node, node.input(0));
    if (weights.size() != 2 || weights[0] < 1 || weights[1] < 1)
        import.graph.fail(node, fmt::format("weights of {} are impossible", to_string(weights)));
    const std::int64_t rows = elements(sample) / weights[0];
    if (elements(sample) != rows * weights[0])
        import.graph.fail(node, fmt::format("weights for {} features cannot read {}", weights[0], to_string(sample)));
    const Shape shape = rows == 1 ? Shape{weights[0]} : Shape{rows, weights[0]};
    const int from = import.source(node, 0, shape);
    const int layer = import.put(node, MatMul{.m = rows, .n = weights[1], .k = weights[0], .bias = bias}, {from},
                                 import.tensors(node, 1, bias ? 2 : 1));
    import.starts[layer] = {{ node.input(1), turned }};
    if (bias) import.starts[layer].push_back({node.input(2)});
    if (number(node, "alpha", 1) != 1 || (bias && number(node, "beta", 1) != 1))
        import.not_run(layer, "it multiplies its product or its bias by a number of its own");
    return "";
}

Shape matrix(Shape shape, bool left) {
    if (shape.size() == 1) shape.insert(left ? shape.begin() : shape.end(), 1);
    return shape;
}

// {batch of the samples out, the rest as they are}: at least a matrix.
Shape operand(Import& import, const onnx::NodeProto& node, int i) {
    const Value& value = import.graph.value(node.input(i));
    if (value.kind == Value::Kind::constant) return matrix(value.dims.value_or(Shape{1}), i == 0);
    const bool rows_are_samples = value.dims && value.batch == static_cast<int>(value.dims->size()) - 2;
    Shape sample = import.sample(node, node.input(i));
    if (rows_are_samples && sample.size() < value.dims->size()) sample.insert(sample.end() - 1, 1);
    return matrix(std::move(sample), i == 0);
}

// An operand that is the same for each sample, and that no training changes.
bool is_fixed(const Import& import, const onnx::NodeProto& node, int i) {
    const Value& value = import.graph.value(node.input(i));
    // Some exporters write weights as constants of the program, and reshape them.
    const onnx::NodeProto* made = value.maker;
    for (int steps = 0;
         steps < 8 && made != nullptr && (made->op_type() == "Reshape" || made->op_type() == "Transpose"); ++steps)
        made = made->input_size() > 0 ? import.graph.value(made->input(0)).maker : nullptr;
    const bool program = made != nullptr && (made->op_type() == "Constant" || made->op_type() == "ConstantOfShape");
    return value.kind == Value::Kind::constant && value.weights.empty() && floating(value.element) && !program;
}

int fixed(Import& import, const onnx::NodeProto& node, int i, const Shape& shape) {
    const auto& data = import.graph.value(node.input(i)).data;
    return import.fixed_layer(node, i == 0 ? "left" : "right", shape,
                              data ? std::vector<float>(data->begin(), data->end()) : std::vector<float>{});
}

std::string stack(Import& import, const onnx::NodeProto& node, BatchedMatMul op) {
    std::vector<int> layers;
    std::vector<std::string> tensors, starts;
    for (const int i : {0, 1}) {
        if (is_fixed(import, node, i)) {
            layers.push_back(fixed(import, node, i, i == 0 ? op.a : op.b));
        } else if (import.graph.constant(node.input(i))) {
            op.trained = i + 1;
            tensors = import.tensors(node, i, i);
            starts.push_back(node.input(i));
        } else {
            layers.push_back(import.source(node, i, i == 0 ? op.a : op.b));
        }
    }
    const int layer = import.put(node, std::move(op), std::move(layers), std::move(tensors));
    for (const std::string& start : starts) import.starts[layer].assign(1, {start});
    if (node.op_type() == "Einsum") import.not_run(layer, "the order of its axes is only priced");
    return "";
}

}  // namespace

std::string gemm(Import& import, const onnx::NodeProto& node) {
    const bool a = integer(node, "transA", 0) != 0, b = integer(node, "transB", 0) != 0;
    if (node.input_size() < 2) import.graph.fail(node, "it has no input 1");
    const auto rows = import.graph.dims(node.input(0));
    if (rows && rows->size() != 2) import.graph.fail(node, fmt::format("it reads {}, not a matrix", to_string(*rows)));
    const bool third = node.input_size() > 2 && !node.input(2).empty();
    if (!a && import.graph.constant(node.input(1)) && !is_fixed(import, node, 1) &&
        !import.graph.constant(node.input(0))) {
        Shape weights = import.weights(node, 1, 2);
        if (b) std::swap(weights[0], weights[1]);
        const auto bias = third ? import.graph.dims(node.input(2)) : std::nullopt;
        const bool fits = bias && elements(*bias) == weights[1] && import.graph.constant(node.input(2));
        if (!third || fits) return dense(import, node, weights, third, b);
    }
    BatchedMatMul op{operand(import, node, 0), operand(import, node, 1)};
    if (a) std::swap(op.a[0], op.a[1]);
    if (b) std::swap(op.b[0], op.b[1]);
    if (third) ++import.notes["a Gemm of two activations leaves out its third operand"];
    std::vector<int> layers;
    const bool layers_of_both = !import.graph.constant(node.input(0)) && !import.graph.constant(node.input(1));
    for (const int i : {0, 1}) {
        if (import.graph.constant(node.input(i)) && !is_fixed(import, node, i)) {
            op.trained = i + 1;
        } else {
            const Shape& shape = i == 0 ? op.a : op.b;
            const bool turned = i == 0 ? a : b;
            const Shape lies = turned ? Shape{shape[1], shape[0]} : shape;
            layers.push_back(is_fixed(import, node, i) ? fixed(import, node, i, lies) : import.source(node, i, lies));
            if (turned) {
                onnx::NodeProto named;
                named.set_name(import.name_for(node) + ".transpose");
                layers.back() = import.builder.layer(import.name_for(named),
                                                     Rearrangement{"transpose", {{shape[1], shape[0]}}, shape, {1, 0}},
                                                     {layers.back()});
            }
        }
    }
    const int layer = import.put(node, std::move(op), std::move(layers), import.tensors(node, 0, 1));
    const bool plain = !third && number(node, "alpha", 1) == 1 && layers_of_both;
    if (!plain) import.not_run(layer, "it is a Gemm with more than a product of two activations");
    return "";
}

std::string product(Import& import, const onnx::NodeProto& node) {
    if (node.input_size() < 2) import.graph.fail(node, "it has no input 1");
    const auto right = import.graph.dims(node.input(1));
    if (import.graph.constant(node.input(1)) && right && right->size() <= 2 && !is_fixed(import, node, 1))
        return dense(import, node, matrix(*right, false), false, false);
    return stack(import, node, {operand(import, node, 0), operand(import, node, 1)});
}

}  // namespace rehearse::models
