// SPDX-License-Identifier: Apache-2.0
// What PyTorch's export for inference folds into weights. It calls tensors anew that it computed:
//
//   onnx::Conv_9, onnx::Conv_10   weights and bias took a batch normalization in
//   onnx::Conv_9, c.bias          the weights alone were computed: weight_norm's g v / |v|, or standardized weights
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

bool is_nameless(const onnx::NodeProto& node, int input) {
    return input < node.input_size() && node.input(input).starts_with("onnx::");
}

// Each filter of mean 0 and of one variance (Qiao et al. 2019): no lengths are trained.
bool standardized(const std::vector<double>& values, std::int64_t filters) {
    constexpr double close = 1e-3;
    const auto count = values.size() / static_cast<std::size_t>(std::max<std::int64_t>(1, filters));
    if (count < 2) return false;
    double first = -1;
    for (std::size_t f = 0; f < values.size() / count; ++f) {
        double sum = 0, squares = 0;
        for (std::size_t i = f * count; i < (f + 1) * count; ++i) sum += values[i], squares += values[i] * values[i];
        const double mean = sum / static_cast<double>(count), spread = squares / static_cast<double>(count);
        if (first < 0) first = spread;
        if (!(std::abs(mean) <= close * std::sqrt(spread)) || !(std::abs(spread / first - 1) <= close)) return false;
    }
    return true;
}

// A network that nobody trained: PyTorch begins with weights and biases from -b to b, b = 1 / sqrt(inputs of a filter),
// and with a normalization that divides by the root of 1 + epsilon, or of 0.9 + epsilon where it met nothing but zeros
// once. `plain`: the convolution had no bias, or one of zeros. `open`: nothing is seen.
enum class Beginning { plain, bias, trained, open };

double largest(const std::vector<double>& values) {
    double most = 0;
    for (const double each : values) most = std::max(most, std::abs(each));
    return most;
}

Beginning beginning_of(const Import& import, const onnx::NodeProto& node) {
    const auto &weights = import.graph.value(node.input(1)).data, &bias = import.graph.value(node.input(2)).data;
    const Shape dims = import.graph.dims(node.input(1)).value_or(Shape{});
    if (!bias || bias->empty() || dims.empty()) return Beginning::open;
    const double most = largest(*bias);
    if (most == 0) return Beginning::plain;
    const double bound = 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, elements(dims) / dims[0])));
    // Of n numbers the largest is below half of the bound once in 2^n, and below 1 - c of it by a chance of (1 - c)^n.
    constexpr double above = 0.03, chance = 0.002;
    constexpr std::size_t many = 64;
    if (!(most <= bound * (1 + above) && most >= bound / 2)) return Beginning::trained;
    if (!weights || weights->size() < many) return Beginning::open;
    const double close = 1 - std::pow(chance, 1 / static_cast<double>(weights->size()));
    const double reached = largest(*weights) / bound, once = 1 / std::sqrt(0.9);
    const bool begins = (reached <= 1 && reached >= 1 - close) || (reached <= once && reached >= once * (1 - close));
    return begins ? Beginning::bias : Beginning::trained;
}

}  // namespace

bool holds_normalization(const Import& import, const onnx::NodeProto& node) {
    const onnx::NodeProto* maker = import.graph.value(node.input(1)).maker;
    return is_nameless(node, 1) && is_nameless(node, 2) && (maker == nullptr || maker->op_type() == "Identity");
}

void put_normalization(Import& import, const onnx::NodeProto& node, int conv) {
    const Shape made = import.builder.shape(conv);
    BatchNorm op{.channels = made[0],
                 .height = made[made.size() - 2],
                 .width = made.back(),
                 .depth = made.size() == 4 ? made[1] : 0};
    onnx::NodeProto norm;
    norm.set_name(import.builder.at(conv).name + ".batchnorm");
    norm.add_output(node.output(0));
    const int owner = import.builder.at(conv).weights_of;
    const auto first = import.put_back.find(owner);
    if (owner >= 0 && first != import.put_back.end()) {  // the convolution is called again, and so is this
        const int layer = import.put(norm, Shared{std::make_shared<const SharedOp>(SharedOp{op})}, {conv});
        import.builder.at(layer).weights_of = first->second;
        return;
    }
    import.put_back[conv] = import.put(norm, op, {conv});
    import.builder.add_state(2 * made[0]);
    const Beginning beginning = beginning_of(import, node);
    import.begins = import.begins && beginning != Beginning::trained;
    import.seen_to_begin = import.seen_to_begin || beginning == Beginning::bias;
    const bool some = import.graph.value(node.input(2)).data != nullptr;
    if (some && beginning != Beginning::plain) import.own_bias.push_back(conv);
}

void add_lengths(Import& import, const onnx::NodeProto& node, std::size_t axis) {
    const Value& weights = import.graph.value(node.input(1));
    const bool named_bias = node.input_size() > 2 && !node.input(2).empty() && !is_nameless(node, 2);
    if (!is_nameless(node, 1) || !named_bias || weights.maker != nullptr || !weights.dims ||
        axis >= weights.dims->size())
        return;
    const std::int64_t count = (*weights.dims)[axis];
    if (axis == 0 && weights.data && standardized(*weights.data, count)) return;
    if (weights.data && std::ranges::count(*weights.data, 0.0) > 0) return;  // a mask let some of them through
    const std::string name = node.input(1) + ".lengths";
    if (import.owners.contains(name)) return;
    ++import.with_lengths;
    if (!import.options.unfold) return;
    onnx::NodeProto named;
    named.set_name(name);
    import.owners[name] = import.builder.layer(import.name_for(named), Parameter{{ count }}, {});
}

void add_lost_biases(Import& import) {
    if (!import.begins || !import.seen_to_begin) return;
    for (const int conv : import.own_bias) import.builder.add_bias(conv);
    if (!import.own_bias.empty())
        ++import
              .notes[fmt::format("{} of the convolutions before a normalization that was folded have a bias of their "
                                 "own: their numbers are those that PyTorch begins with",
                                 import.own_bias.size())];
}

}  // namespace rehearse::models
