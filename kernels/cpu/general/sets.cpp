// SPDX-License-Identifier: Apache-2.0
// Normalization of parts of a sample, and softmax along any axis: parts and lines shared among threads. Sums in double.
#include <algorithm>
#include <cmath>

#include "core/index.hpp"
#include "kernels/cpu/general/general.hpp"
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
    // The weight of element i of a sample.
    std::int64_t feature(std::int64_t i, std::int64_t of) const { return i / op_.inner % of; }
    float gamma(const float* weights, std::int64_t i) const {
        return op_.gamma == 0 ? 1.0F : weights[feature(i, op_.gamma)];
    }

    struct Moments {
        float mean, over;  // one over the deviation
    };
    Moments moments(const float* src) const {
        double mean = 0, squares = 0;
        for (std::int64_t i = 0; op_.centred && i < size_; ++i) mean += src[i];
        mean /= static_cast<double>(size_);
        for (std::int64_t i = 0; i < size_; ++i) squares += (src[i] - mean) * (src[i] - mean);
        return {static_cast<float>(mean),
                static_cast<float>(1 / std::sqrt(squares / static_cast<double>(size_) + op_.epsilon))};
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
        const Moments m = moments(src);
        for (std::int64_t i = 0; i < size_; ++i) {
            const float beta = op_.beta == 0 ? 0.0F : weights[op_.gamma + feature(first + i, op_.beta)];
            dst[i] = (src[i] - m.mean) * m.over * gamma(weights, first + i) + beta;
        }
    }

    void backward(const float* src, std::int64_t first, const float* weights, const float* g, float* to,
                  double* sums) const {
        const Moments m = moments(src);
        double mean_h = 0, mean_hx = 0;
        for (std::int64_t i = 0; i < size_; ++i) {
            const float normal = (src[i] - m.mean) * m.over, h = g[i] * gamma(weights, first + i);
            if (op_.gamma > 0) sums[feature(first + i, op_.gamma)] += static_cast<double>(g[i]) * normal;
            if (op_.beta > 0) sums[op_.gamma + feature(first + i, op_.beta)] += g[i];
            mean_h += op_.centred ? h : 0.0F;
            mean_hx += static_cast<double>(h) * normal;
        }
        const auto h_mean = static_cast<float>(mean_h / static_cast<double>(size_));
        const auto hx_mean = static_cast<float>(mean_hx / static_cast<double>(size_));
        for (std::int64_t i = 0; to != nullptr && i < size_; ++i) {
            const float normal = (src[i] - m.mean) * m.over, h = g[i] * gamma(weights, first + i);
            to[i] = (h - h_mean - normal * hx_mean) * m.over;
        }
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
            for (std::int64_t line = part.begin; line < part.end; ++line) {
                const std::int64_t first = line / inner_ * along_ * inner_ + line % inner_;
                if (forward_) {
                    forward(b.src[0].data() + first, b.dst.data() + first);
                } else {
                    backward(b.dst_in.data() + first, b.diff_dst.data() + first, b.diff_src[0].data() + first);
                }
            }
        });
    }

    void forward(const float* src, float* dst) const {
        float most = src[0];
        for (std::int64_t i = 1; i < along_; ++i) most = std::max(most, src[i * inner_]);
        double sum = 0;
        for (std::int64_t i = 0; i < along_; ++i) {
            dst[i * inner_] = std::exp(src[i * inner_] - most);
            sum += dst[i * inner_];
        }
        const auto over = static_cast<float>(1 / sum);
        const auto log_sum = static_cast<float>(std::log(sum));
        for (std::int64_t i = 0; i < along_; ++i)
            dst[i * inner_] = op_.log ? src[i * inner_] - most - log_sum : dst[i * inner_] * over;
    }

    void backward(const float* dst, const float* g, float* to) const {
        double sum = 0;
        for (std::int64_t i = 0; i < along_; ++i)
            sum += static_cast<double>(g[i * inner_]) * (op_.log ? 1.0F : dst[i * inner_]);
        const auto all = static_cast<float>(sum);
        for (std::int64_t i = 0; i < along_; ++i) {
            const std::int64_t p = i * inner_;
            to[p] = op_.log ? g[p] - std::exp(dst[p]) * all : dst[p] * (g[p] - all);
        }
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
