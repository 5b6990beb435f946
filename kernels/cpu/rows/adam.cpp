// SPDX-License-Identifier: Apache-2.0
// Adam in one go over memory; LAMB, which must know the norms of a whole tensor before its first step, in two.
#include <cmath>
#include <vector>

#include "kernels/cpu/rows/adam_simd.hpp"
#include "kernels/cpu/share.hpp"

namespace rehearse::kernels::cpu {
namespace {

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

}  // namespace

std::unique_ptr<Kernel> make_optimizer(const Problem& problem) {
    if (std::holds_alternative<AdamUpdate>(problem.op)) return std::make_unique<Adam>(problem);
    return std::make_unique<Lamb>(problem);
}

}  // namespace rehearse::kernels::cpu
