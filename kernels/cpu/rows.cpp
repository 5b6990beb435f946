// SPDX-License-Identifier: Apache-2.0
// Rows shared among threads in equal stretches, so that a sum has the same order run after run.
#include "kernels/cpu/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/rows_simd.hpp"
#include "kernels/heads.hpp"

namespace rehearse::kernels::cpu {
namespace {

struct Stretch {
    std::int64_t begin, end;
};

// The part of [0, count) of one of `workers`, in steps of `grain`.
Stretch stretch_of(std::int64_t count, std::int64_t grain, std::int64_t worker, std::int64_t workers) {
    const std::int64_t each = divide_up(divide_up(count, grain), workers) * grain;
    return {std::min(worker * each, count), std::min((worker + 1) * each, count)};
}

// act(worker, part of [0, count)) on as many threads.
template <typename Act>
void share(std::int64_t count, std::int64_t grain, std::int64_t workers, Act act) {
#pragma omp parallel for schedule(static)
    for (std::int64_t worker = 0; worker < workers; ++worker) {
        const Stretch part = stretch_of(count, grain, worker, workers);
        if (part.begin < part.end) act(worker, part);
    }
}

class Shared : public CheckedKernel {
public:
    using CheckedKernel::CheckedKernel;

protected:
    const std::int64_t workers_ = threads();
};

class Norm final : public Shared {
public:
    explicit Norm(const Problem& problem)
        : Shared(problem, layer_norm_workspace(std::get<LayerNorm>(problem.op), problem.batch)),
          op_(std::get<LayerNorm>(problem.op)),
          rows_(problem.batch * op_.rows),
          forward_(problem.pass == Pass::forward) {
        reserve(forward_ ? 0 : workers_ * sums_);
    }

private:
    NormRow row(const Buffers& b, std::int64_t r) const {
        const std::span<const float> src = b.src[0];
        const float* const weights = b.weights.data();
        return {.features = op_.features,
                .src = src.data() + r * op_.features,
                .gamma = weights,
                .beta = weights + op_.features,
                .mean = b.workspace[r],
                .variance = b.workspace[rows_ + r]};
    }

    void compute(const Buffers& b, float* scratch) override { forward_ ? forward(b) : backward(b, scratch); }

    void forward(const Buffers& b) const {
        const std::span<float> dst = b.dst;
        share(rows_, 1, workers_, [&](std::int64_t /*worker*/, Stretch part) {
            for (std::int64_t r = part.begin; r < part.end; ++r) {
                NormRow at = row(b, r);
                layer_norm_row(at, dst.data() + r * op_.features);
                b.workspace[r] = at.mean;
                b.workspace[rows_ + r] = at.variance;
            }
        });
    }

    void backward(const Buffers& b, float* scratch) const {
        const std::span<const float> diff_dst = b.diff_dst;
        const std::span<float> diff_src = b.diff_src[0];
        const std::span<float> diff_weights = b.diff_weights;
        std::fill_n(scratch, workers_ * sums_, 0.0F);
        share(rows_, 1, workers_, [&](std::int64_t worker, Stretch part) {
            float* const sums = scratch + worker * sums_;
            for (std::int64_t r = part.begin; r < part.end; ++r) {
                const std::int64_t at = r * op_.features;
                layer_norm_row_gradient(row(b, r), diff_dst.data() + at,
                                        diff_src.empty() ? nullptr : diff_src.data() + at, sums, sums + op_.features);
            }
        });
        std::copy_n(scratch, 2 * op_.features, diff_weights.data());
        for (std::int64_t worker = 1; worker < workers_; ++worker) {
            add_row(scratch + worker * sums_, 2 * op_.features, diff_weights.data());
        }
    }

    LayerNorm op_;
    std::int64_t rows_;
    bool forward_;
    std::int64_t sums_ = whole_lines(2 * op_.features);
};

// Tables: forward by rows of the output, the gradient by columns of the tables, so that no two threads add to one
// number.
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
                                 [&](std::int64_t row) { add_row(weights + row * op_.width, op_.width, out); });
                }
            });
            return;
        }
        const std::span<const float> diff_dst = b.diff_dst;
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

    std::int64_t outputs(const Embedding& op) const { return batch_ * op.tokens; }
    std::int64_t outputs(const EmbeddingBag& op) const { return batch_ * op.tables; }

    // visit(row of all tables, one after the other) for those that are summed in row i of the output.
    template <typename Visit>
    void for_each_row(const Embedding& op, const Buffers& b, std::int64_t i, Visit visit) const {
        const std::int64_t token = i % op.tokens;
        visit(b.indices[i]);
        if (op.positions > 0) visit(op.vocabulary + token);
        if (op.segments > 0) visit(op.vocabulary + op.positions + token * op.segments / op.tokens);
    }
    template <typename Visit>
    void for_each_row(const EmbeddingBag& op, const Buffers& b, std::int64_t i, Visit visit) const {
        for (std::int64_t l = 0; l < op.lookups; ++l) {
            visit(i % op.tables * op.vocabulary + b.indices[i * op.lookups + l]);
        }
    }

    Tables op_;
    std::int64_t batch_;
    bool forward_;
};

