// SPDX-License-Identifier: Apache-2.0
#include "schedule/reads.hpp"

#include "core/op_general_visitors.hpp"

namespace rehearse::schedule {

namespace {

struct DataGradientReads {
    Reads operator()(const BatchNorm&) const { return {.src = true}; }
    Reads operator()(const ChannelSums&) const { return {.src = true}; }
    Reads operator()(const Lrn&) const { return {true, true}; }
    Reads operator()(const Pool2d& op) const { return {op.kind == PoolKind::max, op.kind == PoolKind::max}; }
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

}  // namespace rehearse::schedule
