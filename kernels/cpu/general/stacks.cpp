// SPDX-License-Identifier: Apache-2.0
// Stacks of products: matrices of the result, or of a gradient, shared among threads.
#include <algorithm>
#include <vector>

#include "core/index.hpp"
#include "kernels/cpu/gemm/gemm.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/cpu/share.hpp"
#include "kernels/general/places.hpp"

namespace rehearse::kernels::cpu {
namespace {

class Stack final : public Shared {
public:
    explicit Stack(const Problem& problem)
        : Shared(problem, 0),
          op_(std::get<BatchedMatMul>(problem.op)),
          pass_(problem.pass),
          batch_(problem.batch),
          m_(op_.a[op_.a.size() - 2]),
          k_(op_.a.back()),
          n_(op_.b.back()),
          pairs_(kernels::general::pairs_of(op_)),
          of_a_(at(elements(op_.a) / (m_ * k_))),
          of_b_(at(elements(op_.b) / (k_ * n_))) {
        for (std::size_t p = 0; p < pairs_.size(); ++p) {
            of_a_[at(pairs_[p].a)].push_back(static_cast<std::int64_t>(p));
            of_b_[at(pairs_[p].b)].push_back(static_cast<std::int64_t>(p));
        }
        workspace_ = whole_lines(
            std::max({gemm_workspace({m_, n_, k_}), gemm_workspace({m_, k_, n_}), gemm_workspace({k_, n_, m_})}));
        reserve(workers_ * workspace_);
    }

private:
    const float* a(const Buffers& b, std::int64_t sample, std::int64_t matrix) const {
        const bool trained = op_.trained == 1;
        const float* const first = trained ? b.weights.data() : b.src[0].data() + sample * elements(op_.a);
        return first + matrix * m_ * k_;
    }
    const float* right(const Buffers& b, std::int64_t sample, std::int64_t matrix) const {
        const bool trained = op_.trained == 2;
        const float* const first =
            trained ? b.weights.data() : b.src[op_.trained == 1 ? 0 : 1].data() + sample * elements(op_.b);
        return first + matrix * k_ * n_;
    }
    std::int64_t stacks() const { return static_cast<std::int64_t>(pairs_.size()); }

    void compute(const Buffers& b, float* scratch) override {
        if (pass_ == Pass::forward) {
            return share(batch_ * stacks(), 1, workers_, [&](std::int64_t worker, Stretch part) {
                for (std::int64_t i = part.begin; i < part.end; ++i) {
                    const auto& pair = pairs_[at(i % stacks())];
                    gemm({m_, n_, k_}, {a(b, i / stacks(), pair.a), k_, 1}, {right(b, i / stacks(), pair.b), n_, 1},
                         b.dst.data() + i * m_ * n_, n_, false, scratch + worker * workspace_);
                }
            });
        }
        const bool data = pass_ == Pass::backward_data;
        if (data ? op_.trained != 1 : op_.trained == 1)
            left_gradient(b, data ? b.diff_src[0] : b.diff_weights, scratch);
        if (data ? op_.trained != 2 : op_.trained == 2)
            right_gradient(b, data ? b.diff_src[op_.trained == 1 ? 0 : 1] : b.diff_weights, scratch);
    }

    // sum over pairs of d dst b^T; of a trained one over samples, too.
    void left_gradient(const Buffers& b, View to, float* scratch) {
        if (to.empty()) return;
        each(op_.trained == 1, of_a_, to, m_ * k_, scratch,
             [&](std::int64_t sample, std::int64_t pair, float* sum, bool add, float* room) {
                 const float* const g = b.diff_dst.data() + (sample * stacks() + pair) * m_ * n_;
                 gemm({m_, k_, n_}, {g, n_, 1}, {right(b, sample, pairs_[at(pair)].b), 1, n_}, sum, k_, add, room);
             });
    }
    // sum over pairs of a^T d dst.
    void right_gradient(const Buffers& b, View to, float* scratch) {
        if (to.empty()) return;
        each(op_.trained == 2, of_b_, to, k_ * n_, scratch,
             [&](std::int64_t sample, std::int64_t pair, float* sum, bool add, float* room) {
                 const float* const g = b.diff_dst.data() + (sample * stacks() + pair) * m_ * n_;
                 gemm({k_, n_, m_}, {a(b, sample, pairs_[at(pair)].a), 1, k_}, {g, n_, 1}, sum, n_, add, room);
             });
    }

    // product(sample, pair, where to, whether to add, room) of all pairs that a matrix of an operand is in.
    template <typename Product>
    void each(bool trained, const std::vector<std::vector<std::int64_t>>& in, View to, std::int64_t size,
              float* scratch, Product product) {
        const auto matrices = static_cast<std::int64_t>(in.size());
        share((trained ? 1 : batch_) * matrices, 1, workers_, [&](std::int64_t worker, Stretch part) {
            for (std::int64_t i = part.begin; i < part.end; ++i) {
                bool add = false;
                for (std::int64_t s = trained ? 0 : i / matrices; s < (trained ? batch_ : i / matrices + 1); ++s) {
                    for (const std::int64_t pair : in[at(i % matrices)]) {
                        product(s, pair, to.data() + i * size, add, scratch + worker * workspace_);
                        add = true;
                    }
                }
            }
        });
    }

    BatchedMatMul op_;
    Pass pass_;
    std::int64_t batch_, m_, k_, n_, workspace_ = 0;
    std::vector<kernels::general::Pair> pairs_;
    std::vector<std::vector<std::int64_t>> of_a_, of_b_;  // the pairs that each matrix is in
};

}  // namespace

std::unique_ptr<Kernel> make_stack(const Problem& problem) { return std::make_unique<Stack>(problem); }

}  // namespace rehearse::kernels::cpu
