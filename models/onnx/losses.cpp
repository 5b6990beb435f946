// SPDX-License-Identifier: Apache-2.0
// Losses that a graph computes itself: softmax cross-entropy against labels that are fed in, and what ends in a mean
// over the samples, as the distance from a target that is fed in. Sums of such, with factors, are one loss:
//
//   scores --- SoftmaxCrossEntropyLoss ------------------ Add --- loss        layers: a SoftmaxLoss, and of
//   a - target --- Pow 2 --- ReduceMean --- Mul 0.1 ------/                   0.1 of the mean a TermsLoss
#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "models/onnx/importer.hpp"

namespace rehearse::models {
namespace {

constexpr std::array<std::string_view, 12> linear{"Add",      "Sub",     "Mul",       "Div",     "Neg",  "Sum",
                                                  "Identity", "Squeeze", "Unsqueeze", "Reshape", "Cast", "Flatten"};

bool is_linear(const onnx::NodeProto& node) { return std::ranges::find(linear, node.op_type()) != linear.end(); }

// Where a row of labels lies beside its scores: a sample's scores {classes}, {rows, classes} or {classes, sizes...}.
struct Scores {
    int layer = 0;
    SoftmaxLoss op;
};

Scores scores_of(Import& import, const onnx::NodeProto& node) {
    const Shape shape = import.sample(node, node.input(0));
    const auto dims = import.graph.dims(node.input(0)).value_or(Shape{});
    const std::int64_t classes = dims.size() > 1 ? dims[1] : elements(shape);
    const std::int64_t rows = std::max<std::int64_t>(1, elements(shape) / std::max<std::int64_t>(1, classes));
    if (dims.size() <= 2) {
        const int from = import.source(node, 0, rows == 1 ? Shape{classes} : Shape{rows, classes});
        return {from, {.classes = classes, .rows = rows}};
    }
    if (dims.size() > 3 && shape.size() + 1 == dims.size())
        return {import.source(node, 0), {.classes = classes, .image = Shape(shape.begin() + 1, shape.end())}};
    const int from = import.source(node, 0, {classes, rows});
    if (rows == 1) return {import.source(node, 0, {classes}), {.classes = classes}};
    onnx::NodeProto named;
    named.set_name(import.builder.at(from).name + ".rows");
    const int turned = import.builder.layer(
        import.name_for(named), Rearrangement{"transpose", {{classes, rows}}, {rows, classes}, {1, 0}}, {from});
    return {turned, {.classes = classes, .rows = rows}};
}

std::string unlike_ours(const Import& import, const onnx::NodeProto& node) {
    const std::string reduction = text(node, "reduction", "mean");
    if (reduction != "mean") return fmt::format("its reduction is '{}', and ours is the mean", reduction);
    if (node.input_size() > 2 && !node.input(2).empty()) return "its classes have weights";
    if (node.op_type() == "NegativeLogLikelihoodLoss") {
        const onnx::NodeProto* maker = import.graph.value(node.input(0)).maker;
        const bool logs = maker != nullptr && maker->op_type() == "LogSoftmax";
        if (!logs) return "it reads no logarithms of a softmax";
    }
    return "";
}

}  // namespace

// NOLINTNEXTLINE(misc-no-recursion): along the few nodes between a loss and the output
bool only_added(const OnnxGraph& graph, const std::string& value, int depth) {
    constexpr int deepest = 64;
    return depth < deepest && std::ranges::all_of(graph.readers_of(value), [&](const onnx::NodeProto* reader) {
               return is_linear(*reader) && reader->output_size() == 1 &&
                      only_added(graph, reader->output(0), depth + 1);
           });
}

std::string labelled_loss(Import& import, const onnx::NodeProto& node) {
    if (node.input_size() < 2) import.graph.fail(node, "it has no labels");
    Scores scores = scores_of(import, node);
    const std::int64_t count = scores.op.rows * elements(scores.op.image);
    const int layer = import.put(node, std::move(scores.op), {scores.layer});
    if (const std::string why = unlike_ours(import, node); !why.empty()) import.not_run(layer, why);
    constexpr std::int64_t left_out = -100;
    const std::int64_t ignored = integer(node, "ignore_index", left_out);
    if (ignored != left_out)
        ++import.notes[fmt::format("labels of {} ask for nothing: run has --ignore-label {}", ignored, ignored)];
    const auto labels = import.picked_of(node.input(1));
    const auto sample = import.graph.sample(node.input(1));
    if (labels && sample && elements(*sample) == count) {
        if (!labels->places.empty()) import.given[layer].places = {labels->places};
    } else {
        import.not_run(layer, fmt::format("its labels '{}' are computed", node.input(1)));
    }
    import.losses[node.output(0)] = {{ layer, 1 }};
    return "";
}

namespace {

// The terms that the node's value has; nothing where it is more than a sum of losses.
std::optional<std::vector<LossTerm>> terms_of(const Import& import, const onnx::NodeProto& node) {
    if (!is_linear(node) || node.output_size() != 1 || !only_added(import.graph, node.output(0))) return std::nullopt;
    std::vector<LossTerm> terms;
    double factor = node.op_type() == "Neg" ? -1 : 1;
    bool any = false;
    for (int i = 0; i < node.input_size(); ++i) {
        if (node.input(i).empty()) continue;
        const auto found = import.losses.find(node.input(i));
        if (found == import.losses.end()) {
            const auto number = import.graph.scalar(node.input(i));
            const bool shape = i > 0 && import.graph.constant(node.input(i)) &&
                               (node.op_type().ends_with("queeze") || node.op_type() == "Reshape");
            const bool divides = node.op_type() == "Div" && i == 1;
            if (shape) continue;
            if (!number || (node.op_type() != "Mul" && !divides) || (divides && *number == 0)) return std::nullopt;
            factor *= divides ? 1 / *number : *number;
            continue;
        }
        if (any && (node.op_type() == "Mul" || node.op_type() == "Div")) return std::nullopt;
        any = true;
        const double sign = node.op_type() == "Sub" && i == 1 ? -1 : 1;
        for (const LossTerm& term : found->second) terms.push_back({term.layer, sign * term.factor});
    }
    if (!any) return std::nullopt;
    for (LossTerm& term : terms) term.factor *= factor;
    return terms;
}

}  // namespace

// What is computed of a mean over the samples by other means knows more than a sample.
bool adds_losses(Import& import, const onnx::NodeProto& node) {
    if (auto terms = terms_of(import, node)) {
        import.losses[node.output(0)] = std::move(*terms);
        return true;
    }
    for (const std::string& input : node.input()) {
        const auto found = import.losses.find(input);
        if (found == import.losses.end()) continue;
        for (const LossTerm& term : found->second)
            if (!std::holds_alternative<SoftmaxLoss>(import.builder.at(term.layer).op))
                import.not_run(term.layer, "it brings samples together");
    }
    return false;
}

namespace {

// `factor` times what the layer makes.
int times(Import& import, const LossTerm& term) {
    if (term.factor == 1) return term.layer;
    const Shape shape = import.builder.shape(term.layer);
    onnx::NodeProto named;
    named.set_name(import.builder.at(term.layer).name + ".times");
    return import.builder.layer(
        import.name_for(named),
        Elementwise{.function = "mul", .shape = shape, .inputs = {shape}, .numbers = {term.factor}}, {term.layer});
}

}  // namespace

void put_losses(Import& import, const std::string& value) {
    int sum = -1;
    for (const LossTerm& term : import.losses.at(value)) {
        const int next = times(import, term);
        onnx::NodeProto named;
        named.set_name(value);
        sum = sum < 0 ? next
                      : import.builder.layer(import.name_for(named), Add{import.builder.shape(next), 2}, {sum, next});
    }
    import.not_run(sum, "more is computed of a loss than a sum");
    import.places[value] = {sum, ""};
}

namespace {

// The mean m of a sample as a loss. TermsLoss makes log(sum) + largest - score of the terms (largest, sum, score) of a
// row: of (0, 1, -m) that is m, and its slope in m is 1.
void put_mean_loss(Import& import, const LossTerm& term, const std::string& name) {
    Elementwise turned{.function = "mul", .shape = {3}, .inputs = {import.builder.shape(term.layer)}};
    Elementwise terms{.function = "add", .shape = {3}, .inputs = {{3}}};
    turned.constants = terms.constants = {{3}};
    onnx::NodeProto named;
    named.set_name(name + ".turned");
    const int score = import.builder.layer(import.name_for(named), std::move(turned), {term.layer});
    import.given[score].fixed = {{ 0, 0, static_cast<float>(-term.factor) }};
    named.set_name(name + ".terms");
    const int row = import.builder.layer(import.name_for(named), std::move(terms), {score});
    import.given[row].fixed = {{ 0, 1, 0 }};
    import.builder.layer(name, TermsLoss{1, 1}, {row});
}

}  // namespace

bool ends_in_own_loss(Import& import) {
    const auto& outputs = import.graph.outputs();
    const auto trained =
        std::ranges::find_if(outputs, [&](const std::string& output) { return import.losses.contains(output); });
    if (trained == outputs.end()) {
        bool labelled = false;
        for (const auto& [value, terms] : import.losses)
            for (const LossTerm& term : terms)
                if (std::holds_alternative<SoftmaxLoss>(import.builder.at(term.layer).op)) {
                    import.not_run(term.layer, "the graph gives out more than this loss");
                    labelled = true;
                }
        return labelled;
    }
    int means = 0;
    for (const LossTerm& term : import.losses.at(*trained)) {
        if (!std::holds_alternative<SoftmaxLoss>(import.builder.at(term.layer).op)) {
            put_mean_loss(import, term, means++ == 0 ? "loss" : fmt::format("loss#{}", means));
        } else if (term.factor != 1) {
            import.not_run(term.layer, fmt::format("it counts {} times: no kernel scales it", term.factor));
        }
    }
    return true;
}

}  // namespace rehearse::models
