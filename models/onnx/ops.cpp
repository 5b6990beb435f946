// SPDX-License-Identifier: Apache-2.0
// Which ONNX operator is translated by which function. An operator's form that ours cannot say is unknown, with its
// reason.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

template <Nonlinearity kind>
std::string activation(Import& import, const onnx::NodeProto& node) {
    const bool turned = import.turned(node, 0);
    const int from = turned ? import.volume_of(node, 0) : import.source(node, 0);
    import.put(node, Activation{kind, import.builder.shape(from)}, {from});
    import.places[node.output(0)].turned = turned;
    return "";
}

std::string gelu(Import& import, const onnx::NodeProto& node) {
    if (text(node, "approximate", "none") == "none") return activation<Nonlinearity::gelu>(import, node);
    const int from = import.source(node, 0);
    const Shape shape = import.builder.shape(from);
    import.put(node, Elementwise{"gelutanh", shape, { shape }}, {from});
    return "";
}

std::string alias(Import& import, const onnx::NodeProto& node) {
    import.alias(node, node.output(0), node.input(0));
    return "";
}

std::string lrn(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    if (import.builder.shape(from).size() != 3) return "it does not normalize images";
    const Shape shape = import.builder.shape(from);
    import.put(node,
               Lrn{shape[0], shape[1], shape[2], integer(node, "size", 5), number(node, "alpha", 1e-4),
                   number(node, "beta", 0.75), number(node, "bias", 1.0)},
               {from});
    return "";
}

std::string dropout(Import& import, const onnx::NodeProto& node) {
    const int from = import.source(node, 0);
    double ratio = number(node, "ratio", 0.5);
    if (node.input_size() > 1) ratio = import.graph.scalar(node.input(1)).value_or(0.5);
    if (!(ratio >= 0 && ratio < 1)) import.graph.fail(node, fmt::format("a ratio of {} is impossible", ratio));
    import.put(node, Dropout{import.builder.shape(from), 1 - ratio}, {from});
    return "";
}

struct Entry {
    std::string_view op_type;
    Translate translate;
};
constexpr std::array table{
    Entry{"Add", add},
    Entry{"AveragePool", average_pool},
    Entry{"BatchNormalization", batch_norm},
    Entry{"Concat", concat},
    Entry{"Conv", conv},
    Entry{"Dropout", dropout},
    Entry{"Flatten", reshape},
    Entry{"GRU", recurrent},
    Entry{"Gather", gather},
    Entry{"GatherElements", gather},
    Entry{"GatherND", gather},
    Entry{"Gelu", gelu},
    Entry{"Gemm", gemm},
    Entry{"GlobalAveragePool", global_average_pool},
    Entry{"GlobalMaxPool", global_max_pool},
    Entry{"Identity", alias},
    Entry{"LRN", lrn},
    Entry{"LSTM", recurrent},
    Entry{"LogSoftmax", softmax},
    Entry{"MatMul", product},
    Entry{"NegativeLogLikelihoodLoss", labelled_loss},
    Entry{"RNN", recurrent},
    Entry{"Relu", activation<Nonlinearity::relu>},
    Entry{"Reshape", reshape},
    Entry{"Resize", resize},
    Entry{"Sigmoid", activation<Nonlinearity::sigmoid>},
    Entry{"Softmax", softmax},
    Entry{"SoftmaxCrossEntropyLoss", labelled_loss},
    Entry{"Split", split},
    Entry{"Squeeze", reshape},
    Entry{"Sum", add},
    Entry{"Tanh", activation<Nonlinearity::tanh>},
    Entry{"Unsqueeze", reshape},
    Entry{"Upsample", resize},
};

constexpr std::array<std::string_view, 8> moves{"Transpose", "Slice",        "Pad",          "Expand",
                                                "Tile",      "DepthToSpace", "SpaceToDepth", "Trilu"};
constexpr std::array<std::string_view, 6> norms{"InstanceNormalization", "GroupNormalization",
                                                "LayerNormalization",    "RMSNormalization",
                                                "LpNormalization",       "MeanVarianceNormalization"};
constexpr std::array<std::string_view, 51> by_element{"Sub",
                                                      "Mul",
                                                      "Div",
                                                      "Pow",
                                                      "Mod",
                                                      "Neg",
                                                      "Abs",
                                                      "Sqrt",
                                                      "Reciprocal",
                                                      "Exp",
                                                      "Log",
                                                      "Erf",
                                                      "Sin",
                                                      "Cos",
                                                      "Tan",
                                                      "Asin",
                                                      "Acos",
                                                      "Atan",
                                                      "Sinh",
                                                      "Cosh",
                                                      "Asinh",
                                                      "Acosh",
                                                      "Atanh",
                                                      "Min",
                                                      "Max",
                                                      "Mean",
                                                      "Clip",
                                                      "LeakyRelu",
                                                      "PRelu",
                                                      "ThresholdedRelu",
                                                      "HardSigmoid",
                                                      "HardSwish",
                                                      "Shrink",
                                                      "Softplus",
                                                      "Softsign",
                                                      "Elu",
                                                      "Selu",
                                                      "Celu",
                                                      "Mish",
                                                      "Where",
                                                      "Cast",
                                                      "CastLike",
                                                      "Floor",
                                                      "Ceil",
                                                      "Round",
                                                      "Sign",
                                                      "Bernoulli",
                                                      "Hardmax",
                                                      "RandomNormalLike",
                                                      "RandomUniformLike",
                                                      "ReverseSequence"};
constexpr std::array<std::string_view, 15> truths{
    "Equal", "Greater", "GreaterOrEqual", "Less",       "LessOrEqual", "IsNaN",     "IsInf", "Not", "And",
    "Or",    "Xor",     "BitShift",       "BitwiseAnd", "BitwiseOr",   "BitwiseXor"};

bool among(std::string_view word, auto& words) { return std::ranges::find(words, word) != words.end(); }

}  // namespace

Translate translation(std::string_view op_type) {
    if (among(op_type, by_element) || among(op_type, truths)) return elementwise;
    if (among(op_type, moves)) return rearrange;
    if (among(op_type, norms)) return normalize;
    if (op_type.starts_with("Reduce") || op_type == "ArgMax" || op_type == "ArgMin" || op_type == "TopK" ||
        op_type == "CumSum")
        return reduce;
    if (op_type.starts_with("Scatter")) return scatter;
    const auto* const found = std::ranges::find(table, op_type, &Entry::op_type);
    return found == table.end() ? rare_translation(op_type) : found->translate;
}

}  // namespace rehearse::models
