// SPDX-License-Identifier: Apache-2.0
// Tensors of an operator beside its input and output: its weights, and what backward reads of forward.
#include "core/index.hpp"
#include "core/op.hpp"
#include "core/op_general_visitors.hpp"

namespace rehearse {

namespace {

// {outer, inner, kernel...} and, with bias, {filters}.
std::vector<WeightTensor> convolution_weights(const auto& op, std::int64_t outer, std::int64_t inner) {
    Shape shape{outer, inner / op.groups};
    if (op.depth > 0) shape.push_back(op.window.kernel_d);
    shape.insert(shape.end(), {op.window.kernel_h, op.window.kernel_w});
    std::vector<WeightTensor> tensors{{"weights", shape}};
    if (op.bias) tensors.push_back({"bias", {op.filters}});
    return tensors;
}

struct Weights : general::Weights {
    using general::Weights::operator();
    std::vector<WeightTensor> operator()(const Conv& op) const {
        return convolution_weights(op, op.filters, op.channels);
    }
    std::vector<WeightTensor> operator()(const ConvTranspose& op) const {
        return convolution_weights(op, op.channels, op.filters);
    }
    std::vector<WeightTensor> operator()(const MatMul& op) const {
        std::vector<WeightTensor> tensors{{"weights", {op.k, op.n}}};
        if (op.tied) tensors.clear();
        if (op.bias) tensors.push_back({"bias", {op.n}});
        return tensors;
    }
    std::vector<WeightTensor> operator()(const GroupedMatMul& op) const {
        std::vector<WeightTensor> tensors{{"weights", {op.experts, op.k, op.n}}};
        if (op.bias) tensors.push_back({"bias", {op.experts, op.n}});
        return tensors;
    }
    std::vector<WeightTensor> operator()(const LayerNorm& op) const {
        return {{"gamma", {op.features}}, {"beta", {op.features}}};
    }
    std::vector<WeightTensor> operator()(const Embedding& op) const {
        std::vector<WeightTensor> tensors{{"weights", {op.vocabulary, op.width}}};
        if (op.positions > 0) tensors.push_back({"positions", {op.positions, op.width}});
        if (op.segments > 0) tensors.push_back({"segments", {op.segments, op.width}});
        return tensors;
    }
    std::vector<WeightTensor> operator()(const EmbeddingBag& op) const {
        return {{"weights", {op.tables, op.vocabulary, op.width}}};
    }
    std::vector<WeightTensor> operator()(const BatchNorm& op) const {
        if (!op.affine) return {};
        return {{"gamma", {op.channels}}, {"beta", {op.channels}}};
    }
    std::vector<WeightTensor> operator()(const Bias& op) const { return {{"bias", {op.shape.at(at(op.dim))}}}; }
    std::vector<WeightTensor> operator()(const Unknown& op) const {
        if (op.weight_elements == 0) return {};
        return {{"weights", {op.weight_elements}}};
    }
    std::vector<WeightTensor> operator()(const auto&) const { return {}; }
};

struct DataGradientReads {
    Reads operator()(const BatchNorm&) const { return {.src = true}; }
    Reads operator()(const ChannelSums&) const { return {.src = true}; }
    Reads operator()(const Lrn&) const { return {true, true}; }
    Reads operator()(const Pool& op) const { return {op.kind == PoolKind::max, op.kind == PoolKind::max}; }
    Reads operator()(const Activation& op) const {
        const bool from_src = op.kind == Nonlinearity::gelu;
        return {from_src, !from_src};
    }
    Reads operator()(const LayerNorm&) const { return {.src = true}; }
    // Softmax's slope takes the sums of diff_dst times dst of each query, or the probabilities that are kept.
    Reads operator()(const Attention& op) const { return {.src = true, .dst = !op.kept}; }
    Reads operator()(const Interaction&) const { return {.src = true}; }
    Reads operator()(const DispatchTokens&) const { return {.src = true}; }  // the scores, to choose again
    Reads operator()(const CombineTokens&) const { return {.src = true}; }
    Reads operator()(const Softmax&) const { return {.dst = true}; }
    Reads operator()(const SoftmaxLoss&) const { return {.src = true}; }
    Reads operator()(const SoftmaxTerms&) const { return {true, true}; }
    Reads operator()(const TermsLoss&) const { return {.src = true}; }
    Reads operator()(const Unknown&) const { return {true, true}; }
    Reads operator()(const auto&) const { return {}; }  // linear in src: conv2d, matmul, add, concat, dropout, ...
};

}  // namespace

std::vector<WeightTensor> weights(const Op& op) { return std::visit(Weights{}, op); }

Reads reads(const Op& layer, Pass pass) {
    const Op& op = computed(layer);
    if (const auto needs = general::needs(op)) {
        return pass == Pass::backward_weights ? Reads{.src = needs->weights_src} : Reads{needs->src, needs->dst};
    }
    const bool product = !std::holds_alternative<Bias>(op);  // the gradient of a bias is a sum of diff_dst alone
    Reads read = pass == Pass::backward_weights ? Reads{.src = product} : std::visit(DataGradientReads{}, op);
    read.dst = read.dst || has_fused_relu(op);
    return read;
}

double kept_bytes(const Op& layer, double size, double batch) {
    const Op& op = computed(layer);
    constexpr double mask = 1;  // byte of an element
    double sample = keeps_slope(op) ? size * static_cast<double>(elements(output_shape(op))) : 0;
    if (const auto* dropout = std::get_if<Dropout>(&op)) sample = mask * static_cast<double>(elements(dropout->shape));
    if (const auto* heads = std::get_if<Attention>(&op); heads != nullptr && heads->kept) {
        sample = (size + mask + size) * static_cast<double>(heads->heads * heads->queries * heads->keys);
    }
    if (const auto* cells = std::get_if<Recurrent>(&op)) {  // the gates of each step, and an LSTM's cells
        const auto kept = static_cast<double>(gates_of(*cells) + (cells->cell == "lstm" ? 1 : 0));
        sample = size * kept * static_cast<double>(elements(output_shape(op)));
    }
    return sample * batch;
}

bool gradient_reads_src(const Op& op) {
    return std::holds_alternative<Activation>(op) || reads(op, Pass::backward_data).src;
}

bool gradient_reads_dst(const Op& op) {
    return std::holds_alternative<Softmax>(op) || std::holds_alternative<Attention>(op) ||
           std::holds_alternative<SoftmaxTerms>(op) || has_fused_relu(op) ||
           (is_general(op) && reads(op, Pass::backward_data).dst);
}

}  // namespace rehearse
