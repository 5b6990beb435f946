// SPDX-License-Identifier: Apache-2.0
#include "core/op.hpp"

#include <fmt/format.h>

#include <functional>
#include <numeric>

namespace rehearse {

std::int64_t elements(const Shape& shape) {
    return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>{});
}

std::string to_string(const Shape& shape) { return fmt::format("{}", fmt::join(shape, "x")); }

Bytes size_of(DataType type) { return Bytes{type == DataType::f32 ? 4.0 : 2.0}; }

std::string_view to_string(DataType type) {
    switch (type) {
        case DataType::f32:
            return "f32";
        case DataType::f16:
            return "f16";
        case DataType::bf16:
            return "bf16";
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

namespace {

struct Weights {
    std::vector<WeightTensor> operator()(const Conv2d& op) const {
        std::vector<WeightTensor> tensors{
            {"weights", {op.filters, op.channels / op.groups, op.window.kernel_h, op.window.kernel_w}}};
        if (op.bias) tensors.push_back({"bias", {op.filters}});
        return tensors;
    }
    std::vector<WeightTensor> operator()(const MatMul& op) const {
        std::vector<WeightTensor> tensors{{"weights", {op.k, op.n}}};
        if (op.bias) tensors.push_back({"bias", {op.n}});
        return tensors;
    }
    std::vector<WeightTensor> operator()(const BatchNorm& op) const {
        return {{"gamma", {op.channels}}, {"beta", {op.channels}}};
    }
    std::vector<WeightTensor> operator()(const Unknown& op) const {
        if (op.weight_elements == 0) return {};
        return {{"weights", {op.weight_elements}}};
    }
    std::vector<WeightTensor> operator()(const auto&) const { return {}; }
};

}  // namespace

std::vector<WeightTensor> weights(const Op& op) { return std::visit(Weights{}, op); }

std::int64_t parameters(const Op& op) {
    std::int64_t sum = 0;
    for (const WeightTensor& tensor : weights(op)) sum += elements(tensor.shape);
    return sum;
}

bool has_pass(const Op& op, Pass pass) {
    if (std::holds_alternative<Input>(op) || std::holds_alternative<Flatten>(op)) return false;
    if (std::holds_alternative<SgdUpdate>(op)) return pass == Pass::update;
    switch (pass) {
        case Pass::forward:
        case Pass::backward_data:
            return true;
        case Pass::backward_weights:
            return parameters(op) > 0 && !std::holds_alternative<BatchNorm>(op);
        case Pass::update:
            return parameters(op) > 0;
    }
    return false;
}

bool has_fused_relu(const Op& op) {
    if (const auto* conv = std::get_if<Conv2d>(&op)) return conv->relu;
    if (const auto* norm = std::get_if<BatchNorm>(&op)) return norm->relu;
    const auto* dense = std::get_if<MatMul>(&op);
    return dense != nullptr && dense->activation == Nonlinearity::relu;
}

bool keeps_slope(const Op& op) {
    const auto* dense = std::get_if<MatMul>(&op);
    return dense != nullptr && dense->activation == Nonlinearity::gelu;
}

}  // namespace rehearse
