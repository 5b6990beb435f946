// SPDX-License-Identifier: Apache-2.0
// Functions of each element. A constant vector behind a convolution or dense layer without bias is its bias; sums of
// equal shapes are Add; the rest is Elementwise.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

struct Name {
    std::string_view onnx, ours;
};
constexpr std::array names{
    Name{"Add", "add"},
    Name{"Sum", "add"},
    Name{"Sub", "sub"},
    Name{"Mul", "mul"},
    Name{"Div", "div"},
    Name{"Pow", "pow"},
    Name{"Mod", "mod"},
    Name{"Neg", "neg"},
    Name{"Abs", "abs"},
    Name{"Sqrt", "sqrt"},
    Name{"Reciprocal", "reciprocal"},
    Name{"Exp", "exp"},
    Name{"Log", "log"},
    Name{"Erf", "erf"},
    Name{"Sin", "sin"},
    Name{"Cos", "cos"},
    Name{"Tan", "tan"},
    Name{"Asin", "asin"},
    Name{"Acos", "acos"},
    Name{"Atan", "atan"},
    Name{"Sinh", "sinh"},
    Name{"Cosh", "cosh"},
    Name{"Asinh", "asinh"},
    Name{"Acosh", "acosh"},
    Name{"Atanh", "atanh"},
    Name{"Min", "min"},
    Name{"Max", "max"},
    Name{"Mean", "mean"},
    Name{"Clip", "clip"},
    Name{"LeakyRelu", "leakyrelu"},
    Name{"PRelu", "prelu"},
    Name{"ThresholdedRelu", "thresholdedrelu"},
    Name{"HardSigmoid", "hardsigmoid"},
    Name{"HardSwish", "hardswish"},
    Name{"Shrink", "shrink"},
    Name{"Softplus", "softplus"},
    Name{"Softsign", "softsign"},
    Name{"Elu", "elu"},
    Name{"Selu", "selu"},
    Name{"Celu", "celu"},
    Name{"Mish", "mish"},
    Name{"Where", "where"},
    Name{"Cast", "copy"},
    Name{"CastLike", "copy"},
    Name{"Floor", "floor"},
    Name{"Ceil", "ceil"},
    Name{"Round", "round"},
    Name{"Sign", "sign"},
    Name{"Equal", "equal"},
    Name{"Greater", "greater"},
    Name{"GreaterOrEqual", "greaterequal"},
    Name{"Less", "less"},
    Name{"LessOrEqual", "lessequal"},
    Name{"IsNaN", "isnan"},
    Name{"IsInf", "isinf"},
    Name{"Not", "not"},
    Name{"And", "and"},
    Name{"Or", "or"},
    Name{"Xor", "xor"},
    Name{"BitShift", "logic"},
    Name{"BitwiseAnd", "logic"},
    Name{"BitwiseOr", "logic"},
    Name{"BitwiseXor", "logic"},
    Name{"BitwiseNot", "logic"},
    Name{"RandomNormalLike", "random"},
    Name{"RandomUniformLike", "random"},
    Name{"Bernoulli", "random"},
    Name{"Hardmax", "compare"},
    Name{"QuantizeLinear", "round"},
    Name{"DequantizeLinear", "mul"},
    Name{"Trilu", "where"},
    Name{"ReverseSequence", "copy"},
};

// A constant vector behind a convolution or dense layer without bias is its bias, said in two operators.
bool is_bias(Import& import, const onnx::NodeProto& node, int constant) {
    const std::string& value = node.input(constant);
    const std::string& product = node.input(1 - constant);
    const auto dims = import.graph.dims(value);
    const Value& from = import.graph.value(product);
    const auto place = import.places.find(product);
    if (place == import.places.end() || !dims || !from.dims || !floating(import.graph.value(value).element))
        return false;
    if (import.graph.readers(product) > 1 || from.maker == nullptr) return false;
    const std::string& maker = from.maker->op_type();
    if (maker != "Conv" && maker != "ConvTranspose" && maker != "MatMul" && maker != "Gemm") return false;
    const bool image = maker.starts_with("Conv");
    if (image && from.dims->size() < 3) return false;
    const std::int64_t wide = image ? (*from.dims)[1] : from.dims->empty() ? 0 : from.dims->back();
    if (elements(*dims) != wide || dims->empty()) return false;
    const std::size_t rank = from.dims->size();
    // Over the channels of an image the vector must be {c, 1, 1}, over those of a volume {c, 1, 1, 1}, over features
    // {n}.
    const bool fits =
        image ? dims->size() >= rank - 1 && (*dims)[dims->size() - (rank - 1)] == wide : dims->back() == wide;
    // Of a dense layer that is used once more the bias is there already.
    const Layer& made = import.builder.at(place->second.layer);
    const auto* again = made.weights_of < 0 ? nullptr : std::get_if<MatMul>(&computed(made.op));
    const std::vector<std::string> tensors = import.tensors(node, constant, constant);
    if (again != nullptr && again->bias && tensors.size() == 1 && import.owners.contains(tensors.front()) &&
        import.owners.at(tensors.front()) == made.weights_of) {
        import.places[node.output(0)] = place->second;
        return true;
    }
    if (import.is_computed(value)) return false;
    for (const std::string& tensor : tensors)
        if (import.owners.contains(tensor) && !import.graph.uniform(tensor)) return false;
    if (!fits || !import.builder.add_bias(place->second.layer)) return false;
    for (const std::string& tensor : tensors) import.owners.emplace(tensor, place->second.layer);
    import.places[node.output(0)] = place->second;
    import.starts[place->second.layer].push_back({value});
    return true;
}

