// SPDX-License-Identifier: Apache-2.0
// Dense layers in 16 bits: the loops of gemm.cpp over 16-bit panels. A block of the result is summed in f32 over all of
// k, then rounded once. Threads share the longer side of the result.
#include <algorithm>

#include "kernels/convert.hpp"
#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/gemm/gemm.hpp"
#include "kernels/cpu/half/half.hpp"
#include "kernels/cpu/half/half_pack.hpp"

namespace rehearse::kernels::cpu {
namespace {

constexpr std::int64_t panel_words = 16 * 1024;                       // of a panel of B: 32 KiB
constexpr std::int64_t block_rows = 20 * 14;                          // of A, packed at a time
constexpr std::int64_t sum_rows = 4 * block_rows, sum_columns = 512;  // of the result, kept in f32: 2.2 MiB

GemmShape shape_of(const MatMul& op, Pass pass, std::int64_t rows) {
    if (pass == Pass::forward) return {rows, op.n, op.k};
    if (pass == Pass::backward_data) return {rows, op.k, op.n};
    return {op.k, op.n, rows};
}

struct Operands {
    HalfMatrix a, b;
    const float* bias;  // {n}, or nullptr
    std::uint16_t* out;
};

class HalfProduct final : public CheckedKernel {
public:
    HalfProduct(const Problem& problem, const HalfSimd& simd)
        : CheckedKernel(problem),
          simd_(simd),
          op_(std::get<MatMul>(problem.op)),
          pass_(problem.pass),
          type_(problem.type),
          rows_(problem.batch * op_.m),
          shape_(shape_of(op_, pass_, rows_)),
          by_rows_(shape_.m >= shape_.n) {
        const std::int64_t longer = std::max(shape_.m, shape_.n);
        piece_ = whole_lines(divide_up(longer, threads()));
        pieces_ = divide_up(longer, piece_);
        const std::int64_t most_depth = panel_words / simd.columns;
        depth_ = divide_up(shape_.k, divide_up(shape_.k, most_depth));
        depth_ = divide_up(depth_, simd.pair) * simd.pair;
        const GemmShape most = part(0);
        height_ = divide_up(std::min(most.m, block_rows), divide_up(std::min(most.m, block_rows), simd.rows));
        width_ = std::min(sum_columns, divide_up(most.n, simd.columns) * simd.columns);
        a_floats_ = whole_lines((block_rows + simd.rows) * half_steps(simd, depth_));
        b_floats_ = whole_lines(width_ * depth_ / 2);
        c_floats_ = std::min(most.m, sum_rows) * width_;
        own_ = a_floats_ + b_floats_ + whole_lines(c_floats_);
        reserve(whole_lines(op_.n) + pieces_ * own_);
    }

private:
    GemmShape part(std::int64_t index) const {
        const std::int64_t size = std::min(piece_, (by_rows_ ? shape_.m : shape_.n) - index * piece_);
        return by_rows_ ? GemmShape{size, shape_.n, shape_.k} : GemmShape{shape_.m, size, shape_.k};
    }

    void compute(const Buffers& b, float* scratch) override {
        if (pass_ == Pass::forward) {
            const std::uint16_t* const weights = half_words(b.weights);
            const View bias(scratch, static_cast<std::size_t>(op_.n), DataType::f32);
            if (op_.bias) convert(ConstView(b.weights).subspan(op_.k * op_.n, op_.n), bias);
            const float* const added = op_.bias ? scratch : nullptr;
            return multiply({{half_words(b.src[0]), op_.k, 1}, {weights, 1, op_.n}, added, half_words(b.dst)}, scratch);
        }
        const HalfMatrix diff_dst{half_words(b.diff_dst), op_.n, 1};
        if (pass_ == Pass::backward_data) {
            const HalfMatrix weights{half_words(b.weights), op_.n, 1};
            return multiply({diff_dst, weights, nullptr, half_words(b.diff_src[0])}, scratch);
        }
        std::uint16_t* const diff_weights = half_words(b.diff_weights);
        multiply({{half_words(b.src[0]), 1, op_.k}, {diff_dst.data, 1, op_.n}, nullptr, diff_weights}, scratch);
        for (std::int64_t j = 0; op_.bias && j < op_.n; ++j) {
            const auto sum = static_cast<float>(sum_halves(type_, diff_dst.data + j, rows_, op_.n));
            round_half(type_, &sum, diff_weights + op_.k * op_.n + j, 1);
        }
    }

