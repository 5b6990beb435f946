// SPDX-License-Identifier: Apache-2.0
// Forward by rows of the output, the gradient and a direct update by columns of the tables, so that no two threads add
// to one number.
#include "kernels/cpu/rows/rows_simd.hpp"
#include "kernels/cpu/share.hpp"

namespace rehearse::kernels::cpu {
namespace {

// Rows lie anywhere in tables that no cache holds: a row is asked for while so many others are worked on, as many as a
// core has outstanding lines for rows of four or more lines.
constexpr std::int64_t ahead = 16;
constexpr std::int64_t line = 16;  // numbers

template <typename Tables>
class Table final : public Shared {
public:
    explicit Table(const Problem& problem)
        : Shared(problem),
          op_(std::get<Tables>(problem.op)),
          batch_(problem.batch),
          forward_(problem.pass == Pass::forward) {
        reserve(0);
    }

private:
    void compute(const Buffers& b, float* /*scratch*/) override {
        if (forward_) {
            const std::span<float> dst = b.dst;
            const float* const weights = b.weights.data();
            share(outputs(op_), 1, workers_, [&](std::int64_t /*worker*/, Stretch part) {
                for (std::int64_t i = part.begin; i < part.end; ++i) {
                    float* const out = dst.data() + i * op_.width;
                    std::fill_n(out, op_.width, 0.0F);
                    for_each_row(op_, b, i,
                                 [&](std::int64_t row) { add_row(weights + row * op_.width, op_.width, out); },
                                 {weights, 0, op_.width});
                }
            });
            return;
        }
        const std::span<const float> diff_dst = b.diff_dst;
        if (updates_directly(op_)) return update_rows(b, diff_dst);
        const std::span<float> diff = b.diff_weights;
        const std::int64_t rows = static_cast<std::int64_t>(diff.size()) / op_.width;
        share(op_.width, 16, workers_, [&](std::int64_t /*worker*/, Stretch part) {
            const std::int64_t columns = part.end - part.begin;
            float* const out = diff.data() + part.begin;
            for (std::int64_t row = 0; row < rows; ++row) std::fill_n(out + row * op_.width, columns, 0.0F);
            for (std::int64_t i = 0; i < outputs(op_); ++i) {
                const float* const from = diff_dst.data() + i * op_.width + part.begin;
                for_each_row(op_, b, i, [&](std::int64_t row) { add_row(from, columns, out + row * op_.width); });
            }
        });
    }

    // One row after the other loses its gradient: what is picked is a small part of the tables.
    void update_rows(const Buffers& b, std::span<const float> diff_dst) const {
        const std::span<float> weights = b.weights;
        share(op_.width, 16, workers_, [&](std::int64_t /*worker*/, Stretch part) {
            for (std::int64_t i = 0; i < outputs(op_); ++i) {
                const float* const from = diff_dst.data() + i * op_.width;
                for_each_row(op_, b, i,
                             [&](std::int64_t row) {
                                 float* const to = weights.data() + row * op_.width;
                                 for (std::int64_t c = part.begin; c < part.end; ++c)
                                     to[c] -= b.learning_rate * from[c];
                             },
                             {weights.data(), part.begin, part.end});
            }
        });
    }

    std::int64_t outputs(const Embedding& op) const { return batch_ * op.tokens; }
    std::int64_t outputs(const EmbeddingBag& op) const { return batch_ * op.samples * op.tables; }

    // Columns of rows that are asked for before they are visited.
    struct Asked {
        const float* tables = nullptr;
        std::int64_t begin = 0, end = 0;
    };
    void ask_for(const Asked& asked, std::int64_t row) const {
        const float* const at = asked.tables + row * op_.width;
        for (std::int64_t c = asked.begin; c < asked.end; c += line) __builtin_prefetch(at + c);
    }

    // visit(row of all tables, one after the other) for those that are summed in row i of the output.
    template <typename Visit>
    void for_each_row(const Embedding& op, const Buffers& b, std::int64_t i, Visit visit, Asked /*asked*/ = {}) const {
        const std::int64_t token = i % op.tokens;
        const std::int64_t word = b.indices[i] - b.first_row;
        if (word >= 0 && word < op.vocabulary) visit(word);
        if (forward_ && b.first_row > 0) return;  // the rank with the first share adds the rest
        if (op.positions > 0) visit(op.vocabulary + token);
        if (op.segments > 0) visit(op.vocabulary + op.positions + token * op.segments / op.tokens);
    }
    template <typename Visit>
    void for_each_row(const EmbeddingBag& op, const Buffers& b, std::int64_t i, Visit visit, Asked asked = {}) const {
        const std::int64_t first = i % op.tables * op.vocabulary;
        const auto* const rows = b.indices.data() + i * op.lookups;
        for (std::int64_t l = 0; l < op.lookups; ++l) {
            if (asked.tables != nullptr && l + ahead < op.lookups) ask_for(asked, first + rows[l + ahead]);
            visit(first + rows[l]);
        }
    }

    Tables op_;
    std::int64_t batch_;
    bool forward_;
};

}  // namespace

std::unique_ptr<Kernel> make_table(const Problem& problem) {
    if (std::holds_alternative<Embedding>(problem.op)) return std::make_unique<Table<Embedding>>(problem);
    return std::make_unique<Table<EmbeddingBag>>(problem);
}

}  // namespace rehearse::kernels::cpu
