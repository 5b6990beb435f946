// SPDX-License-Identifier: Apache-2.0
// Attention's heads shared among threads; forward also by queries, where there are fewer heads than threads.
#include "kernels/cpu/attention/flash.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/heads.hpp"

namespace rehearse::kernels::cpu {
namespace {

class FlashKernel final : public CheckedKernel {
public:
    explicit FlashKernel(const Problem& problem)
        : CheckedKernel(problem, attention_workspace(std::get<Attention>(problem.op), problem.batch)),
          op_(std::get<Attention>(problem.op)),
          forward_(problem.pass == Pass::forward) {
        const std::int64_t heads = problem.batch * op_.heads;
        const std::int64_t parts = forward_ ? divide_up(threads(), heads) : 1;
        queries_ = divide_up(divide_up(op_.queries, parts), flash_panel()) * flash_panel();
        parts_ = divide_up(op_.queries, queries_);
        tasks_ = heads * parts_;
        workers_ = std::min(threads(), tasks_);
        space_ = whole_lines(forward_ ? flash_forward_space(op_) : flash_backward_space(op_));
        reserve(workers_ * space_);
    }

private:
    void compute(const Buffers& b, float* scratch) override {
#pragma omp parallel for schedule(static)
        for (std::int64_t worker = 0; worker < workers_; ++worker) {
            for (std::int64_t task = worker; task < tasks_; task += workers_) {
                const std::int64_t head = task / parts_;
                if (forward_) forward(b, head, task % parts_ * queries_, scratch + worker * space_);
                if (!forward_) backward(b, head, scratch + worker * space_);
            }
        }
    }

    void forward(const Buffers& b, std::int64_t index, std::int64_t first, float* space) const {
        const std::int64_t sample = index / op_.heads;
        const std::int64_t head = index % op_.heads;
        const std::span<float> kept = b.workspace;
        flash_forward({.op = op_,
                       .q = rows_of_head<const float>(op_, b.src, Part::q, sample, head),
                       .k = rows_of_head<const float>(op_, b.src, Part::k, sample, head),
                       .v = rows_of_head<const float>(op_, b.src, Part::v, sample, head),
                       .dst = rows_of_result<float>(op_, b.dst, sample, head),
                       .log_sums = kept.data() + index * op_.queries,
                       .first = first,
                       .count = std::min(queries_, op_.queries - first)},
                      space);
    }

    void backward(const Buffers& b, std::int64_t index, float* space) const {
        const std::int64_t sample = index / op_.heads;
        const std::int64_t head = index % op_.heads;
        const std::span<float> kept = b.workspace;
        flash_backward({.op = op_,
                        .q = rows_of_head<const float>(op_, b.src, Part::q, sample, head),
                        .k = rows_of_head<const float>(op_, b.src, Part::k, sample, head),
                        .v = rows_of_head<const float>(op_, b.src, Part::v, sample, head),
                        .dst = rows_of_result<const float>(op_, b.dst_in, sample, head),
                        .diff_dst = rows_of_result<const float>(op_, b.diff_dst, sample, head),
                        .diff_q = rows_of_head<float>(op_, b.diff_src, Part::q, sample, head),
                        .diff_k = rows_of_head<float>(op_, b.diff_src, Part::k, sample, head),
                        .diff_v = rows_of_head<float>(op_, b.diff_src, Part::v, sample, head),
                        .log_sums = kept.data() + index * op_.queries},
                       space);
    }

    Attention op_;
    bool forward_;
    std::int64_t queries_ = 0, parts_ = 0, tasks_ = 0, workers_ = 0, space_ = 0;
};

class Flash final : public Algorithm {
public:
    std::string_view algorithm() const override { return "flash"; }

private:
    std::string refusal(const Problem& problem) const override {
        if (const auto* op = std::get_if<Attention>(&problem.op)) {
            return has_own_keys(*op) ? "" : "flash attends with keys and values of each head's own";
        }
        return fmt::format("flash runs attention, not {}", kind_of(problem.op));
    }
    std::int64_t kept(const Op& op, std::int64_t batch) const override {
        const auto* attention = std::get_if<Attention>(&op);
        return attention == nullptr ? 0 : attention_workspace(*attention, batch);
    }
    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        return std::make_unique<FlashKernel>(problem);
    }
};

}  // namespace

const Backend& flash() {
    static const Flash flash;
    return flash;
}

}  // namespace rehearse::kernels::cpu
