// SPDX-License-Identifier: Apache-2.0
// Where the rows of one head lie, in three tensors or in one that is packed: what every backend's attention agrees on.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "core/op.hpp"

namespace rehearse::kernels {

enum class Part { q, k, v };

/// Row t of a part of one head begins at data + t * row and has head_size numbers. `data` is null where the caller left
/// the tensor out.
template <typename T>
struct HeadRows {
    T* data = nullptr;
    std::int64_t row = 0;
};

/// Of `tensors` = {q, k, v} or, packed, {qkv}: src or diff_src.
template <typename T, typename Tensors>
HeadRows<T> rows_of_head(const Attention& op, const Tensors& tensors, Part part, std::int64_t sample,
                         std::int64_t head) {
    const std::int64_t widths[] = {query_width(op), key_width(op), value_width(op)};
    const auto at = static_cast<std::size_t>(part);
    const std::int64_t rows = part == Part::q ? op.queries : op.keys;
    const std::int64_t stride = op.packed ? widths[0] + widths[1] + widths[2] : widths[at];
    const std::int64_t offset = !op.packed || part == Part::q ? 0 : part == Part::k ? widths[0] : widths[0] + widths[1];
    const std::span<T> tensor = tensors[op.packed ? 0 : at];
    if (tensor.empty()) return {};
    const std::int64_t own = part == Part::q ? head : head / (op.heads / key_heads(op));
    const std::int64_t size = part == Part::v ? value_size(op) : op.head_size;
    return {tensor.data() + sample * rows * stride + offset + own * size, stride};
}

/// Of dst, dst_in and diff_dst: as q is in a tensor of its own.
template <typename T>
HeadRows<T> rows_of_result(const Attention& op, std::span<T> tensor, std::int64_t sample, std::int64_t head) {
    const std::int64_t width = result_width(op);
    return {tensor.data() + sample * op.queries * width + head * value_size(op), width};
}

/// Keys that query `i` sees.
inline std::int64_t keys_seen(const Attention& op, std::int64_t i) {
    return op.causal ? i + 1 + op.keys - op.queries : op.keys;
}

inline double score_scale(const Attention& op) { return 1 / std::sqrt(static_cast<double>(op.head_size)); }

/// Heads that share keys and values, or values of another size than keys: what only the reference attends with.
inline bool has_own_keys(const Attention& op) { return key_heads(op) == op.heads && value_size(op) == op.head_size; }

/// What forward keeps for backward: the logarithm of the sum of exponentials of each {sample, head, query}.
inline std::int64_t attention_workspace(const Attention& op, std::int64_t batch) {
    return batch * op.heads * op.queries;
}

/// Mean and biased variance, each {batch * rows}, as BatchNorm keeps them.
inline std::int64_t layer_norm_workspace(const LayerNorm& op, std::int64_t batch) { return 2 * batch * op.rows; }

inline constexpr double layer_norm_epsilon = 1e-5;  // PyTorch's and ONNX's default; BERT's own code has 1e-12

}  // namespace rehearse::kernels
