// SPDX-License-Identifier: Apache-2.0
// Floating-point operations and bytes of each operator and pass: what a roofline needs.
#include "core/op.hpp"

namespace rehearse {

namespace {

double count(const Shape& shape) { return static_cast<double>(elements(shape)); }

double input_elements(const Op& op) {
    double sum = 0;
    for (const Shape& shape : input_shapes(op)) sum += count(shape);
    return sum;
}

// Operations of one sample's forward pass.
struct Forward {
    double operator()(const Conv2d& op) const { return convolution(op); }
    double operator()(const Conv3d& op) const { return convolution(op); }
    // Every value of src meets every tap of its group's filters; those that would fall outside dst are counted too, as
    // a convolution counts its padding.
    double operator()(const ConvTranspose& op) const {
        const double taps = static_cast<double>(op.filters / op.groups * op.window.taps());
        return input_elements(op) * 2 * taps + (op.bias ? count(output_shape(op)) : 0);
    }
    static double convolution(const auto& op) {
        const double taps = static_cast<double>(op.channels / op.groups * op.window.taps());
        return count(output_shape(op)) * (2 * taps + (op.bias ? 1 : 0));
    }
    double operator()(const MatMul& op) const {
        return static_cast<double>(op.m * op.n) * (2 * static_cast<double>(op.k) + (op.bias ? 1 : 0));
    }
    double operator()(const Pool2d& op) const {
        return count(output_shape(op)) * static_cast<double>(op.window.taps());
    }
    // Mean and variance (3 an element), then normalize, scale and shift (4).
    double operator()(const BatchNorm& op) const { return 7 * count(output_shape(op)); }
    // Square, a running sum over the channels, power, divide.
    double operator()(const Lrn& op) const { return 6 * count(output_shape(op)); }
    double operator()(const Activation& op) const { return (op.kind == Nonlinearity::relu ? 1 : 8) * count(op.shape); }
    double operator()(const Add& op) const { return static_cast<double>(op.inputs - 1) * count(op.shape); }
    double operator()(const Dropout& op) const { return count(op.shape); }
    double operator()(const Bias& op) const { return count(op.shape); }
    double operator()(const Softmax& op) const { return 4 * static_cast<double>(op.classes); }
    double operator()(const SoftmaxLoss& op) const { return 4 * input_elements(op); }
    // A linear combination of two pixels a dimension: a multiply-add each.
    double operator()(const Resize& op) const {
        if (op.kind == Interpolation::nearest) return 0;
        return count(output_shape(op)) * (op.depth == 0 ? 8 : 16);
    }
    double operator()(const auto&) const { return 0; }  // Input, Concat, ChannelPad, Flatten, SgdUpdate, Communication, Unknown
};

struct BackwardData {
    double operator()(Conv2d op) const { return without_bias(op); }
    double operator()(Conv3d op) const { return without_bias(op); }
    double operator()(ConvTranspose op) const { return without_bias(op); }
    static double without_bias(auto& op) {
        op.bias = false;
        return Forward{}(op);
    }
    double operator()(const MatMul& op) const { return Forward{}(MatMul{op.m, op.n, op.k, false}); }
    double operator()(const BatchNorm& op) const { return 11 * count(output_shape(op)); }  // both gradients
    double operator()(const Pool2d& op) const {
        return op.kind == PoolKind::max ? count(output_shape(op)) : Forward{}(op);
    }
    double operator()(const Lrn& op) const { return 2 * Forward{}(op); }
    double operator()(const Bias&) const { return 0; }  // a copy
    double operator()(const auto& op) const { return Forward{}(op); }
};

// How many times a pass reads or writes the inputs' and the output's elements of one sample.
struct Traffic {
    double inputs = 0, output = 0;
};

Traffic traffic(const Op& op, Pass pass) {
    if (pass == Pass::forward) {
        if (std::holds_alternative<Communication>(op)) return {0, 2};  // its own piece of src -> dst
        // Training-mode batch normalization reads its input for the statistics, then again to normalize.
        return {std::holds_alternative<BatchNorm>(op) ? 2.0 : 1.0, 1};
    }
    if (pass == Pass::backward_weights) return {1, 1};             // reads src and diff_dst
    if (std::holds_alternative<BatchNorm>(op)) return {3, 2};      // src and diff_dst twice each, diff_src once
    if (std::holds_alternative<Communication>(op)) return {2, 0};  // its own piece of diff_dst -> diff_src
    if (std::holds_alternative<Lrn>(op)) return {2, 2};
    if (std::holds_alternative<Activation>(op)) return {2, 1};  // src, diff_dst -> diff_src
    if (std::holds_alternative<Dropout>(op)) return {1, 2};     // diff_dst, mask -> diff_src
    if (std::holds_alternative<SoftmaxLoss>(op)) return {2, 0};
    return {1, 1};  // diff_dst -> diff_src
}

}  // namespace

Flops flops(const Op& op, Pass pass, std::int64_t batch) {
    if (!has_pass(op, pass)) return Flops{0};
    // v = mu v + g + wd w; w -= lr v: six operations a parameter.
    if (const auto* sgd = std::get_if<SgdUpdate>(&op)) return Flops{6 * static_cast<double>(sgd->count)};
    const auto samples = static_cast<double>(batch);
    switch (pass) {
        case Pass::forward:
            return Flops{samples * std::visit(Forward{}, op)};
        case Pass::backward_data:
            return Flops{samples * std::visit(BackwardData{}, op)};
        case Pass::backward_weights:
            return Flops{samples * std::visit(Forward{}, op)};
        case Pass::update:
            return Flops{6 * static_cast<double>(parameters(op))};
    }
    return Flops{0};
}

Bytes bytes_moved(const Op& op, Pass pass, DataType type, std::int64_t batch) {
    if (!has_pass(op, pass)) return Bytes{0};
    const Bytes size = size_of(type);
    if (pass == Pass::update) {
        const auto* sgd = std::get_if<SgdUpdate>(&op);
        // Reads weights, gradient and momentum, writes weights and momentum.
        return size * (5 * static_cast<double>(sgd != nullptr ? sgd->count : parameters(op)));
    }
    const Traffic times = traffic(op, pass);
    const double samples = times.inputs * input_elements(op) + times.output * count(output_shape(op));
    const double weights_once = static_cast<double>(parameters(op));  // read, or their gradient written
    return size * (static_cast<double>(batch) * samples + weights_once);
}

}  // namespace rehearse
