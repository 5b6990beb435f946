// SPDX-License-Identifier: Apache-2.0
// Products: of rows with weights a dense layer, of two activations, or with more than a matrix of weights, a stack.
#include <algorithm>

#include <fmt/format.h>

#include "models/onnx/windows.hpp"

namespace rehearse::models {

bool in_a_layer(const Import& import, const onnx::NodeProto& node, int i) {
    return !import.graph.constant(node.input(i)) || import.places.contains(node.input(i));
}

bool picks_again(const Import& import, const std::string& name) {
    const Value& value = import.graph.value(name);
    return value.kind == Value::Kind::constant && value.weights.size() == 1 && value.dims &&
           elements(*value.dims) > elements(import.graph.dims(value.weights.front()).value_or(Shape{}));
}

bool is_fixed(const Import& import, const onnx::NodeProto& node, int i) {
    const Value& value = import.graph.value(node.input(i));
    // Some exporters write weights as constants of the program, and reshape them.
    const onnx::NodeProto* made = value.maker;
    for (int steps = 0;
         steps < 8 && made != nullptr && (made->op_type() == "Reshape" || made->op_type() == "Transpose"); ++steps)
        made = made->input_size() > 0 ? import.graph.value(made->input(0)).maker : nullptr;
    const bool program = made != nullptr && (made->op_type() == "ConstantOfShape" ||
                                             (made->op_type() == "Constant" && !import.graph.stores_weights()));
    return value.kind == Value::Kind::constant && value.weights.empty() && floating(value.element) && !program;
}

namespace {

void add_third(Import& import, const onnx::NodeProto& node);

// Whether a dense layer's weights are an earlier layer's, and its bias is not.
bool own_bias_of_shared(const Import& import, const onnx::NodeProto& node) {
    const std::vector<std::string> weights = import.tensors(node, 1, 1), bias = import.tensors(node, 2, 2);
    if (weights.size() != 1 || bias.size() != 1 || import.graph.uniform(weights.front())) return false;
    const auto owner = import.owners.find(weights.front()), other = import.owners.find(bias.front());
    return owner != import.owners.end() && (other == import.owners.end() || other->second != owner->second);
}

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
    const bool apart = bias && own_bias_of_shared(import, node);
    if (apart) bias = false;
    const int layer = import.put(node, MatMul{.m = rows, .n = weights[1], .k = weights[0], .bias = bias}, {from},
                                 import.tensors(node, 1, bias ? 2 : 1));
    import.starts[layer] = {{ node.input(1), turned }};
    if (bias) import.starts[layer].push_back({node.input(2)});
    if (number(node, "alpha", 1) != 1 || (bias && number(node, "beta", 1) != 1))
        import.not_run(layer, "it multiplies its product or its bias by a number of its own");
    if (apart) add_third(import, node);
    if (turned) add_lengths(import, node, 0);  // weights that lie as PyTorch's layer has them keep their name
    return "";
}

Shape matrix(Shape shape, bool left) {
    if (shape.size() == 1) shape.insert(left ? shape.begin() : shape.end(), 1);
    return shape;
}

// {batch of the samples out, the rest as they are}: at least a matrix.
Shape operand(Import& import, const onnx::NodeProto& node, int i) {
    const Value& value = import.graph.value(node.input(i));
    if (value.kind == Value::Kind::constant && import.places.contains(node.input(i)))
        return matrix(import.sample(node, node.input(i)), i == 0);
    if (value.kind == Value::Kind::constant) return matrix(value.dims.value_or(Shape{1}), i == 0);
    const bool rows_are_samples = value.dims && value.batch == static_cast<int>(value.dims->size()) - 2;
    Shape sample = import.sample(node, node.input(i));
    if (rows_are_samples && sample.size() < value.dims->size()) sample.insert(sample.end() - 1, 1);
    return matrix(std::move(sample), i == 0);
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
        if (in_a_layer(import, node, i)) {
            layers.push_back(import.source(node, i, i == 0 ? op.a : op.b));
        } else if (is_fixed(import, node, i)) {
            layers.push_back(fixed(import, node, i, i == 0 ? op.a : op.b));
        } else {
            op.trained = i + 1;
            tensors = import.tensors(node, i, i);
            starts.push_back(node.input(i));
        }
    }
    const int layer = import.put(node, std::move(op), std::move(layers), std::move(tensors));
    for (const std::string& start : starts) import.starts[layer].assign(1, {start});
    if (node.op_type() == "Einsum") import.not_run(layer, "the order of its axes is only priced");
    return "";
}

