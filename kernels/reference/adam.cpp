// SPDX-License-Identifier: Apache-2.0
// Adam with decoupled decay (Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2), and LAMB (You
// et al. 2020, algorithm 2), whose step on each tensor is as long as its weights times the learning rate. In f32, as
// optimizers are; LAMB's norms in double.
#include <cmath>

#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

// The step's direction, m^ / (sqrt(v^) + epsilon) + decay w, with moments that correct their start from 0.
struct Direction {
    const Buffers& b;
    float first = 1, second = 1;  // corrections

    explicit Direction(const Buffers& buffers) : b(buffers) {
        const auto steps = static_cast<double>(b.update_count);
        first = static_cast<float>(1 / (1 - std::pow(static_cast<double>(b.momentum_factor), steps)));
        second = static_cast<float>(1 / (1 - std::pow(static_cast<double>(b.second_factor), steps)));
    }
    void move_moments(std::int64_t i) const {
        const float gradient = b.diff_weights[i];
        b.momentum[i] = b.momentum_factor * b.momentum[i] + (1 - b.momentum_factor) * gradient;
        b.second_moment[i] = b.second_factor * b.second_moment[i] + (1 - b.second_factor) * gradient * gradient;
    }
    float at(std::int64_t i) const {
        const float divisor = std::sqrt(second * b.second_moment[i]) + b.epsilon;
        return first * b.momentum[i] / divisor + b.weight_decay * b.weights[i];
    }
};

}  // namespace

void run(const AdamUpdate& op, Pass /*pass*/, std::int64_t /*batch*/, const Buffers& b) {
    const Direction direction{b};
    for (std::int64_t i = 0; i < op.count; ++i) {
        direction.move_moments(i);
        b.weights[i] -= b.learning_rate * direction.at(i);
    }
}

void run(const LambUpdate& /*op*/, Pass /*pass*/, std::int64_t /*batch*/, const Buffers& b) {
    const Direction direction{b};
    std::int64_t begin = 0;
    for (const std::int64_t size : b.tensor_sizes) {
        const std::int64_t end = begin + size;
        double weights = 0;
        double steps = 0;
        for (std::int64_t i = begin; i < end; ++i) {
            direction.move_moments(i);
            weights += static_cast<double>(b.weights[i]) * b.weights[i];
            steps += static_cast<double>(direction.at(i)) * direction.at(i);
        }
        const double ratio = weights > 0 && steps > 0 ? std::sqrt(weights / steps) : 1;
        const auto rate = static_cast<float>(b.learning_rate * ratio);
        for (std::int64_t i = begin; i < end; ++i) b.weights[i] -= rate * direction.at(i);
        begin = end;
    }
}

}  // namespace rehearse::kernels::reference
