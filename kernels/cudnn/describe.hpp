// SPDX-License-Identifier: Apache-2.0
// What cuDNN and cuBLAS are told of a problem, as plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "core/op.hpp"
#include "kernels/backend.hpp"

namespace rehearse::kernels::cudnn {

struct Described {
    std::vector<std::int64_t> sizes, strides;  // outermost first; strides in elements
};

/// A cross-correlation over 2 or 3 dimensions of space: y[n, f, p] = sum over channels c of f's group and taps t of
/// x[n, c, p * stride + t * dilation - before] w[f, c, t], as cuDNN's graph API defines it. Groups are how often w's
/// channels fit into x's.
struct Correlation {
    Described x, w, y;
    std::vector<std::int64_t> before, after, stride, dilation;  // padding on each side, of each dimension
};
/// Of a Conv without its bias; `channels_last`: all three lie so (kernels/channels_last.hpp), their dimensions are
/// named in the same order.
Correlation correlation(const Op& op, std::int64_t batch, bool channels_last);

/// A normalization as cuDNN's graph API defines it, all in training: y = gamma (x - mean) / sqrt(variance + epsilon) +
/// beta. Mean and variance are over all dimensions that are 1 in `statistics`, gamma and beta are of the dimensions
/// that `parameters` has. `by_layer`: of each row by itself, else of each channel.
struct Normalized {
    Described x, parameters, statistics;
    bool by_layer = false;
    double epsilon = 0;
    std::int64_t parameter_count() const { return parameters.sizes[1]; }
    std::int64_t statistic_count() const { return by_layer ? statistics.sizes[0] : statistics.sizes[1]; }
};
/// Of a BatchNorm or a LayerNorm without what is fused with it; `channels_last`: of a BatchNorm.
Normalized normalized(const Op& op, std::int64_t batch, bool channels_last);

/// Which of a pass's matrices is a factor.
enum class Factor { src, weights, diff_dst };

/// What a product does with the layer's bias beside: nothing, adds it {m} to each column of C, or makes its gradient
/// {m}, the sums of A's rows over k.
enum class BiasPart { none, added, summed };

/// C {m, n} = A {m, k} B {k, n}, all column after column as BLAS has them, A and B transposed where they say so.
struct Product {
    Factor a = Factor::weights, b = Factor::src;
    bool transpose_a = false, transpose_b = false;
    std::int64_t m = 1, n = 1, k = 1;
    std::int64_t row_a = 1, row_b = 1, row_c = 1;  // elements from one column to the next
    BiasPart bias = BiasPart::none;
};
/// Of a dense layer: C is dst, diff_src or diff_weights.
Product product(const MatMul& op, Pass pass, std::int64_t batch);
const void* factor(Factor which, const Buffers& buffers);
void* result(Pass pass, const Buffers& buffers);

}  // namespace rehearse::kernels::cudnn
