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
    Name{"Equal", "compare"},
    Name{"Greater", "compare"},
    Name{"GreaterOrEqual", "compare"},
    Name{"Less", "compare"},
    Name{"LessOrEqual", "compare"},
    Name{"IsNaN", "compare"},
    Name{"IsInf", "compare"},
    Name{"Not", "logic"},
    Name{"And", "logic"},
    Name{"Or", "logic"},
    Name{"Xor", "logic"},
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
    for (const std::string& tensor : import.graph.value(value).weights)
        if (import.owners.contains(tensor) && !import.graph.uniform(tensor)) return false;
    if (!fits || !import.builder.add_bias(place->second.layer)) return false;
    for (const std::string& tensor : import.graph.value(value).weights)
        import.owners.emplace(tensor, place->second.layer);
    import.places[node.output(0)] = place->second;
    return true;
}

// Operands in another order, and powers that processors compute at once.
void settle(Elementwise& op, const Operands& from) {
    const bool turned = !from.layer_first && from.layers.size() == 1;
    if (turned && op.function == "sub") op.function = "rsub";
    if (turned && op.function == "div") op.function = "rdiv";
    if (turned && op.function == "pow") op.function = "rpow";
    if (op.function == "pow" && op.numbers == std::vector<double>{2}) op.function = "square", op.numbers.clear();
    if (op.function == "pow" && op.numbers == std::vector<double>{0.5}) op.function = "sqrt", op.numbers.clear();
    if (op.function == "rdiv" && op.numbers == std::vector<double>{1}) op.function = "reciprocal", op.numbers.clear();
    std::erase_if(op.numbers, [](double number) { return !(number > -1e300 && number < 1e300); });  // no bound, a mask
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
    for (const std::string_view attribute : {"min", "max", "alpha", "beta", "gamma", "lambd", "bias"})
        if (has(node, attribute)) op.numbers.push_back(number(node, attribute, 0));
    settle(op, from);
    import.put(node, std::move(op), std::move(from.layers), std::move(from.tensors));
    return "";
}

std::string add(Import& import, const onnx::NodeProto& node) {
    if (node.input_size() == 0) import.graph.fail(node, "it has no inputs");
    if (node.input_size() == 2)
        for (const int i : {0, 1})
            if (import.graph.constant(node.input(i)) && is_bias(import, node, i)) return "";
    std::vector<int> from;
    const Shape shape = import.sample(node, node.output(0));
    for (int i = 0; i < node.input_size(); ++i) {
        if (!import.places.contains(node.input(i)) || import.sample(node, node.input(i)) != shape)
            return elementwise(import, node);
        from.push_back(import.source(node, i));
    }
    import.put(node, Add{shape, static_cast<std::int64_t>(from.size())}, from);
    return "";
}

}  // namespace rehearse::models
