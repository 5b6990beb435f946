// SPDX-License-Identifier: Apache-2.0
#include "core/precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse {

namespace {

using enum DataType;

constexpr std::array table{
    PrecisionTypes{Precision::fp32, "fp32", f32, f32, f32, f32, "all in f32"},
    PrecisionTypes{Precision::tf32, "tf32", tf32, f32, f32, f32, "fp32 whose products are TF32 (tensor cores)"},
    PrecisionTypes{Precision::fp16, "fp16", f16, f16, f16, f16, "all in f16"},
    PrecisionTypes{Precision::pure_bf16, "pure-bf16", bf16, bf16, bf16, bf16, "all in bf16"},
    PrecisionTypes{Precision::mixed, "mixed", f16, f16, f16, f32, "f16 with f16 gradients, f32 master weights"},
    PrecisionTypes{Precision::mixed_bf16, "mixed-bf16", bf16, bf16, bf16, f32,
                   "bf16 with bf16 gradients, f32 master weights"},
    PrecisionTypes{Precision::autocast, "autocast", f16, f16, f32, f32, "f16 with f32 gradients and master weights"},
    PrecisionTypes{Precision::bf16, "bf16", bf16, bf16, f32, f32, "bf16 with f32 gradients and master weights"},
    PrecisionTypes{Precision::fp8, "fp8", fp8, bf16, f32, f32, "bf16 whose dense layers' products are FP8"},
};

bool is_multiple_of_16(std::int64_t k, std::int64_t n) { return k % 16 == 0 && n % 16 == 0; }

bool is_fp8_product(const Op& op) {
    const auto* dense = std::get_if<MatMul>(&op);
    if (dense != nullptr) return !dense->tied && is_multiple_of_16(dense->k, dense->n);
    const auto* experts = std::get_if<GroupedMatMul>(&op);
    return experts != nullptr && is_multiple_of_16(experts->k, experts->n);
}

// What libraries multiply in blocks: a recurrent layer's steps, stacks of products and the pairs of an interaction are
// products too (cuDNN's recurrent layers and torch.bmm go by the same allow_tf32 as convolutions and dense layers).
bool is_product(const Op& op) {
    return is_convolution(op) || std::holds_alternative<MatMul>(op) || std::holds_alternative<GroupedMatMul>(op) ||
           std::holds_alternative<Attention>(op) || std::holds_alternative<Recurrent>(op) ||
           std::holds_alternative<BatchedMatMul>(op) || std::holds_alternative<Interaction>(op);
}

}  // namespace

std::span<const PrecisionTypes> precisions() { return table; }

const PrecisionTypes& types_of(Precision precision) {
    const auto found = std::ranges::find(table, precision, &PrecisionTypes::precision);
    require(found != table.end(), "a row of each precision");
    return *found;
}

namespace {

std::vector<std::string_view> names() {
    std::vector<std::string_view> all;
    for (const PrecisionTypes& row : table) all.push_back(row.name);
    return all;
}

}  // namespace

Precision parse_precision(std::string_view name) {
    const auto found = std::ranges::find(table, name, &PrecisionTypes::name);
    if (found != table.end()) return found->precision;
    throw InputError(
        fmt::format("precision '{}' is not one of {}{}", name, join(names()), did_you_mean(name, names())));
}

DataType compute_type(Precision precision) { return types_of(precision).compute; }
DataType wire_type(Precision precision) { return types_of(precision).gradient; }
DataType update_type(Precision precision) { return types_of(precision).update; }

DataType compute_type(Precision precision, const Op& op) {
    if (is_loss(op)) return DataType::f32;
    const PrecisionTypes& types = types_of(precision);
    const bool product = types.product == DataType::fp8 ? is_fp8_product(op) : is_product(op);
    return product ? types.product : types.compute;
}

bool scales_loss(Precision precision) { return compute_type(precision) == DataType::f16; }

std::int64_t operand_bytes(Precision precision, const Op& op) {
    return compute_type(precision, op) == DataType::fp8 ? 2 * parameters(op) : 0;
}

}  // namespace rehearse