// What a Gemm adds to its product.
void add_third(Import& import, const onnx::NodeProto& node) {
    const Shape shape = import.sample(node, node.output(0));
    Elementwise sum{"add", shape, {shape}};
    std::vector<int> layers{import.layer_of(node, node.output(0), shape)};
    const bool made = in_a_layer(import, node, 2) || import.is_computed(node.input(2));
    const std::vector<std::string> tensors = made ? std::vector<std::string>{} : import.tensors(node, 2, 2);
    if (tensors.size() == 1) {
        sum.weights = {import.graph.dims(node.input(2)).value_or(Shape{1})};
        import.starts[import.put(node, sum, std::move(layers), tensors)] = {{ node.input(2) }};
        return;
    }
    layers.push_back(import.source(node, 2));
    sum.inputs.push_back(import.builder.shape(layers.back()));
    import.put(node, sum, std::move(layers));
}

// Operands that are computed of weights, and of two constants the one that is not trained here.
void bring_operands(Import& import, const onnx::NodeProto& node) {
    for (const int i : {0, 1})
        if (picks_again(import, node.input(i)) || import.is_computed(node.input(i))) import.bring(node, node.input(i));
    if (in_a_layer(import, node, 0) || in_a_layer(import, node, 1)) return;
    const bool left = is_fixed(import, node, 0) || !is_fixed(import, node, 1);
    import.bring(node, node.input(left ? 0 : 1));
}

}  // namespace

std::string gemm(Import& import, const onnx::NodeProto& node) {
    const bool a = integer(node, "transA", 0) != 0, b = integer(node, "transB", 0) != 0;
    if (node.input_size() < 2) import.graph.fail(node, "it has no input 1");
    bring_operands(import, node);
    const auto rows = import.graph.dims(node.input(0));
    if (rows && rows->size() != 2) import.graph.fail(node, fmt::format("it reads {}, not a matrix", to_string(*rows)));
    const bool third = node.input_size() > 2 && !node.input(2).empty();
    if (!a && !in_a_layer(import, node, 1) && !is_fixed(import, node, 1) && in_a_layer(import, node, 0)) {
        Shape weights = import.weights(node, 1, 2);
        if (b) std::swap(weights[0], weights[1]);
        const auto bias = third ? import.graph.dims(node.input(2)) : std::nullopt;
        const bool fits = bias && elements(*bias) == weights[1] && import.graph.constant(node.input(2));
        if (!third || fits) return dense(import, node, weights, third, b);
    }
    BatchedMatMul op{operand(import, node, 0), operand(import, node, 1)};
    if (a) std::swap(op.a[0], op.a[1]);
    if (b) std::swap(op.b[0], op.b[1]);
    std::vector<int> layers;
    for (const int i : {0, 1}) {
        const bool made = in_a_layer(import, node, i);
        if (!made && !is_fixed(import, node, i)) {
            op.trained = i + 1;
            continue;
        }
        const Shape& shape = i == 0 ? op.a : op.b;
        const bool turned = i == 0 ? a : b;
        const Shape lies = turned ? Shape{shape[1], shape[0]} : shape;
        layers.push_back(made ? import.source(node, i, lies) : fixed(import, node, i, lies));
        if (!turned) continue;
        onnx::NodeProto named;
        named.set_name(import.name_for(node) + ".transpose");
        layers.back() = import.builder.layer(import.name_for(named), Rearrangement{"transpose", {lies}, shape, {1, 0}},
                                             {layers.back()});
    }
    const bool trained = op.trained > 0;
    const int layer = import.put(node, std::move(op), std::move(layers),
                                 trained ? import.tensors(node, 0, 1) : std::vector<std::string>{});
    if (trained || number(node, "alpha", 1) != 1 || (third && number(node, "beta", 1) != 1))
        import.not_run(layer, "it is a Gemm with more than a product and a sum");
    if (third) add_third(import, node);
    return "";
}

std::string product(Import& import, const onnx::NodeProto& node) {
    if (node.input_size() < 2) import.graph.fail(node, "it has no input 1");
    bring_operands(import, node);
    const auto right = import.graph.dims(node.input(1));
    if (!in_a_layer(import, node, 1) && right && right->size() <= 2 && !is_fixed(import, node, 1))
        return dense(import, node, matrix(*right, false), false, false);
    return stack(import, node, {operand(import, node, 0), operand(import, node, 1)});
}

}  // namespace rehearse::models
