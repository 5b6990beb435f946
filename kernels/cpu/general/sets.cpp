// SPDX-License-Identifier: Apache-2.0
// Normalization of parts of a sample, and softmax along any axis: parts and lines shared among threads. Sums in double.
#include <algorithm>

#include "core/index.hpp"
#include "kernels/cpu/general/general.hpp"
#include "kernels/cpu/general/sets_simd.hpp"
#include "kernels/cpu/share.hpp"

namespace rehearse::kernels::cpu {
namespace {

class Sets final : public Shared {
public:
    explicit Sets(const Problem& problem)
        : Shared(problem, 0),
          op_(std::get<Normalization>(problem.op)),
          forward_(problem.pass == Pass::forward),
          sets_(problem.batch * op_.sets),
          count_(elements(op_.shape)),
          size_(count_ / op_.sets),
          sums_(whole_lines(2 * (op_.gamma + op_.beta) + 1)) {
        if (!forward_) reserve(workers_ * sums_);
    }

private:
    // Weights that elements of a sample meet: which is the one of element i, and where the next one that does not
    // follow it in memory begins.
    struct Features {
        std::int64_t of, inner;  // how many weights; elements that share one
        std::int64_t step() const { return of > 1 && inner == 1 ? 1 : 0; }
        std::int64_t at(std::int64_t i) const { return of == 0 ? 0 : i / inner % of; }
        std::int64_t until(std::int64_t i, std::int64_t end) const {
            if (of <= 1) return end;
            const std::int64_t whole = inner == 1 ? of : inner;
            return std::min(end, (i / whole + 1) * whole);
        }
    };

    // act(where it begins, run, places of its first gamma and beta) of runs of elements whose weights are one, or lie
    // side by side.
    template <typename Act>
    void runs(const float* src, std::int64_t first, const float* weights, Act act) const {
        static constexpr float one = 1, zero = 0;
        const Features gamma{op_.gamma, op_.inner}, beta{op_.beta, op_.inner};
        for (std::int64_t i = 0; i < size_;) {
            const std::int64_t end =
                std::min(gamma.until(first + i, first + size_), beta.until(first + i, first + size_));
            const std::int64_t of_gamma = gamma.at(first + i), of_beta = op_.gamma + beta.at(first + i);
            act(i,
                SetRun{.count = end - first - i,
                       .src = src + i,
                       .gamma = op_.gamma == 0 ? &one : weights + of_gamma,
                       .beta = op_.beta == 0 ? &zero : weights + of_beta,
                       .gamma_step = gamma.step(),
                       .beta_step = beta.step()},
                of_gamma, of_beta);
            i = end - first;
        }
    }

    void compute(const Buffers& b, float* scratch) override {
        auto* const all = reinterpret_cast<double*>(scratch);
        if (!forward_) std::fill_n(all, workers_ * sums_ / 2, 0.0);
        const float* const weights = b.weights.data();
        share(sets_, 1, workers_, [&](std::int64_t worker, Stretch part) {
            for (std::int64_t set = part.begin; set < part.end; ++set) {
                const float* const src = b.src[0].data() + set * size_;
                const std::int64_t first = set * size_ % count_;
                if (forward_) {
                    forward(src, first, weights, b.dst.data() + set * size_);
                } else {
                    float* const to = b.diff_src[0].empty() ? nullptr : b.diff_src[0].data() + set * size_;
                    backward(src, first, weights, b.diff_dst.data() + set * size_, to, all + worker * sums_ / 2);
                }
            }
        });
        for (std::int64_t i = 0; !forward_ && i < op_.gamma + op_.beta; ++i) {
            double sum = 0;
            for (std::int64_t worker = 0; worker < workers_; ++worker) sum += all[worker * sums_ / 2 + i];
            b.diff_weights[i] = static_cast<float>(sum);
        }
    }

    void forward(const float* src, std::int64_t first, const float* weights, float* dst) const {
        const SetMoments m = set_moments(src, size_, op_.centred, op_.epsilon);
        runs(src, first, weights,
             [&](std::int64_t i, const SetRun& run, std::int64_t /*gamma*/, std::int64_t /*beta*/) {
                 scale_run(run, m, dst + i);
             });
    }

    void backward(const float* src, std::int64_t first, const float* weights, const float* g, float* to,
                  double* sums) const {
        const SetMoments m = set_moments(src, size_, op_.centred, op_.epsilon);
        SetSums all;
        runs(src, first, weights, [&](std::int64_t i, const SetRun& run, std::int64_t gamma, std::int64_t beta) {
            const SetSums some =
                sum_run(run, m, g + i, op_.gamma == 0 ? nullptr : sums + gamma, op_.beta == 0 ? nullptr : sums + beta);
            all.h += some.h;
            all.hx += some.hx;
        });
        if (to == nullptr) return;
        const auto h_mean = op_.centred ? static_cast<float>(all.h / static_cast<double>(size_)) : 0.0F;
        const auto hx_mean = static_cast<float>(all.hx / static_cast<double>(size_));
        runs(src, first, weights,
             [&](std::int64_t i, const SetRun& run, std::int64_t /*gamma*/, std::int64_t /*beta*/) {
                 run_gradient(run, m, g + i, h_mean, hx_mean, to + i);
             });
    }

    Normalization op_;
    bool forward_;
    std::int64_t sets_, count_, size_, sums_;
};

// A line is what one softmax goes along; the lines of a block lie beside each other.
class Softmaxes final : public Shared {
public:
    explicit Softmaxes(const Problem& problem)
        : Shared(problem, 0),
          op_(std::get<SoftmaxAlong>(problem.op)),
          forward_(problem.pass == Pass::forward),
          along_(op_.shape[at(op_.axis)]),
          inner_(elements(Shape(op_.shape.begin() + op_.axis + 1, op_.shape.end()))),
          lines_(problem.batch * elements(op_.shape) / along_) {}

private:
    void compute(const Buffers& b, float* /*scratch*/) override {
        share(lines_, 1, workers_, [&](std::int64_t /*worker*/, Stretch part) {
            for (std::int64_t line = part.begin; line < part.end;) {  // as many as lie side by side
                const std::int64_t first = line / inner_ * along_ * inner_ + line % inner_;
                const std::int64_t count = std::min(part.end - line, inner_ - line % inner_);
                const SoftmaxLines lines{.along = along_, .stride = inner_, .count = count, .log = op_.log};
                if (forward_) {
                    softmax_lines(lines, b.src[0].data() + first, b.dst.data() + first);
                } else {
                    softmax_lines_gradient(lines, b.dst_in.data() + first, b.diff_dst.data() + first,
                                           b.diff_src[0].data() + first);
                }
                line += count;
            }
        });
    }

    SoftmaxAlong op_;
    bool forward_;
    std::int64_t along_, inner_, lines_;
};

}  // namespace

std::unique_ptr<Kernel> make_sets(const Problem& problem) {
    if (std::holds_alternative<SoftmaxAlong>(problem.op)) return std::make_unique<Softmaxes>(problem);
    return std::make_unique<Sets>(problem);
}

}  // namespace rehearse::kernels::cpu
