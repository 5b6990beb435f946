// SPDX-License-Identifier: Apache-2.0
// A transposition that moves the last dimension: matrices whose rows become columns, by blocks of registers. What is
// its gradient is the transposition back.
#include <algorithm>
#include <vector>

#include "core/index.hpp"
#include "kernels/cpu/conv/direct_simd.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/cpu/share.hpp"
#include "kernels/general/places.hpp"

namespace rehearse::kernels::cpu {
namespace {

// What is read of `shape` by the dimensions `by`, or what is written to it where the gradient goes back.
struct Permuted {
    Shape shape;
    std::vector<std::int64_t> by;
};

// Dimension i of what is written is dimension by[i] of what is read.
Permuted permuted(const Rearrangement& op, Pass pass) {
    if (pass == Pass::forward) return {op.inputs[0], op.numbers};
    Permuted back{op.output, std::vector<std::int64_t>(op.numbers.size())};
    for (std::size_t i = 0; i < op.numbers.size(); ++i) back.by[at(op.numbers[i])] = static_cast<std::int64_t>(i);
    return back;
}

// Rows of a matrix at a time: as many as make whole lines of what is written, and stay in the first cache.
constexpr std::int64_t block_rows = 64;

class Transposition final : public Shared {
public:
    explicit Transposition(const Problem& problem)
        : Shared(problem, 0), simd_(direct_simd()), forward_(problem.pass == Pass::forward), batch_(problem.batch) {
        const auto [shape, by] = permuted(std::get<Rearrangement>(problem.op), problem.pass);
        const std::vector<std::int64_t> from = kernels::general::strides_of(shape);
        Shape written;
        for (const std::int64_t d : by) written.push_back(shape[at(d)]);
        const std::vector<std::int64_t> to = kernels::general::strides_of(written);
        count_ = elements(shape);
        // The rows are what lies side by side in the result, the columns what does so in what is read.
        const std::size_t row = by.size() - 1;
        const auto column =
            static_cast<std::size_t>(std::ranges::find(by, static_cast<std::int64_t>(shape.size()) - 1) - by.begin());
        rows_ = written[row];
        columns_ = written[column];
        in_row_ = from[at(by[row])];
        out_row_ = to[column];
        Shape others = written;
        others[row] = others[column] = 1;
        std::vector<std::int64_t> read;
        for (const std::int64_t d : by) read.push_back(from[at(d)]);
        kernels::general::for_each_place(others, read,
                                         [&](std::int64_t, std::int64_t place) { from_.push_back(place); });
        kernels::general::for_each_place(others, to, [&](std::int64_t, std::int64_t place) { to_.push_back(place); });
    }

private:
    void compute(const Buffers& b, float* /*scratch*/) override {
        const float* const in = forward_ ? b.src[0].data() : b.diff_dst.data();
        float* const out = forward_ ? b.dst.data() : b.diff_src[0].data();
        const auto matrices = static_cast<std::int64_t>(from_.size());
        const std::int64_t blocks = divide_up(rows_, block_rows);
        share(batch_ * matrices * blocks, 1, workers_, [&](std::int64_t /*worker*/, Stretch part) {
            for (std::int64_t i = part.begin; i < part.end; ++i) {
                const std::int64_t first = i % blocks * block_rows, matrix = i / blocks % matrices;
                const std::int64_t sample = i / blocks / matrices * count_;
                simd_.transpose(in + sample + from_[at(matrix)] + first * in_row_, in_row_,
                                std::min(block_rows, rows_ - first), columns_, out + sample + to_[at(matrix)] + first,
                                out_row_);
            }
        });
    }

    const DirectSimd& simd_;
    bool forward_;
    std::int64_t batch_, count_ = 1, rows_ = 1, columns_ = 1, in_row_ = 1, out_row_ = 1;
    std::vector<std::int64_t> from_, to_;  // where each matrix of a sample begins
};

}  // namespace

bool moves_last_dimension(const Rearrangement& op) {
    return op.kind == "transpose" && op.numbers.size() > 1 &&
           op.numbers.back() != static_cast<std::int64_t>(op.numbers.size()) - 1;
}

std::unique_ptr<Kernel> make_transposition(const Problem& problem) { return std::make_unique<Transposition>(problem); }

}  // namespace rehearse::kernels::cpu