// Operands in another order, and powers that processors compute at once.
void settle(Elementwise& op, const Operands& from) {
    const bool turned = !from.layer_first && from.layers.size() == 1;
    if (turned && op.function == "sub") op.function = "rsub";
    if (turned && op.function == "div") op.function = "rdiv";
    if (turned && op.function == "pow") op.function = "rpow";
    if (op.function.starts_with('r') && turned) std::ranges::reverse(op.order);
    const bool one = op.inputs.size() == 1 && op.weights.empty() && op.constants.empty();
    if (one && op.function == "pow" && op.numbers == std::vector<double>{2}) op.function = "square", op.numbers.clear();
    if (one && op.function == "pow" && op.numbers == std::vector<double>{0.5}) op.function = "sqrt", op.numbers.clear();
    if (one && op.function == "rdiv" && op.numbers == std::vector<double>{1})
        op.function = "reciprocal", op.numbers.clear();
    for (double& number : op.numbers) number = std::clamp(number, -1e38, 1e38);  // infinity: no bound, a mask
    if (op.numbers.empty()) std::erase(op.order, 'n');
    const bool any_order = op.function == "add" || op.function == "mul" || op.function == "min" ||
                           op.function == "max" || op.function == "mean";
    if (any_order ||
        std::ranges::is_sorted(op.order, {}, [](char kind) { return std::string_view("xwcn").find(kind); }))
        op.order.clear();
}

struct Default {
    std::string_view function, attribute;
    double otherwise;
};
// Numbers that a function takes from its node's attributes, in our order, with ONNX's defaults.
constexpr std::array defaults{
    Default{"leakyrelu", "alpha", 0.01},
    Default{"thresholdedrelu", "alpha", 1},
    Default{"hardsigmoid", "alpha", 0.2},
    Default{"hardsigmoid", "beta", 0.5},
    Default{"shrink", "lambd", 0.5},
    Default{"shrink", "bias", 0},
    Default{"elu", "alpha", 1},
    Default{"selu", "alpha", 1.67326319217681884765625},
    Default{"selu", "gamma", 1.05070102214813232421875},
    Default{"celu", "alpha", 1},
};

// Both bounds, from attributes or inputs.
void clip(const Import& import, const onnx::NodeProto& node, Elementwise& op) {
    if (!op.inputs.empty() && op.inputs.size() + op.numbers.size() != op.order.size()) return;
    op.numbers.clear();
    op.order = "xnn";
    for (const int i : {1, 2}) {
        const double otherwise = number(node, i == 1 ? "min" : "max", i == 1 ? -1e38 : 1e38);
        const bool here = i < node.input_size() && !node.input(i).empty();
        op.numbers.push_back(here ? import.graph.scalar(node.input(i)).value_or(otherwise) : otherwise);
    }
}

// What a cast or a function does that ours does not; empty where it is ours.
std::string unlike_ours(const Import& import, const onnx::NodeProto& node) {
    const std::string& type = node.op_type();
    if (type == "ReverseSequence") return "samples are turned by lengths of their own";
    if (!type.starts_with("Cast")) return "";
    const bool from = floating(import.graph.value(node.input(0)).element);
    return from && !floating(import.graph.value(node.output(0)).element) ? "it makes integers of numbers" : "";
}

}  // namespace

std::string elementwise(Import& import, const onnx::NodeProto& node) {
    const auto* const name = std::ranges::find(names, node.op_type(), &Name::onnx);
    Elementwise op{std::string{name->ours}, import.sample(node, node.output(0)), {}};
    Operands from = import.operands(node);
    op.inputs = from.inputs;
    op.weights = from.weights;
    op.constants = from.constants;
    op.numbers = from.numbers;
    if (node.op_type() == "Cast" &&
        import.graph.value(node.input(0)).element == import.graph.value(node.output(0)).element &&
        !from.layers.empty()) {
        import.alias(node, node.output(0), node.input(0));
        return "";
    }
    op.order = from.order;
    if (op.function == "mod" && integer(node, "fmod", 0) != 0) op.function = "fmod";  // of the dividend's sign
    if (op.function == "clip") clip(import, node, op);
    for (const Default& each : defaults) {
        if (each.function != op.function) continue;
        op.numbers.push_back(number(node, each.attribute, each.otherwise));
        op.order += 'n';
    }
    settle(op, from);
    const std::string other = unlike_ours(import, node);
    std::vector<Start> starts;
    for (const std::string& start : from.start) starts.push_back({start});
    const int layer = import.put(node, std::move(op), std::move(from.layers), std::move(from.tensors));
    if (!import.starts[layer].empty()) import.starts[layer] = std::move(starts);
    if (import.given[layer].not_run.empty()) import.given[layer] = std::move(from.given);
    if (!other.empty()) import.not_run(layer, other);
    return "";
}

std::string add(Import& import, const onnx::NodeProto& node) {
    if (node.input_size() == 0) import.graph.fail(node, "it has no inputs");
    if (node.input_size() == 2)
        for (const int i : {0, 1})
            if (import.graph.constant(node.input(i)) && is_bias(import, node, i)) return "";
    std::vector<int> from;
    bool turned = true;
    const Shape shape = import.sample(node, node.output(0));
    for (int i = 0; i < node.input_size(); ++i) {
        if (!import.places.contains(node.input(i)) || import.sample(node, node.input(i)) != shape)
            return elementwise(import, node);
        turned = turned && import.turned(node, i);
    }
    for (int i = 0; i < node.input_size(); ++i)
        from.push_back(turned ? import.volume_of(node, i) : import.source(node, i));
    import.put(node, Add{import.builder.shape(from.front()), static_cast<std::int64_t>(from.size())}, from);
    import.places[node.output(0)].turned = turned;
    return "";
}

}  // namespace rehearse::models
