// SPDX-License-Identifier: Apache-2.0
#include "core/op.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/op_general_visitors.hpp"

namespace rehearse {

Op::Op() = default;
Op::Op(const Op&) = default;
Op::Op(Op&&) noexcept = default;
Op& Op::operator=(const Op&) = default;
Op& Op::operator=(Op&&) noexcept = default;
Op::~Op() = default;

// A damaged file may claim more than 64 bits hold: then it is the largest number, which every limit refuses.
std::int64_t elements(const Shape& shape) {
    if (std::ranges::find(shape, 0) != shape.end()) return 0;
    std::int64_t product = 1;
    for (const std::int64_t size : shape) {
        if (__builtin_mul_overflow(product, size, &product)) return std::numeric_limits<std::int64_t>::max();
    }
    return product;
}

std::string to_string(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

Shape image_shape(std::int64_t channels, std::int64_t depth, std::int64_t height, std::int64_t width) {
    return depth == 0 ? Shape{channels, height, width} : Shape{channels, depth, height, width};
}

Bytes size_of(DataType type) {
    if (type == DataType::fp8) return Bytes{1};
    return Bytes{type == DataType::f32 || type == DataType::tf32 ? 4.0 : 2.0};
}

std::string_view to_string(DataType type) {
    switch (type) {
        case DataType::f32:
            return "f32";
        case DataType::f16:
            return "f16";
        case DataType::bf16:
            return "bf16";
        case DataType::tf32:
            return "tf32";
        case DataType::fp8:
            return "fp8";
    }
    return "?";
}

std::string_view to_string(Pass pass) {
    switch (pass) {
        case Pass::forward:
            return "forward";
        case Pass::backward_data:
            return "backward_data";
        case Pass::backward_weights:
            return "backward_weights";
        case Pass::update:
            return "update";
    }
    return "?";
}

std::string_view to_string(Movement movement) {
    switch (movement) {
        case Movement::sum:
            return "sum";
        case Movement::copy:
            return "copy";
        case Movement::gather:
            return "gather";
        case Movement::slice:
            return "slice";
        case Movement::reduce_scatter:
            return "scatter";
        case Movement::all_gather:
            return "spread";
        case Movement::send:
            return "send";
        case Movement::receive:
            return "receive";
        case Movement::halo:
            return "halo";
        case Movement::all_to_all:
            return "exchange";
    }
    return "?";
}

Conv as_volume(Conv op) {
    op.depth = std::max<std::int64_t>(op.depth, 1);
    return op;
}

Conv mirrored(const ConvTranspose& op) {
    const Shape out = output_shape(Op{op});
    return {.channels = op.filters,
            .height = out[out.size() - 2],
            .width = out.back(),
            .filters = op.channels,
            .window = op.window,
            .groups = op.groups,
            .depth = op.depth == 0 ? 0 : out[1]};
}

Conv conv3d(std::int64_t channels, std::int64_t depth, std::int64_t height, std::int64_t width, std::int64_t filters,
            const Window& window, std::int64_t groups, bool bias) {
    return {channels, height, width, filters, window, groups, bias, false, depth};
}

const Conv* as_conv2d(const Op& op) {
    const auto* conv = std::get_if<Conv>(&op);
    return conv != nullptr && conv->depth == 0 ? conv : nullptr;
}

bool is_convolution(const Op& op) {
    return std::holds_alternative<Conv>(op) || std::holds_alternative<ConvTranspose>(op);
}

std::int64_t parameters(const Op& op) {
    std::int64_t sum = 0;
    for (const WeightTensor& tensor : weights(op)) {
        // As of elements(): more than 64 bits hold is the largest number.
        if (__builtin_add_overflow(sum, elements(tensor.shape), &sum)) return std::numeric_limits<std::int64_t>::max();
    }
    return sum;
}

std::int64_t weights_read(const Op& op) {
    const auto* dense = std::get_if<MatMul>(&op);
    if (const auto* shared = std::get_if<Shared>(&op)) return parameters(shared->op->op);
    return parameters(op) + (dense != nullptr && dense->tied ? dense->n * dense->k : 0);
}

std::optional<std::int64_t> updated(const Op& op) {
    if (const auto* sgd = std::get_if<SgdUpdate>(&op)) return sgd->count;
    if (const auto* adam = std::get_if<AdamUpdate>(&op)) return adam->count;
    if (const auto* lamb = std::get_if<LambUpdate>(&op)) return lamb->count;
    return std::nullopt;
}

bool reads_integers(const Op& op) {
    const Op& all = computed(op);
    return std::holds_alternative<Embedding>(all) || std::holds_alternative<EmbeddingBag>(all);
}

bool updates_directly(const Op& op) {
    const auto* bag = std::get_if<EmbeddingBag>(&op);
    return bag != nullptr && bag->direct;
}

std::int64_t rows_of_expert(const GroupedMatMul& op, std::int64_t batch) {
    return std::max<std::int64_t>(1, op.sources * op.rows * batch / op.group);
}

std::int64_t routing_group(const Op& op) {
    if (const auto* dispatch = std::get_if<DispatchTokens>(&op)) return dispatch->routing.group;
    if (const auto* combine = std::get_if<CombineTokens>(&op)) return combine->routing.group;
    const auto* grouped = std::get_if<GroupedMatMul>(&op);
    return grouped == nullptr ? 1 : grouped->group;
}

bool is_loss(const Op& op) { return std::holds_alternative<SoftmaxLoss>(op) || std::holds_alternative<TermsLoss>(op); }

bool gradients_together(const Op& op) {
    const Op& all = computed(op);
    return std::holds_alternative<BatchNorm>(all) || std::holds_alternative<LayerNorm>(all) ||
           std::holds_alternative<Normalization>(all);
}

bool has_pass(const Op& op, Pass pass) {
    if (std::holds_alternative<Input>(op) || std::holds_alternative<Flatten>(op)) return false;
    if (const auto* communication = std::get_if<Communication>(&op)) {
        return (communication->movement == Movement::slice && pass == Pass::forward) ||
               (communication->movement == Movement::gather && pass == Pass::backward_data);
    }
    if (updated(op)) return pass == Pass::update;
    switch (pass) {
        case Pass::forward:
            return true;
        case Pass::backward_data:
            return !reads_integers(op) && general::has_gradient(op, pass);
        case Pass::backward_weights:
            return weights_read(op) > 0 && !gradients_together(op) && general::has_gradient(op, pass);
        case Pass::update:
            return parameters(op) > 0;
    }
    return false;
}

bool has_fused_relu(const Op& op) {
    if (const auto* conv = std::get_if<Conv>(&op)) return conv->relu;
    if (const auto* norm = std::get_if<BatchNorm>(&op)) return norm->relu;
    const auto* dense = std::get_if<MatMul>(&op);
    return dense != nullptr && dense->activation == Nonlinearity::relu;
}

bool keeps_slope(const Op& op) {
    const auto* dense = std::get_if<MatMul>(&op);
    return dense != nullptr && dense->activation == Nonlinearity::gelu;
}

}  // namespace rehearse
