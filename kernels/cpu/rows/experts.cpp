// SPDX-License-Identifier: Apache-2.0
// A dense layer of each expert: expert after expert to the threads, block after block of its rows.
#include <algorithm>

#include "kernels/cpu/gemm/gemm.hpp"
#include "kernels/cpu/share.hpp"

namespace rehearse::kernels::cpu {
namespace {

class Grouped final : public Shared {
public:
    explicit Grouped(const Problem& problem)
        : Shared(problem),
          op_(std::get<GroupedMatMul>(problem.op)),
          pass_(problem.pass),
          blocks_(op_.sources * problem.batch / op_.group),
          workspace_(whole_lines(gemm_workspace(shape()))) {
        reserve(workers_ * workspace_);
    }

private:
    GemmShape shape() const {
        if (pass_ == Pass::forward) return {op_.rows, op_.n, op_.k};
        if (pass_ == Pass::backward_data) return {op_.rows, op_.k, op_.n};
        return {op_.k, op_.n, op_.rows};
    }

    void compute(const Buffers& b, float* scratch) override {
        share(op_.experts, 1, workers_, [&](std::int64_t worker, Stretch part) {
            for (std::int64_t e = part.begin; e < part.end; ++e) multiply(b, e, scratch + worker * workspace_);
        });
    }

    void multiply(const Buffers& b, std::int64_t expert, float* scratch) const {
        const std::int64_t matrix = expert * op_.k * op_.n, bias = op_.experts * op_.k * op_.n + expert * op_.n;
        for (std::int64_t block = 0; block < blocks_; ++block) {
            const std::int64_t row = (block * op_.experts + expert) * op_.rows;
            if (pass_ == Pass::forward) {
                float* const dst = b.dst.data() + row * op_.n;
                const float* const weights = b.weights.data();
                for (std::int64_t i = 0; op_.bias && i < op_.rows; ++i)
                    std::copy_n(weights + bias, op_.n, dst + i * op_.n);
                gemm(shape(), {b.src[0].data() + row * op_.k, op_.k, 1}, {weights + matrix, op_.n, 1}, dst, op_.n,
                     op_.bias, scratch);
            } else if (pass_ == Pass::backward_data) {
                gemm(shape(), {b.diff_dst.data() + row * op_.n, op_.n, 1}, {b.weights.data() + matrix, 1, op_.n},
                     b.diff_src[0].data() + row * op_.k, op_.k, false, scratch);
            } else {
                const float* const diff = b.diff_dst.data() + row * op_.n;
                gemm(shape(), {b.src[0].data() + row * op_.k, 1, op_.k}, {diff, op_.n, 1},
                     b.diff_weights.data() + matrix, op_.n, block > 0, scratch);
                if (op_.bias) add_rows(diff, block == 0, b.diff_weights.data() + bias);
            }
        }
    }

    void add_rows(const float* diff, bool first, float* sums) const {
        if (first) std::fill_n(sums, op_.n, 0.0F);
        for (std::int64_t i = 0; i < op_.rows; ++i) {
            for (std::int64_t j = 0; j < op_.n; ++j) sums[j] += diff[i * op_.n + j];
        }
    }

    GroupedMatMul op_;
    Pass pass_;
    std::int64_t blocks_;
    std::int64_t workspace_;
};

}  // namespace

std::unique_ptr<Kernel> make_grouped(const Problem& problem) { return std::make_unique<Grouped>(problem); }

}  // namespace rehearse::kernels::cpu
