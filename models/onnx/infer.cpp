// SPDX-License-Identifier: Apache-2.0
#include "models/onnx/infer.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

namespace rehearse::models {
namespace {

constexpr double most_kept_twice = 1 << 18;  // elements of weights that are moved, whose values are kept once more

constexpr std::array integers{"Shape", "Size",  "ArgMax",   "ArgMin",     "Equal",     "Greater",     "GreaterOrEqual",
                              "Less",  "Not",   "And",      "Or",         "Xor",       "LessOrEqual", "NonZero",
                              "IsNaN", "IsInf", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor",  "BitwiseNot"};

int element_of(const onnx::NodeProto& node, int output, const Value& first) {
    const std::string& type = node.op_type();
    if (type == "Cast") return static_cast<int>(integer(node, "to", onnx::TensorProto::FLOAT));
    if (type == "Shape" || type == "Size" || type.starts_with("Arg") || type == "NonZero")
        return onnx::TensorProto::INT64;
    if (makes_integers(node)) return onnx::TensorProto::BOOL;
    if (type == "Constant" || type == "ConstantOfShape") {
        if (const auto* value = tensor(node, "value")) return value->data_type();
        if (has(node, "value_int") || has(node, "value_ints")) return onnx::TensorProto::INT64;
        return onnx::TensorProto::FLOAT;
    }
    if (type.ends_with("Window") || type == "MelWeightMatrix")
        return static_cast<int>(integer(node, "output_datatype", onnx::TensorProto::FLOAT));
    if (output > 0 && (type == "TopK" || type == "MaxPool")) return onnx::TensorProto::INT64;
    if (output > 0 && type == "Dropout") return onnx::TensorProto::BOOL;
    if (type == "DynamicQuantizeLinear" || type == "QuantizeLinear") return onnx::TensorProto::UINT8;
    if (type == "DequantizeLinear" || type == "RandomNormal" || type == "RandomUniform")
        return onnx::TensorProto::FLOAT;
    return first.element;
}

}  // namespace

bool multiplies(const onnx::NodeProto& node) {
    return is_one_of(node.op_type(), {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"});
}

bool makes_integers(const onnx::NodeProto& node) {
    return std::ranges::find(integers, node.op_type()) != integers.end();
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
    Shape longer = a.size() < b.size() ? b : a;
    const Shape& shorter = a.size() < b.size() ? a : b;
    const std::size_t offset = longer.size() - shorter.size();
    for (std::size_t i = 0; i < shorter.size(); ++i) {
        std::int64_t& size = longer[offset + i];
        if (size != shorter[i] && size != 1 && shorter[i] != 1) return std::nullopt;
        if (size == 1) size = shorter[i];
    }
    return longer;
}

const Value& Inference::in(const onnx::NodeProto& node, int i) const {
    static const Value none;
    return i < node.input_size() ? graph_.value(node.input(i)) : none;
}

std::optional<std::vector<std::int64_t>> Inference::known(const onnx::NodeProto& node, int i) const {
    if (!given(node, i)) return std::nullopt;
    auto values = graph_.numbers(node.input(i));
    if (!values) why_ = "the values of '" + node.input(i) + "' depend on data";
    return values;
}

std::optional<std::size_t> Inference::axis_of(const onnx::NodeProto& node, std::size_t rank,
                                              std::int64_t otherwise) const {
    std::int64_t axis = integer(node, "axis", otherwise);
    if (axis < 0) axis += static_cast<std::int64_t>(rank);
    if (axis < 0 || axis > static_cast<std::int64_t>(rank)) return std::nullopt;
    return static_cast<std::size_t>(axis);
}

// From the attribute, or from an input in later operator sets; all from the front.
std::optional<std::vector<std::int64_t>> Inference::axes_of(const onnx::NodeProto& node, int input,
                                                            std::size_t rank) const {
    auto axes = list(node, "axes");
    if (!axes && given(node, input)) {
        axes = known(node, input);
        if (!axes) return std::nullopt;
    }
    if (!axes) return std::vector<std::int64_t>{};
    for (std::int64_t& axis : *axes) {
        if (axis < 0) axis += static_cast<std::int64_t>(rank);
        if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return std::nullopt;
    }
    return axes;
}

void Inference::infer(const onnx::NodeProto& node) {
    why_.clear();
    bool constant = true, side = false, computed = false, multiplied = multiplies(node);
    std::vector<std::string> weights;
    for (const std::string& name : node.input()) {
        if (name.empty()) continue;
        const Value& value = graph_.value(name);
        constant = constant && value.kind == Value::Kind::constant;
        side = side || value.kind == Value::Kind::side;
        computed = computed || value.computed;
        multiplied = multiplied || value.multiplied;
        for (const std::string& weight : value.weights)
            if (std::ranges::find(weights, weight) == weights.end()) weights.push_back(weight);
    }
    const bool any = std::ranges::any_of(node.input(), [&](const auto& name) { return graph_.activation(name); });
    const bool unknown = std::ranges::any_of(node.input(), [&](const auto& name) {
        return !name.empty() && graph_.value(name).kind == Value::Kind::unknown;
    });
    const bool of_shape = node.op_type() == "Shape" || node.op_type() == "Size";
    std::vector<std::optional<Shape>> made = unknown ? std::vector<std::optional<Shape>>{} : shapes(node);
    for (int i = 0; i < node.output_size(); ++i) {
        const std::string& name = node.output(i);
        if (name.empty()) continue;
        Value value{.element = element_of(node, i, in(node, node.op_type() == "OneHot" ? 2 : 0)), .maker = &node};
        // Ids that pick rows of weights make an activation; so do numbers of theirs that meet weights.
        const bool meets = side && !weights.empty();
        value.kind = of_shape                  ? Value::Kind::constant
                     : any || meets || unknown ? Value::Kind::activation
                     : side                    ? Value::Kind::side
                                               : Value::Kind::constant;
        if (static_cast<std::size_t>(i) < made.size()) value.dims = made[static_cast<std::size_t>(i)];
        const bool inferred = value.dims.has_value();
        if (!inferred) {
            const auto declared = graph_.declared_.find(name);
            if (declared != graph_.declared_.end()) {
                value.dims = declared->second.dims;
                if (value.element == 0) value.element = declared->second.element;
            }
        }
        double product = 1;  // a size of 0 counts as 1: the others are multiplied, too
        for (const std::int64_t dim : value.dims.value_or(Shape{}))
            product *= static_cast<double>(std::max<std::int64_t>(dim, 1));
        if (product / static_cast<double>(graph_.batch_) > largest_tensor) {
            value.dims.reset();
            why_ = "it makes a tensor that is impossibly large";
        }
        if (value.kind == Value::Kind::constant) {
            if (floating(value.element) && !of_shape && !makes_integers(node)) value.weights = weights;
            value.computed = !value.weights.empty() && (!moves_alone(node) || computed);
            value.multiplied = !value.weights.empty() && multiplied;
            const int axis = value.weights.empty() || !value.dims ? -1 : samples_of_constant(node, *value.dims);
            if (axis >= 0) {  // from here on as if the samples had made it
                value = {.kind = Value::Kind::activation,
                         .element = value.element,
                         .dims = value.dims,
                         .batch = axis,
                         .maker = &node};
                graph_.values_[name] = std::move(value);
                continue;
            }
            const bool follows = graph_.keeps_values() && inferred && value.dims && value.weights.size() == 1;
            const bool once = follows && product > most_kept_twice && moves_alone(node);
            if (once) follow(node, i, value);
            if (!value.moved && inferred && value.dims && product <= most_kept(value))
                value.data = values(node, *value.dims, i);
            if (value.data && value.data->size() != static_cast<std::size_t>(elements(*value.dims)))
                value.data = nullptr;
            if (follows && !once) follow(node, i, value);
            // An Identity is a tie, of tables always, unless it says that there is a copy.
            if (node.op_type() == "Identity" && !graph_.for_training_ && !value.weights.empty() &&
                graph_.given_.contains(node.input(0)) && !graph_.is_table(node.input(0)) && graph_.is_copy(node)) {
                value.weights = {name};
                value.moved = true;
            }
        } else if (value.dims) {
            value.batch = batch_of(node, i, *value.dims, value.lead);
        }
        graph_.values_[name] = std::move(value);
    }
    if (!why_.empty()) graph_.why_[&node] = why_;
}

// Where what is made of constants has the samples: weights that are repeated for each, products of a first state that
// is as large as the batch; -1: nowhere.
int Inference::samples_of_constant(const onnx::NodeProto& node, const Shape& shape) const {
    if (graph_.open_batch_) {
        const auto holds = [&](std::int64_t dim) { return dim > 0 && dim % graph_.batch_ == 0; };
        const auto found = std::ranges::find_if(shape, holds);
        return found == shape.end() ? -1 : static_cast<int>(found - shape.begin());
    }
    // Of fixed sizes the first dimension alone is taken for the samples, where it was not there before; the second one
    // of weights that are repeated beside sequences that have their samples there.
    if (graph_.batch_ > 1 && repeats_beside_sequences(node, shape)) return 1;
    if (graph_.batch_ < 2 || shape.size() < 2 || shape.front() != graph_.batch_) return -1;
    const Value& from = in(node, 0);
    const Shape dims = from.dims.value_or(Shape{});
    if (is_one_of(node.op_type(), {"Expand", "Tile"})) return dims.size() < shape.size() || dims.front() == 1 ? 0 : -1;
    const bool first = from.weights.empty() && !dims.empty() && dims.front() == graph_.batch_;
    const bool state = dims.size() == 2 && is_one_of(node.op_type(), {"Gemm", "MatMul"});
    const bool image = dims.size() > 2 && node.op_type() == "Conv";
    return first && (state || image) ? 0 : -1;
}

bool Inference::repeats_beside_sequences(const onnx::NodeProto& node, const Shape& shape) const {
    const Value& from = in(node, 0);
    if (!is_one_of(node.op_type(), {"Expand", "Tile"}) || from.weights.empty() || !from.dims || shape.size() != 3)
        return false;
    if (*from.dims != Shape{shape[0], 1, shape[2]} || shape[1] != graph_.batch_) return false;
    return std::ranges::any_of(graph_.values_, [](const auto& each) {
        const Value& value = each.second;
        return value.kind == Value::Kind::activation && value.batch == 1 && value.dims && value.dims->size() == 3;
    });
}

// Of weights all is kept for who runs the network, but not once a sample, and no more than the file holds numbers: a
// few bytes claim any size.
double Inference::most_kept(const Value& value) const {
    constexpr double most_for_running = 1 << 26;
    if (!graph_.keeps_values()) return static_cast<double>(largest_kept);
    const bool samples = graph_.open_batch_ && std::ranges::any_of(*value.dims, [&](std::int64_t dim) {
                             return dim > 0 && dim % graph_.batch_ == 0;
                         });
    return samples || value.weights.empty() ? most_for_running : std::max(most_for_running, graph_.held_);
}

}  // namespace rehearse::models