    void multiply(const Operands& all, float* scratch) const {
        float* const spaces = scratch + whole_lines(op_.n);
#pragma omp parallel for schedule(static)
        for (std::int64_t p = 0; p < pieces_; ++p) {
            const std::int64_t first = p * piece_;
            const std::int64_t columns_at = by_rows_ ? 0 : first;
            multiply_part(part(p),
                          {by_rows_ ? all.a.at(first, 0) : all.a, all.b.at(columns_at, 0),
                           all.bias == nullptr ? nullptr : all.bias + columns_at,
                           all.out + (by_rows_ ? first * shape_.n : first)},
                          spaces + p * own_);
        }
    }

    void multiply_part(GemmShape shape, const Operands& all, float* space) const {
        for (std::int64_t i = 0; i < shape.m; i += sum_rows) {
            for (std::int64_t j = 0; j < shape.n; j += width_) {
                multiply_block({std::min(sum_rows, shape.m - i), std::min(width_, shape.n - j), shape.k},
                               {all.a.at(i, 0), all.b.at(j, 0), all.bias == nullptr ? nullptr : all.bias + j,
                                all.out + i * shape_.n + j},
                               space);
            }
        }
    }

    // A block of the result, from the first number of k to the last.
    void multiply_block(GemmShape shape, const Operands& all, float* space) const {
        auto* const b_packed = reinterpret_cast<std::uint16_t*>(space + a_floats_);
        float* const c = space + a_floats_ + b_floats_;
        for (std::int64_t i = 0; i < shape.m; ++i) {
            if (all.bias != nullptr) std::copy_n(all.bias, shape.n, c + i * width_);
        }
        for (std::int64_t k = 0; k < shape.k; k += depth_) {
            const std::int64_t depth = std::min(depth_, shape.k - k);
            for (std::int64_t j = 0; j < shape.n; j += simd_.columns) {
                pack_half_b(simd_, all.b.at(j, k), std::min(simd_.columns, shape.n - j), depth, b_packed + j * depth_);
            }
            for (std::int64_t i = 0; i < shape.m; i += block_rows) {
                const GemmShape rows{std::min(block_rows, shape.m - i), shape.n, depth};
                multiply_rows(rows, all.a.at(i, k), b_packed, c + i * width_, all.bias != nullptr || k > 0, space);
                for (std::int64_t r = i; k + depth == shape.k && r < i + rows.m; ++r) {
                    round_half(type_, c + r * width_, all.out + r * shape_.n, shape.n);
                }
            }
        }
    }

    void multiply_rows(GemmShape shape, HalfMatrix a, const std::uint16_t* b, float* c, bool accumulate,
                       float* space) const {
        const std::int64_t steps = half_steps(simd_, shape.k);
        auto* const a_packed = reinterpret_cast<std::uint32_t*>(space);
        for (std::int64_t i = 0; i < shape.m; i += height_) {
            pack_half_a(simd_, a.at(i, 0), std::min(height_, shape.m - i), shape.k, height_, a_packed + i * steps);
        }
        static constexpr TapAt here{0, 0};
        for (std::int64_t j = 0; j < shape.n; j += simd_.columns) {
            for (std::int64_t i = 0; i < shape.m; i += height_) {
                simd_.multiply(std::min(height_, shape.m - i), {.a = a_packed + i * steps,
                                                                .a_channel = height_,
                                                                .b = b + j * depth_,
                                                                .b_channel = simd_.columns * simd_.pair,
                                                                .taps = &here,
                                                                .tap_count = 1,
                                                                .channels = steps,
                                                                .c = c + i * width_ + j,
                                                                .ldc = width_,
                                                                .accumulate = accumulate});
            }
        }
    }

    const HalfSimd& simd_;
    MatMul op_;
    Pass pass_;
    DataType type_;
    std::int64_t rows_;
    GemmShape shape_;
    bool by_rows_;
    std::int64_t piece_ = 0, pieces_ = 0;
    std::int64_t depth_ = 1, height_ = 1, width_ = 1;  // numbers of k, rows of a panel, columns of a block at a time
    std::int64_t a_floats_ = 0, b_floats_ = 0, c_floats_ = 0, own_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> half_product(const Problem& problem, const HalfSimd& simd) {
    return std::make_unique<HalfProduct>(problem, simd);
}

}  // namespace rehearse::kernels::cpu
