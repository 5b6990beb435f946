// SPDX-License-Identifier: Apache-2.0
// Floating-point operations and bytes of each operator and pass: what a roofline needs.
#include "core/op.hpp"
#include "core/op_general_visitors.hpp"

namespace rehearse {

namespace {

double count(const Shape& shape) { return static_cast<double>(elements(shape)); }

double input_elements(const Op& op) {
    double sum = 0;
    for (const Shape& shape : input_shapes(op)) sum += count(shape);
    return sum;
}

// Operations of one sample's forward pass.
// Large: one method an operator.
struct Forward : general::Forward {
    using general::Forward::operator();
    double operator()(const Conv& op) const {
        const double taps = static_cast<double>(op.channels / op.groups * op.window.taps());
        return count(output_shape(op)) * (2 * taps + (op.bias ? 1 : 0) + (op.relu ? 1 : 0));
    }
    // Every value of src meets every tap of its group's filters; those that would fall outside dst are counted too, as
    // a convolution counts its padding.
    double operator()(const ConvTranspose& op) const {
        const double taps = static_cast<double>(op.filters / op.groups * op.window.taps());
        return input_elements(op) * 2 * taps + (op.bias ? count(output_shape(op)) : 0);
    }
    double operator()(const MatMul& op) const {
        const double activation = !op.activation ? 0 : op.activation == Nonlinearity::relu ? 1 : 16;  // gelu, its slope
        return static_cast<double>(op.m * op.n) * (2 * static_cast<double>(op.k) + (op.bias ? 1 : 0) + activation);
    }
    double operator()(const Pool& op) const { return count(output_shape(op)) * static_cast<double>(op.window.taps()); }
    // Mean and variance (3 an element), then normalize, scale and shift (4).
    double operator()(const BatchNorm& op) const {
        const int statistics = op.parts > 1 ? 0 : 3;  // else they come as sums
        return (4 + statistics + (op.add ? 1 : 0) + (op.relu ? 1 : 0)) * count(output_shape(op));
    }
    double operator()(const ChannelSums& op) const { return 3 * input_elements(op); }
    // Square, a running sum over the channels, power, divide.
    double operator()(const Lrn& op) const { return 6 * count(output_shape(op)); }
    double operator()(const Activation& op) const { return (op.kind == Nonlinearity::relu ? 1 : 8) * count(op.shape); }
    double operator()(const Add& op) const { return static_cast<double>(op.inputs - 1) * count(op.shape); }
    double operator()(const Dropout& op) const { return count(op.shape); }
    double operator()(const Bias& op) const { return count(op.shape); }
    double operator()(const Softmax& op) const { return 4 * static_cast<double>(op.classes); }
    double operator()(const SoftmaxLoss& op) const { return 4 * input_elements(op); }
    double operator()(const SoftmaxTerms& op) const { return 4 * input_elements(op); }
    double operator()(const TermsLoss& op) const { return 2 * input_elements(op); }
    // A linear combination of two pixels a dimension: a multiply-add each.
    double operator()(const Resize& op) const {
        if (op.kind == Interpolation::nearest) return 0;
        return count(output_shape(op)) * (op.depth == 0 ? 8 : 16);
    }
    // Two products, and the softmax of each pair that is seen.
    double operator()(const Attention& op) const { return pairs(op) * (2 * sizes(op) + 4); }
    double operator()(const LayerNorm& op) const { return 7 * count(output_shape(op)); }  // as BatchNorm
    double operator()(const Embedding& op) const {
        return ((op.positions > 0 ? 1 : 0) + (op.segments > 0 ? 1 : 0)) * count(output_shape(op));
    }
    double operator()(const EmbeddingBag& op) const {
        return static_cast<double>(op.samples * op.tables * (op.lookups - 1) * op.width);
    }
    double operator()(const Interaction& op) const {
        return static_cast<double>(op.vectors * (op.vectors - 1) * op.width);
    }
    // A comparison of each score for each choice.
    double operator()(const DispatchTokens& op) const {
        return static_cast<double>(op.routing.top * op.routing.tokens * op.routing.experts);
    }
    // The softmax of the scores, and a multiply-add of each choice's values.
    double operator()(const CombineTokens& op) const {
        const Routing& r = op.routing;
        return static_cast<double>(r.tokens * (4 * r.experts + 2 * r.top * r.width));
    }
    double operator()(const GroupedMatMul& op) const {
        return count(output_shape(op)) * (2 * static_cast<double>(op.k) + (op.bias ? 1 : 0));
    }
    double operator()(const auto&) const {
        return 0;
    }  // Input, Concat, ChannelPad, Flatten, updates, Communication, Unknown

