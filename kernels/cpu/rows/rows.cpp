// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/rows/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "kernels/cpu/rows/rows_simd.hpp"
#include "kernels/cpu/share.hpp"
#include "kernels/heads.hpp"

namespace rehearse::kernels::cpu {
namespace {

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
        const std::span<const std::int32_t> labels = b.labels.first(static_cast<std::size_t>(rows_));
        for (const std::int32_t label : labels) require(label < op_.classes, "a label is a class");
        // The mean over all rows is that over those whose label asks for something.
        const auto asking = std::ranges::count_if(labels, [](std::int32_t label) { return label >= 0; });
        const double of_row = asking == 0 ? 0 : static_cast<double>(rows_) / static_cast<double>(asking);
        const float factor = static_cast<float>(of_row) * (1.0F / static_cast<float>(b.loss_batch * op_.rows));
        share(rows_, 1, workers_, [&](std::int64_t /*worker*/, Stretch part) {
            for (std::int64_t r = part.begin; r < part.end; ++r) {
                if (labels[static_cast<std::size_t>(r)] < 0) {
                    if (forward_) losses[r] = 0;
                    if (!forward_) std::fill_n(diff_src.data() + r * op_.classes, op_.classes, 0.0F);
                    continue;
                }
                const float* const scores = src.data() + r * op_.classes;
                const std::int32_t label = b.labels[r];
                const ExpRow row = exponentials(scores, op_.classes, label);
                const float sum = row.own + row.others;
                if (forward_) {
                    losses[r] = row.own == 1 ? std::log1p(row.others) : row.largest - scores[label] + std::log(sum);
                    continue;
                }
                float* const diff = diff_src.data() + r * op_.classes;
                scaled_exponentials(scores, op_.classes, row.largest, factor / sum, diff);
                diff[label] = -factor * (row.others / sum);
            }
        });
        for (std::int64_t n = 0; forward_ && n < rows_ / op_.rows; ++n) {
            double sum = 0;
            for (std::int64_t r = n * op_.rows; r < (n + 1) * op_.rows; ++r) sum += losses[r];
            b.dst[n] = static_cast<float>(of_row * sum / static_cast<double>(op_.rows));
        }
    }

    SoftmaxLoss op_;
    std::int64_t rows_;
    bool forward_;
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
        if (std::holds_alternative<SoftmaxLoss>(op)) return std::make_unique<Loss>(problem);
        return reads_integers(op) ? make_table(problem) : make_optimizer(problem);
    }
};

}  // namespace

const Backend& rows() {
    static const Rows rows;
    return rows;
}

}  // namespace rehearse::kernels::cpu
