// SPDX-License-Identifier: Apache-2.0
// dst {rows, n} = src {rows, k} x weights {k, n} + bias {n}; rows are batch * m. Threads share the longer side of the
// result. A fused activation follows the product of each piece; its slope goes into a copy of diff_dst first.
#include "kernels/cpu/gemm/matmul.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/gemm/epilogue.hpp"
#include "kernels/cpu/gemm/gemm.hpp"
#include "kernels/cpu/gemm/skinny.hpp"
#include "kernels/cpu/half/half.hpp"
#include "kernels/cpu/share.hpp"

namespace rehearse::kernels::cpu {
namespace {

GemmShape shape_of(const MatMul& op, Pass pass, std::int64_t rows) {
    if (pass == Pass::backward_weights && op.tied) return {op.n, op.k, rows};
    if (pass == Pass::forward) return {rows, op.n, op.k};
    if (pass == Pass::backward_data) return {rows, op.k, op.n};
    return {op.k, op.n, rows};
}

// dst {rows, n} += bias {n}, of a dst that is written first.
void copy_bias(const MatMul& op, std::int64_t rows, const float* weights, float* dst) {
    for (std::int64_t i = 0; op.bias && i < rows; ++i) std::copy_n(weights + op.k * op.n, op.n, dst + i * op.n);
}

void sum_rows(std::int64_t rows, std::int64_t n, const float* diff_dst, float* diff_bias) {
    std::fill_n(diff_bias, n, 0.0F);
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < n; ++j) diff_bias[j] += diff_dst[i * n + j];
    }
}

// So few rows that the weights are read as they lie.
class SkinnyProduct final : public CheckedKernel {
public:
    explicit SkinnyProduct(const Problem& problem)
        : CheckedKernel(problem),
          op_(std::get<MatMul>(problem.op)),
          pass_(problem.pass),
          rows_(problem.batch * op_.m) {}

private:
    void compute(const Buffers& b, float* /*scratch*/) override {
        if (pass_ == Pass::forward) {
            const std::span<const float> weights = b.weights;
            const std::span<float> dst = b.dst;
            copy_bias(op_, rows_, weights.data(), dst.data());
        }
        const std::int64_t all = pass_ == Pass::forward ? op_.n : op_.k;
        const std::int64_t piece = whole_lines(divide_up(all, threads()));
#pragma omp parallel for schedule(static)
        for (std::int64_t first = 0; first < all; first += piece) {
            run_part(b, {rows_, op_.n, op_.k, first, std::min(piece, all - first)});
        }
        if (pass_ == Pass::backward_weights && op_.bias) {
            const std::span<const float> diff_dst = b.diff_dst;
            const std::span<float> diff_weights = b.diff_weights;
            sum_rows(rows_, op_.n, diff_dst.data(), diff_weights.data() + op_.k * op_.n);
        }
    }

    void run_part(const Buffers& b, const SkinnyGemm& part) const {
        if (pass_ == Pass::forward) {
            const std::span<const float> src = b.src[0], weights = b.weights;
            const std::span<float> dst = b.dst;
            skinny_forward(part, src.data(), weights.data(), dst.data(), op_.bias);
        } else if (pass_ == Pass::backward_data) {
            const std::span<const float> diff_dst = b.diff_dst, weights = b.weights;
            const std::span<float> diff_src = b.diff_src[0];
            skinny_backward_data(part, diff_dst.data(), weights.data(), diff_src.data());
        } else {
            const std::span<const float> src = b.src[0], diff_dst = b.diff_dst;
            const std::span<float> diff_weights = b.diff_weights;
            skinny_backward_weights(part, src.data(), diff_dst.data(), diff_weights.data());
        }
    }

