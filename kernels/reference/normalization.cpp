// SPDX-License-Identifier: Apache-2.0
// Normalization of parts of a sample (instance, group and RMS normalization), and softmax along any axis.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/index.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {

// As LayerNorm's: with x^ = (x - mean) / deviation, h = g gamma: d x = (h - mean h - x^ mean (h x^)) / deviation; not
// centred, without mean h.
void run(const Normalization& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const std::int64_t count = elements(op.shape), size = count / op.sets;
    const auto of_all = static_cast<double>(size);
    std::vector<double> sums(at(op.gamma + op.beta));
    for (std::int64_t set = 0; set < batch * op.sets; ++set) {
        const std::int64_t first = set * size, in_sample = first % count;
        const auto feature = [&](std::int64_t i, std::int64_t of) { return (in_sample + i) / op.inner % of; };
        double mean = 0, squares = 0, mean_h = 0, mean_hx = 0;
        for (std::int64_t i = 0; op.centred && i < size; ++i) mean += b.src[0][first + i] / of_all;
        for (std::int64_t i = 0; i < size; ++i) squares += std::pow(b.src[0][first + i] - mean, 2) / of_all;
        const double deviation = std::sqrt(squares + op.epsilon);
        const auto normal = [&](std::int64_t i) { return (b.src[0][first + i] - mean) / deviation; };
        const auto gamma = [&](std::int64_t i) -> double {
            return op.gamma == 0 ? 1.0 : b.weights[feature(i, op.gamma)];
        };
        for (std::int64_t i = 0; i < size; ++i) {
            if (pass == Pass::forward) {
                const double beta = op.beta == 0 ? 0.0 : b.weights[op.gamma + feature(i, op.beta)];
                b.dst[first + i] = static_cast<float>(normal(i) * gamma(i) + beta);
                continue;
            }
            const double g = b.diff_dst[first + i];
            if (op.gamma > 0) sums[at(feature(i, op.gamma))] += g * normal(i);
            if (op.beta > 0) sums[at(op.gamma + feature(i, op.beta))] += g;
            mean_h += op.centred ? g * gamma(i) / of_all : 0;
            mean_hx += g * gamma(i) * normal(i) / of_all;
        }
        for (std::int64_t i = 0; pass == Pass::backward_data && !b.diff_src[0].empty() && i < size; ++i) {
            const double h = b.diff_dst[first + i] * gamma(i);
            b.diff_src[0][first + i] = static_cast<float>((h - mean_h - normal(i) * mean_hx) / deviation);
        }
    }
    for (std::size_t i = 0; pass == Pass::backward_data && i < sums.size(); ++i)
        b.diff_weights[i] = static_cast<float>(sums[i]);
}

void run(const SoftmaxAlong& op, Pass pass, std::int64_t batch, const Buffers& b) {
    const std::int64_t along = op.shape[at(op.axis)];
    const std::int64_t inner = elements(Shape(op.shape.begin() + op.axis + 1, op.shape.end()));
    for (std::int64_t line = 0; line < batch * elements(op.shape) / along; ++line) {
        const std::int64_t first = line / inner * along * inner + line % inner;
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (std::int64_t i = 0; pass == Pass::forward && i < along; ++i)
            most = std::max<double>(most, b.src[0][first + i * inner]);
        for (std::int64_t i = 0; i < along; ++i) {
            const std::int64_t place = first + i * inner;
            if (pass == Pass::forward) sum += std::exp(b.src[0][place] - most);
            if (pass == Pass::backward_data)
                sum += static_cast<double>(b.diff_dst[place]) * (op.log ? 1.0F : b.dst_in[place]);
        }
        for (std::int64_t i = 0; i < along; ++i) {
            const std::int64_t place = first + i * inner;
            if (pass == Pass::forward) {
                const double one = b.src[0][place] - most;
                b.dst[place] = static_cast<float>(op.log ? one - std::log(sum) : std::exp(one) / sum);
            } else if (op.log) {
                b.diff_src[0][place] = static_cast<float>(b.diff_dst[place] - std::exp(double{b.dst_in[place]}) * sum);
            } else {
                b.diff_src[0][place] = static_cast<float>(b.dst_in[place] * (b.diff_dst[place] - sum));
            }
        }
    }
}

}  // namespace rehearse::kernels::reference
