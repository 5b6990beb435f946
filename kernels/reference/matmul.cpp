// SPDX-License-Identifier: Apache-2.0
// dst {rows, n} = src {rows, k} x weights {k, n} + bias {n}; rows are batch * m. Tied weights are {n, k}.
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

std::int64_t weight_at(const MatMul& op, std::int64_t l, std::int64_t j) {
    return op.tied ? j * op.k + l : l * op.n + j;
}

void forward(const MatMul& op, std::int64_t rows, const Buffers& b) {
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < op.n; ++j) {
            double sum = op.bias ? b.weights[op.k * op.n + j] : 0.0;
            for (std::int64_t l = 0; l < op.k; ++l) {
                sum += static_cast<double>(b.src[0][i * op.k + l]) * b.weights[weight_at(op, l, j)];
            }
            b.dst[i * op.n + j] = static_cast<float>(op.activation ? value(*op.activation, sum) : sum);
            if (keeps_slope(op)) b.workspace[i * op.n + j] = static_cast<float>(slope(*op.activation, sum));
        }
    }
}

// The gradient of what the activation was given, or diff_dst itself.
float diff_at(const MatMul& op, const Buffers& b, std::int64_t i) {
    if (op.activation == Nonlinearity::relu) return b.dst_in[i] > 0 ? b.diff_dst[i] : 0;
    return keeps_slope(op) ? b.workspace[i] * b.diff_dst[i] : b.diff_dst[i];
}

void backward_data(const MatMul& op, std::int64_t rows, const Buffers& b) {
    if (b.diff_src[0].empty()) return;
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t l = 0; l < op.k; ++l) {
            double sum = 0;
            for (std::int64_t j = 0; j < op.n; ++j) {
                sum += static_cast<double>(diff_at(op, b, i * op.n + j)) * b.weights[weight_at(op, l, j)];
            }
            b.diff_src[0][i * op.k + l] = static_cast<float>(sum);
        }
    }
}

void backward_weights(const MatMul& op, std::int64_t rows, const Buffers& b) {
    for (std::int64_t l = 0; l < op.k; ++l) {
        for (std::int64_t j = 0; j < op.n; ++j) {
            double sum = 0;
            for (std::int64_t i = 0; i < rows; ++i) {
                sum += static_cast<double>(b.src[0][i * op.k + l]) * diff_at(op, b, i * op.n + j);
            }
            b.diff_weights[weight_at(op, l, j)] = static_cast<float>(sum);
        }
    }
    for (std::int64_t j = 0; op.bias && j < op.n; ++j) {
        double sum = 0;
        for (std::int64_t i = 0; i < rows; ++i) sum += diff_at(op, b, i * op.n + j);
        b.diff_weights[op.k * op.n + j] = static_cast<float>(sum);
    }
}

}  // namespace

void run(const MatMul& op, Pass pass, std::int64_t batch, const Buffers& buffers) {
    const std::int64_t rows = batch * op.m;
    if (pass == Pass::forward) forward(op, rows, buffers);
    if (pass == Pass::backward_data) backward_data(op, rows, buffers);
    if (pass == Pass::backward_weights) backward_weights(op, rows, buffers);
}

}  // namespace rehearse::kernels::reference
