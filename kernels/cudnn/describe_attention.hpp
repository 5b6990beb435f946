// SPDX-License-Identifier: Apache-2.0
// Attention as a graph of operations, as cuDNN's graph API takes them, in plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "core/op.hpp"
#include "kernels/cudnn/describe.hpp"

namespace rehearse::kernels::cudnn {

/// `element` is the problem's type.
enum class Number { f32, element, index, truth };

/// Where a tensor's memory comes from: nowhere (cuDNN keeps it to itself), a number of the host, a buffer.
enum class Kept { nowhere, scale, lowest, q, k, v, dst, diff_dst, log_sums, diff_q, diff_k, diff_v };

struct GraphTensor {
    Described shape;
    Number number = Number::f32;
    Kept kept = Kept::nowhere;
};

/// product: to = from other, over the last two dimensions. times to over: element by element, a dimension of 1 stands
/// for all. largest, total: over the dimensions that are 1 in `to`. row, column: the index itself. chosen: where `mask`
/// is true `from`, else `other`. rounded: to the type of `to`. relaid: the same memory, seen with other strides.
enum class Action {
    product,
    times,
    minus,
    over,
    plus,
    exponential,
    logarithm,
    rounded,
    largest,
    total,
    row,
    column,
    at_least,
    chosen,
    relaid
};

/// Of tensors, by their index; -1: none.
struct GraphNode {
    Action action = Action::product;
    int from = -1, other = -1, mask = -1, to = -1;
};

struct AttentionGraph {
    std::vector<GraphTensor> tensors;
    std::vector<GraphNode> nodes;  // in an order in which they can be computed
};

/// Tensors are {sample, head, row, element}, with the strides that they have in the problem's buffers. forward: scores
/// S = scale Q K^T, P = softmax(S), dst = P V, log_sums = log sum exp S. backward (Dao et al. 2022, section 3.1 and
/// appendix B.2): P = exp(S - log_sums), dV = P^T dO, dS = P (dO V^T - rows of dO dst), dQ = scale dS K, dK = scale
/// dS^T Q. Causal attention has as many keys as queries.
AttentionGraph attention_graph(const Attention& op, Pass pass, std::int64_t batch);

/// Elements from the beginning of its buffer: parts of a packed one lie beside each other.
std::int64_t first_element(const Attention& op, Kept kept);

}  // namespace rehearse::kernels::cudnn