    // Numbers of a key and of a value: multiply-adds of a pair.
    static double sizes(const Attention& op) { return static_cast<double>(op.head_size + value_size(op)); }
    // Of a query and a key that it sees, of all heads: a causal half is not computed.
    static double pairs(const Attention& op) {
        const auto queries = static_cast<double>(op.queries);
        const auto keys = static_cast<double>(op.keys);
        return static_cast<double>(op.heads) * (op.causal ? queries * (keys - (queries - 1) / 2) : queries * keys);
    }
};

struct BackwardData : general::BackwardData {
    using general::BackwardData::operator();
    double operator()(Conv op) const { return without_bias(op); }
    double operator()(ConvTranspose op) const { return without_bias(op); }
    static double without_bias(auto& op) {
        op.bias = false;
        return Forward{}(op);
    }
    double operator()(const MatMul& op) const {
        return Forward{}(MatMul{op.m, op.n, op.k, false}) + (op.activation ? count(output_shape(op)) : 0);
    }
    // Both gradients of its own; the shortcut's is the one that ReLU passes on.
    double operator()(const BatchNorm& op) const { return (11 + (op.relu ? 1 : 0)) * count(output_shape(op)); }
    double operator()(const Pool& op) const {
        return op.kind == PoolKind::max ? count(output_shape(op)) : Forward{}(op);
    }
    double operator()(const Lrn& op) const { return 2 * Forward{}(op); }
    double operator()(const Bias&) const { return 0; }  // a copy
    // Four products: dP = dO V^T, dV, dQ, dK. Computing P again instead of keeping it is the kernel's own affair.
    double operator()(const Attention& op) const { return Forward::pairs(op) * (4 * Forward::sizes(op) + 4); }
    double operator()(const LayerNorm& op) const { return 11 * count(output_shape(op)); }  // both gradients
    double operator()(const Interaction& op) const { return 2 * Forward{}(op); }
    double operator()(const DispatchTokens& op) const {
        return static_cast<double>(op.routing.top * op.routing.tokens * op.routing.width);
    }
    // Of a slot the gradient times the weight; of a weight the product of slot and gradient; the softmax's slope.
    double operator()(const CombineTokens& op) const {
        const Routing& r = op.routing;
        return static_cast<double>(r.tokens * (4 * r.experts + 3 * r.top * r.width));
    }
    double operator()(GroupedMatMul op) const { return without_bias(op); }
    double operator()(const auto& op) const { return Forward{}(op); }
};

struct BackwardWeights : general::BackwardWeights {
    using general::BackwardWeights::operator();
    double operator()(const MatMul& op) const {
        return Forward{}(MatMul{op.m, op.n, op.k, op.bias}) + (op.activation ? count(output_shape(op)) : 0);
    }
    double operator()(const auto& op) const { return Forward{}(op); }
};

// How many times a pass reads or writes the inputs' and the output's elements of one sample.
struct Traffic {
    double inputs = 0, output = 0;
};

// Training-mode batch normalization reads its input for the statistics, then again to normalize. Its gradient reads src
// and diff_dst twice each, and the output as often for the sign of a ReLU. With a shortcut the first reading leaves its
// gradient, and the second reads that instead of diff_dst and the output.
Traffic traffic(const BatchNorm& op, Pass pass) {
    if (pass == Pass::forward && op.parts > 1) return {1, 1};
    if (pass == Pass::forward) return {op.add ? 1.5 : 2.0, 1};  // the shortcut once: three readings of two inputs
    if (op.add) return {2.5, op.relu ? 2.0 : 1.0};              // src twice, diff_src of both, the shortcut's again
    return {3, op.relu ? 4.0 : 2.0};
}

Traffic traffic(const Op& op, Pass pass) {
    if (const auto* norm = std::get_if<BatchNorm>(&op)) return traffic(*norm, pass);
    if (std::holds_alternative<Communication>(op)) {
        // Its own piece: of src -> dst, or of diff_dst -> diff_src.
        return pass == Pass::forward ? Traffic{0, 2} : Traffic{2, 0};
    }
    if (pass == Pass::forward) return {1, keeps_slope(op) ? 2.0 : 1.0};
    if (has_fused_relu(op) || keeps_slope(op)) return {1, 2};  // diff_dst, and the output or the slope
    if (pass == Pass::backward_weights) return {1, 1};         // reads src and diff_dst
    if (std::holds_alternative<Lrn>(op)) return {2, 2};
    if (std::holds_alternative<Activation>(op)) return {2, 1};  // src, diff_dst -> diff_src
    if (std::holds_alternative<Dropout>(op)) return {1, 2};     // diff_dst, mask -> diff_src
    if (is_loss(op)) return {2, 0};
    if (std::holds_alternative<SoftmaxTerms>(op)) return {2, 2};
    if (std::holds_alternative<Attention>(op)) return {2, 2};    // src, dst, diff_dst -> diff_src
    if (std::holds_alternative<ChannelSums>(op)) return {2, 1};  // src, the sums' gradients -> diff_src
    if (std::holds_alternative<LayerNorm>(op)) return {2, 1};    // a row of src stays in cache
    if (std::holds_alternative<Interaction>(op) || std::holds_alternative<CombineTokens>(op)) return {2, 1};
    return {1, 1};  // diff_dst -> diff_src
}

// Of one parameter. SGD: v = mu v + g + wd w; w -= lr v. Adam: both moments (6), their corrections (2), root, epsilon
// and quotient (3), decay and step (4). LAMB: the same, the two norms (4), the ratio (1).
struct UpdateCost {
    double flops, elements;  // elements that cross the memory interface
};
constexpr UpdateCost sgd_cost{6, 5};  // reads weights, gradient and momentum, writes weights and momentum

UpdateCost update_cost(const Op& op) {
    if (std::holds_alternative<AdamUpdate>(op)) return {15, 7};  // reads w, g, m, v; writes w, m, v
    // The norms of a whole tensor come before its first step: w, m and v are read again.
    if (std::holds_alternative<LambUpdate>(op)) return {20, 10};
    return sgd_cost;
}

// Elements of a table's rows that one sample picks.
double picked(const Op& op) {
    if (const auto* bag = std::get_if<EmbeddingBag>(&op)) {
        return static_cast<double>(bag->samples * bag->tables * bag->lookups * bag->width);
    }
    return count(output_shape(op));
}

// Forward reads ids and the rows that they pick, and writes dst. The gradient reads ids and diff_dst, clears the whole
// of the weights' gradient, and adds to the rows picked; a direct update adds to the rows of the weights.
Bytes lookup_bytes(const Op& op, Pass pass, Bytes size, double batch) {
    const Bytes ids = Bytes{sizeof(std::int32_t) * batch * input_elements(op)};
    const double rows = batch * picked(op);
    const double dst = batch * count(output_shape(op));
    if (pass == Pass::forward) return ids + size * (rows + dst);
    const double cleared = updates_directly(op) ? 0 : static_cast<double>(parameters(op));
    return ids + size * (cleared + 2 * rows + dst);
}

}  // namespace

Flops flops(const Op& op, Pass pass, std::int64_t batch) {
    if (!has_pass(op, pass)) return Flops{0};
    if (const auto* shared = std::get_if<Shared>(&op)) return flops(shared->op->op, pass, batch);
    if (updated(op)) return Flops{update_cost(op).flops * static_cast<double>(*updated(op))};
    const auto samples = static_cast<double>(batch);
    switch (pass) {
        case Pass::forward:
            return Flops{samples * std::visit(Forward{}, op)};
        case Pass::backward_data:
            return Flops{samples * std::visit(BackwardData{}, op)};
        case Pass::backward_weights:
            // An embedding adds each row of diff_dst to a row of each table.
            if (const auto* table = std::get_if<Embedding>(&op)) {
                return Flops{samples * (std::visit(Forward{}, op) + static_cast<double>(table->tokens * table->width))};
            }
            if (std::holds_alternative<EmbeddingBag>(op)) {
                return Flops{samples * picked(op) * (updates_directly(op) ? 2 : 1)};
            }
            return Flops{samples * std::visit(BackwardWeights{}, op)};
        case Pass::update:
            return Flops{sgd_cost.flops * static_cast<double>(parameters(op))};
    }
    return Flops{0};
}

namespace {

// What attention keeps of its probabilities, of one sample: written forward, read backward.
Bytes kept_probabilities(const Op& op, Bytes size) {
    const auto* heads = std::get_if<Attention>(&op);
    if (heads == nullptr || !heads->kept) return Bytes{0};
    return (2.0 * size + Bytes{1}) * static_cast<double>(heads->heads * heads->queries * heads->keys);
}

}  // namespace

Bytes conversion_bytes(const Op& op, Pass pass, DataType type, std::int64_t batch) {
    if (type != DataType::fp8) return Bytes{0};
    const auto samples = static_cast<double>(batch);
    constexpr double turned = 2 + 1 + 1;  // read in 16 bits, written in 8 as it is and transposed
    if (pass == Pass::forward) return Bytes{turned * samples * input_elements(op)};
    return Bytes{pass == Pass::backward_data ? turned * samples * count(output_shape(op)) : 0};
}

Bytes bytes_moved(const Op& op, Pass pass, DataType type, std::int64_t batch) {
    if (!has_pass(op, pass)) return Bytes{0};
    if (const auto* shared = std::get_if<Shared>(&op)) return bytes_moved(shared->op->op, pass, type, batch);
    const Bytes size = size_of(type);
    if (pass == Pass::update) {
        const auto count_of = static_cast<double>(updated(op).value_or(parameters(op)));
        return size * (update_cost(op).elements * count_of);
    }
    if (const auto general = general::movements(op, pass)) {
        const double samples = general->inputs * input_elements(op) + general->output * count(output_shape(op));
        const double once = general->fixed + (general->weights ? static_cast<double>(weights_read(op)) : 0);
        return size * (static_cast<double>(batch) * samples + once);
    }
    const Traffic times = traffic(op, pass);
    const double samples = times.inputs * input_elements(op) + times.output * count(output_shape(op));
    if (reads_integers(op)) return lookup_bytes(op, pass, size, static_cast<double>(batch));
    const double weights_once = static_cast<double>(weights_read(op));  // read, or their gradient written
    return size * (static_cast<double>(batch) * samples + weights_once) +
           static_cast<double>(batch) * kept_probabilities(op, size) + conversion_bytes(op, pass, type, batch);
}

}  // namespace rehearse
