// SPDX-License-Identifier: Apache-2.0
// Products of a few rows with a large matrix: a dense layer on a small batch. Each number of the matrix is used for at
// most 16 multiply-adds, so that what counts is to stream it from memory once, as it lies: nothing is packed.
#pragma once

#include <cstdint>

namespace rehearse::kernels::cpu {

/// Rows from which on packing the matrix (gemm.hpp) is worth it.
constexpr std::int64_t most_skinny_rows = 16;

/// The part of a product that one thread computes; all matrices are row-major, `rows` at most most_skinny_rows.
struct SkinnyGemm {
    std::int64_t rows = 1, n = 1, k = 1;  // of the whole product
    std::int64_t first = 0, count = 0;    // columns of `dst` or `diff_src`, rows of `diff_weights`
};

/// dst {rows, n} = src {rows, k} x weights {k, n}, or is added to; columns first, first + 1, ...
void skinny_forward(const SkinnyGemm& part, const float* src, const float* weights, float* dst, bool accumulate);

/// diff_src {rows, k} = diff_dst {rows, n} x weights^T; columns first, ... of diff_src: rows of the weights.
void skinny_backward_data(const SkinnyGemm& part, const float* diff_dst, const float* weights, float* diff_src);

/// diff_weights {k, n} = src^T {k, rows} x diff_dst {rows, n}; rows first, ... of diff_weights.
void skinny_backward_weights(const SkinnyGemm& part, const float* src, const float* diff_dst, float* diff_weights);

}  // namespace rehearse::kernels::cpu