    MatMul op_;
    Pass pass_;
    std::int64_t rows_;
};

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
        const bool slopes = pass_ != Pass::forward && op_.activation;
        reserve(pieces_ * workspace_ + (slopes ? rows_ * op_.n : 0));
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
            copy_bias(op_, rows_, weights, b.dst.data());
            multiply({b.src[0].data(), op_.k, 1}, normal, b.dst.data(), op_.bias, scratch, b.workspace.data());
            return;
        }
        const float* const diff = diff_of_product(b, scratch + pieces_ * workspace_);
        if (pass_ == Pass::backward_data) {
            multiply({diff, op_.n, 1}, transposed, b.diff_src[0].data(), false, scratch);
        } else if (op_.tied) {
            multiply({diff, 1, op_.n}, {b.src[0].data(), op_.k, 1}, b.diff_weights.data(), false, scratch);
        } else {
            multiply({b.src[0].data(), 1, op_.k}, {diff, op_.n, 1}, b.diff_weights.data(), false, scratch);
        }
        if (pass_ == Pass::backward_weights && op_.bias)
            sum_rows(rows_, op_.n, diff, b.diff_weights.data() + op_.k * op_.n);
    }

    // The gradient of what the activation was given: diff_dst itself when there is none.
    const float* diff_of_product(const Buffers& b, float* room) const {
        if (!op_.activation) return b.diff_dst.data();
        const bool relu = op_.activation == Nonlinearity::relu;
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < rows_; ++i) {
            const std::int64_t at = i * op_.n;
            if (relu) mask(b.diff_dst.data() + at, b.dst_in.data() + at, op_.n, room + at);
            if (!relu) scale(b.diff_dst.data() + at, b.workspace.data() + at, op_.n, room + at);
        }
        return room;
    }

    void activate(float* values, float* slopes, std::int64_t count) const {
        if (op_.activation == Nonlinearity::relu) apply_relu(values, count);
        if (op_.activation == Nonlinearity::gelu) apply_gelu(values, slopes, count);
    }

    // `slopes` of a forward pass whose activation keeps them.
    void multiply(MatrixView a, MatrixView b, float* c, bool accumulate, float* scratch,
                  float* slopes = nullptr) const {
        const bool by_rows = shape_.m >= shape_.n;
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < pieces_; ++i) {
            const std::int64_t first = i * piece_;
            const MatrixView a_part{by_rows ? a.data + first * a.row : a.data, a.row, a.column};
            const MatrixView b_part{by_rows ? b.data : b.data + first * b.column, b.row, b.column};
            gemm(part(i), a_part, b_part, by_rows ? c + first * shape_.n : c + first, shape_.n, accumulate,
                 scratch + i * workspace_);
            if (pass_ != Pass::forward || !op_.activation) continue;
            const GemmShape done = part(i);
            for (std::int64_t row = 0; row < done.m; ++row) {
                const std::int64_t at = by_rows ? (first + row) * shape_.n : row * shape_.n + first;
                activate(c + at, keeps_slope(op_) ? slopes + at : nullptr, done.n);
            }
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
        if (std::holds_alternative<MatMul>(problem.op) || std::holds_alternative<GroupedMatMul>(problem.op)) return {};
        return fmt::format("gemm runs matmul and groupedmatmul, not {}", kind_of(problem.op));
    }

    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        if (std::holds_alternative<GroupedMatMul>(problem.op)) return make_grouped(problem);
        const auto& dense = std::get<MatMul>(problem.op);
        const std::int64_t rows = problem.batch * dense.m;
        if (rows <= most_skinny_rows && !dense.activation && !dense.tied)
            return std::make_unique<SkinnyProduct>(problem);
        return std::make_unique<Product>(problem);
    }
    std::unique_ptr<Kernel> make_half(const Problem& problem) const override {
        if (std::holds_alternative<GroupedMatMul>(problem.op)) return nullptr;
        const HalfSimd* const simd = problem.type == DataType::bf16 ? native_bf16() : nullptr;
        const bool fused = std::get<MatMul>(problem.op).activation.has_value();
        return simd == nullptr || fused ? nullptr : half_product(problem, *simd);
    }
};

}  // namespace

const Backend& matmul() {
    static const Gemm gemm;
    return gemm;
}

}  // namespace rehearse::kernels::cpu