class Loss final : public Shared {
public:
    explicit Loss(const Problem& problem)
        : Shared(problem),
          op_(std::get<SoftmaxLoss>(problem.op)),
          rows_(problem.batch * op_.rows),
          forward_(problem.pass == Pass::forward) {
        reserve(forward_ ? rows_ : 0);
    }

private:
    void compute(const Buffers& b, float* losses) override {
        const std::span<const float> src = b.src[0];
        const std::span<float> diff_src = forward_ ? std::span<float>{} : std::span<float>{b.diff_src[0]};
        const float factor = 1.0F / static_cast<float>(b.loss_batch * op_.rows);
        for (const std::int32_t label : b.labels) require(label >= 0 && label < op_.classes, "a label is a class");
        share(rows_, 1, workers_, [&](std::int64_t /*worker*/, Stretch part) {
            for (std::int64_t r = part.begin; r < part.end; ++r) {
                const float* const scores = src.data() + r * op_.classes;
                const float log_sum = log_sum_exp(scores, op_.classes);
                if (forward_) {
                    losses[r] = log_sum - scores[b.labels[r]];
                    continue;
                }
                float* const diff = diff_src.data() + r * op_.classes;
                scaled_softmax(scores, op_.classes, log_sum, factor, diff);
                diff[b.labels[r]] -= factor;
            }
        });
        for (std::int64_t n = 0; forward_ && n < rows_ / op_.rows; ++n) {
            double sum = 0;
            for (std::int64_t r = n * op_.rows; r < (n + 1) * op_.rows; ++r) sum += losses[r];
            b.dst[n] = static_cast<float>(sum / static_cast<double>(op_.rows));
        }
    }

    SoftmaxLoss op_;
    std::int64_t rows_;
    bool forward_;
};

AdamStep step_of(const Buffers& b, Stretch part) {
    const auto steps = static_cast<double>(b.update_count);
    const std::span<const float> gradient = b.diff_weights;
    AdamStep step{.count = part.end - part.begin,
                  .weights = b.weights.data() + part.begin,
                  .first = b.momentum.data() + part.begin,
                  .second = b.second_moment.data() + part.begin,
                  .gradient = gradient.data() + part.begin};
    step.beta_first = b.momentum_factor;
    step.beta_second = b.second_factor;
    step.epsilon = b.epsilon;
    step.decay = b.weight_decay;
    step.rate = b.learning_rate;
    step.correct_first = static_cast<float>(1 / (1 - std::pow(static_cast<double>(b.momentum_factor), steps)));
    step.correct_second = static_cast<float>(1 / (1 - std::pow(static_cast<double>(b.second_factor), steps)));
    return step;
}

class Adam final : public Shared {
public:
    explicit Adam(const Problem& problem) : Shared(problem), count_(std::get<AdamUpdate>(problem.op).count) {
        reserve(0);
    }

private:
    void compute(const Buffers& b, float* /*scratch*/) override {
        share(count_, 16, workers_, [&](std::int64_t /*worker*/, Stretch part) { adam(step_of(b, part)); });
    }

    std::int64_t count_;
};

class Lamb final : public Shared {
public:
    explicit Lamb(const Problem& problem) : Shared(problem), norms_(static_cast<std::size_t>(workers_)) { reserve(0); }

private:
    void compute(const Buffers& b, float* /*scratch*/) override {
        std::int64_t begin = 0;
        for (const std::int64_t size : b.tensor_sizes) {
            update(b, begin, size);
            begin += size;
        }
    }

    void update(const Buffers& b, std::int64_t begin, std::int64_t size) {
        const auto part_of = [begin](Stretch part) { return Stretch{begin + part.begin, begin + part.end}; };
        std::ranges::fill(norms_, Norms{});
        share(size, 16, workers_, [&](std::int64_t worker, Stretch part) {
            norms_[static_cast<std::size_t>(worker)] = lamb_moments(step_of(b, part_of(part)));
        });
        Norms sum;
        for (const Norms& norms : norms_) {
            sum.weights += norms.weights;
            sum.direction += norms.direction;
        }
        const double ratio = sum.weights > 0 && sum.direction > 0 ? std::sqrt(sum.weights / sum.direction) : 1;
        share(size, 16, workers_, [&](std::int64_t /*worker*/, Stretch part) {
            AdamStep step = step_of(b, part_of(part));
            step.rate = static_cast<float>(b.learning_rate * ratio);
            lamb_step(step);
        });
    }

    std::vector<Norms> norms_;  // of each worker
};

class Rows final : public Algorithm {
public:
    std::string_view algorithm() const override { return "rows"; }

private:
    std::string refusal(const Problem& problem) const override {
        const Op& op = problem.op;
        const auto* loss = std::get_if<SoftmaxLoss>(&op);
        if (loss != nullptr && (!loss->image.empty() || !loss->class_weights.empty())) {
            return "rows takes a loss of one label a row, unweighed";
        }
        if (std::holds_alternative<LayerNorm>(op) || reads_integers(op) || loss != nullptr ||
            std::holds_alternative<AdamUpdate>(op) || std::holds_alternative<LambUpdate>(op)) {
            return {};
        }
        return fmt::format("rows runs layernorm, tables, softmaxloss, adam and lamb, not {}", kind_of(op));
    }
    std::int64_t kept(const Op& op, std::int64_t batch) const override {
        const auto* norm = std::get_if<LayerNorm>(&op);
        return norm == nullptr ? 0 : layer_norm_workspace(*norm, batch);
    }
    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        const Op& op = problem.op;
        if (std::holds_alternative<LayerNorm>(op)) return std::make_unique<Norm>(problem);
        if (std::holds_alternative<Embedding>(op)) return std::make_unique<Table<Embedding>>(problem);
        if (std::holds_alternative<EmbeddingBag>(op)) return std::make_unique<Table<EmbeddingBag>>(problem);
        if (std::holds_alternative<SoftmaxLoss>(op)) return std::make_unique<Loss>(problem);
        if (std::holds_alternative<AdamUpdate>(op)) return std::make_unique<Adam>(problem);
        return std::make_unique<Lamb>(problem);
    }
};

}  // namespace

const Backend& rows() {
    static const Rows rows;
    return rows;
}

}  // namespace rehearse::kernels::cpu
