// SPDX-License-Identifier: Apache-2.0
// dst {rows, n} = src {rows, k} x weights {k, n} + bias {n}; rows are batch * m. Threads share the longer side of the
// result.
#include "kernels/cpu/matmul.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/gemm.hpp"
#include "kernels/cpu/half.hpp"

namespace rehearse::kernels::cpu {
namespace {

GemmShape shape_of(const MatMul& op, Pass pass, std::int64_t rows) {
    if (pass == Pass::backward_weights && op.tied) return {op.n, op.k, rows};
    if (pass == Pass::forward) return {rows, op.n, op.k};
    if (pass == Pass::backward_data) return {rows, op.k, op.n};
    return {op.k, op.n, rows};
}

class Product final : public CheckedKernel {
public:
    explicit Product(const Problem& problem)
        : CheckedKernel(problem),
          op_(std::get<MatMul>(problem.op)),
          pass_(problem.pass),
          rows_(problem.batch * op_.m),
          shape_(shape_of(op_, pass_, rows_)) {
        const std::int64_t longer = std::max(shape_.m, shape_.n);
        piece_ = whole_lines(divide_up(longer, threads()));
        pieces_ = divide_up(longer, piece_);
        workspace_ = whole_lines(gemm_workspace(part(0)));
        reserve(pieces_ * workspace_);
    }

private:
    GemmShape part(std::int64_t index) const {
        const bool by_rows = shape_.m >= shape_.n;
        const std::int64_t longer = by_rows ? shape_.m : shape_.n;
        const std::int64_t size = std::min(piece_, longer - index * piece_);
        return by_rows ? GemmShape{size, shape_.n, shape_.k} : GemmShape{shape_.m, size, shape_.k};
    }

    void compute(const Buffers& b, float* scratch) override {
        const float* weights = b.weights.data();
        // {k, n} however it lies, and its transpose.
        const MatrixView normal = op_.tied ? MatrixView{weights, 1, op_.k} : MatrixView{weights, op_.n, 1};
        const MatrixView transposed{weights, normal.column, normal.row};
        if (pass_ == Pass::forward) {
            for (std::int64_t i = 0; op_.bias && i < rows_; ++i) {
                std::copy_n(weights + op_.k * op_.n, op_.n, b.dst.data() + i * op_.n);
            }
            multiply({b.src[0].data(), op_.k, 1}, normal, b.dst.data(), op_.bias, scratch);
        } else if (pass_ == Pass::backward_data) {
            multiply({b.diff_dst.data(), op_.n, 1}, transposed, b.diff_src[0].data(), false, scratch);
        } else if (op_.tied) {
            multiply({b.diff_dst.data(), 1, op_.n}, {b.src[0].data(), op_.k, 1}, b.diff_weights.data(), false, scratch);
        } else {
            multiply({b.src[0].data(), 1, op_.k}, {b.diff_dst.data(), op_.n, 1}, b.diff_weights.data(), false, scratch);
            if (op_.bias) sum_rows(b.diff_dst.data(), b.diff_weights.data() + op_.k * op_.n);
        }
    }

    void multiply(MatrixView a, MatrixView b, float* c, bool accumulate, float* scratch) const {
        const bool by_rows = shape_.m >= shape_.n;
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < pieces_; ++i) {
            const std::int64_t first = i * piece_;
            const MatrixView a_part{by_rows ? a.data + first * a.row : a.data, a.row, a.column};
            const MatrixView b_part{by_rows ? b.data : b.data + first * b.column, b.row, b.column};
            gemm(part(i), a_part, b_part, by_rows ? c + first * shape_.n : c + first, shape_.n, accumulate,
                 scratch + i * workspace_);
        }
    }

    void sum_rows(const float* diff_dst, float* diff_bias) const {
        std::fill_n(diff_bias, op_.n, 0.0F);
        for (std::int64_t i = 0; i < rows_; ++i) {
            for (std::int64_t j = 0; j < op_.n; ++j) diff_bias[j] += diff_dst[i * op_.n + j];
        }
    }

    MatMul op_;
    Pass pass_;
    std::int64_t rows_;
    GemmShape shape_;
    std::int64_t piece_ = 0, pieces_ = 0, workspace_ = 0;
};

class Gemm final : public Algorithm {
public:
    std::string_view algorithm() const override { return "gemm"; }

private:
    std::string refusal(const Problem& problem) const override {
        if (std::holds_alternative<MatMul>(problem.op)) return {};
        return fmt::format("gemm runs matmul, not {}", kind_of(problem.op));
    }

    std::unique_ptr<Kernel> make(const Problem& problem) const override { return std::make_unique<Product>(problem); }

    std::unique_ptr<Kernel> make_half(const Problem& problem) const override {
        const HalfSimd* const simd = problem.type == DataType::bf16 ? native_bf16() : nullptr;
        return simd == nullptr ? nullptr : half_product(problem, *simd);
    }
};

}  // namespace

const Backend& matmul() {
    static const Gemm gemm;
    return gemm;
}

}  // namespace rehearse::kernels::cpu
