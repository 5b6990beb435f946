// SPDX-License-Identifier: Apache-2.0
// Where the elements of general operators lie: a result's element, and those of the operands that it comes from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.hpp"

namespace rehearse::kernels::general {

/// Of each dimension of `to`, how many elements of an operand of shape `from` lie between two of its indices: 0 where
/// it is repeated. Shapes are aligned at their last dimensions; as many elements are the same elements, in their order.
/// InputError where they do not broadcast.
std::vector<std::int64_t> strides_in(const Shape& from, const Shape& to);
/// Of dense elements of `shape`.
std::vector<std::int64_t> strides_of(const Shape& shape);

/// Calls use(i, offset) for each element i of `shape`, in their order; offset = sum over dimensions of index * stride.
template <typename Use>
void for_each_place(const Shape& shape, std::span<const std::int64_t> strides, Use use) {
    std::vector<std::int64_t> index(shape.size(), 0);
    const std::int64_t count = elements(shape);
    std::int64_t offset = 0;
    for (std::int64_t i = 0; i < count; ++i) {
        use(i, offset);
        for (std::size_t d = shape.size(); d-- > 0;) {
            offset += strides[d];
            if (++index[d] < shape[d]) break;
            offset -= strides[d] * shape[d];
            index[d] = 0;
        }
    }
}
std::vector<std::int64_t> places_in(const Shape& from, const Shape& to);

/// One operand of an Elementwise in the function's order.
struct Operand {
    char kind = 'x';          // as Elementwise::order
    std::size_t number = 0;   // among its kind
    std::int64_t size = 1;    // elements; of an input, of one sample
    std::int64_t offset = 0;  // of a trainable tensor: where it begins in the weights
};
std::vector<Operand> operands_of(const Elementwise& op);

/// Of a Reduction: which element of the result each element of the input goes to.
std::vector<std::int64_t> reduced_places(const Reduction& op);
/// Whether Layer::given says where its values come from. A "pack" of rows with one number, so many heads, puts the same
/// second row beside the first one's part of each head.
bool is_told(const Rearrangement& op);
/// Of a Rearrangement: which element of the inputs, one after the other, each of the result is; -1: `fill`.
std::vector<std::int64_t> moved_places(const Rearrangement& op, std::span<const std::vector<std::int32_t>> chosen);

/// Of a stack of products: the matrices that each of the result's takes.
struct Pair {
    std::int64_t a, b;
};
std::vector<Pair> pairs_of(const BatchedMatMul& op);

/// Why this operator cannot be run, by its own sizes; empty where it can.
std::string why_not(const Op& op);

/// Values that a Recurrent keeps from forward to backward of each step, direction and hidden unit: its gates, and of an
/// LSTM the cell.
std::int64_t kept_values(const Recurrent& op);
/// Elements: {batch, steps, directions, kept_values, hidden}.
std::int64_t recurrent_workspace(const Recurrent& op, std::int64_t batch);

}  // namespace rehearse::kernels::general
