// SPDX-License-Identifier: Apache-2.0
// Batch normalization with the statistics of this batch (Ioffe and Szegedy 2015, algorithms 1 and 2). The workspace
// keeps mean {channels} and biased variance {channels}; the running variance takes the unbiased one, as the paper does.
#include <algorithm>
#include <cmath>

#include "kernels/batchnorm.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

// visit(index) for each value of channel c.
template <typename Visit>
void for_each_value(const BatchNorm& op, std::int64_t batch, std::int64_t c, Visit visit) {
    const std::int64_t area = pixels(op);
    for (std::int64_t n = 0; n < batch; ++n) {
        for (std::int64_t i = 0; i < area; ++i) visit((n * op.channels + c) * area + i);
    }
}

double gamma(const BatchNorm& op, std::int64_t c, const Buffers& b) { return op.affine ? b.weights[c] : 1.0; }

struct Statistics {
    double mean = 0, variance = 0;
};

/// Of all blocks, from the sums of their values and squares.
Statistics statistics_of_sums(const BatchNorm& op, std::int64_t batch, std::int64_t c, const Buffers& b) {
    const auto sums = b.src.back();
    const auto count = static_cast<double>(batch * op.parts * pixels(op));
    double values = 0, squares = 0;
    for (std::int64_t n = 0; n < batch; ++n) {
        values += sums[n * 2 * op.channels + c];
        squares += sums[(n * 2 + 1) * op.channels + c];
    }
    const double mean = values / count;
    return {mean, std::max(0.0, squares / count - mean * mean)};
}

Statistics statistics(const BatchNorm& op, std::int64_t batch, std::int64_t c, const Buffers& b) {
    if (op.parts > 1) return statistics_of_sums(op, batch, c, b);
    const auto src = b.src[0];
    const auto count = static_cast<double>(batch * pixels(op));
    Statistics of;
    for_each_value(op, batch, c, [&](std::int64_t i) { of.mean += src[i] / count; });
    for_each_value(op, batch, c,
                   [&](std::int64_t i) { of.variance += (src[i] - of.mean) * (src[i] - of.mean) / count; });
    return of;
}

void forward(const BatchNorm& op, std::int64_t batch, const Buffers& b) {
    const auto src = b.src[0];
    for (std::int64_t c = 0; c < op.channels; ++c) {
        const Statistics of = statistics(op, batch, c, b);
        const double mean = of.mean, variance = of.variance;
        const double scale = gamma(op, c, b) / std::sqrt(variance + op.epsilon);
        const double shift = op.affine ? b.weights[op.channels + c] : 0.0F;
        for_each_value(op, batch, c, [&](std::int64_t i) {
            const double result = (src[i] - mean) * scale + shift + (op.add ? b.src[1][i] : 0.0F);
            b.dst[i] = static_cast<float>(op.relu ? std::max(result, 0.0) : result);
        });
        b.workspace[c] = static_cast<float>(mean);
        b.workspace[op.channels + c] = static_cast<float>(variance);
    }
    update_running_statistics(op, batch, b);
}

struct Gradient {
    double gamma = 0, beta = 0;
};

// By the chain rule through mean = S1 / N and variance = S2 / N - mean^2, S1 and S2 the sums of values and squares:
// d variance = -gamma d gamma / (2 deviation^2), d mean = -gamma d beta / deviation, so d S2 = d variance / N and
// d S1 = (d mean - 2 mean d variance) / N, the same for each sample's part of the sums.
void gradient_of_sums(const BatchNorm& op, std::int64_t batch, std::int64_t c, Gradient gradient, const Buffers& b) {
    const auto diff = b.diff_src.back();
    if (diff.empty()) return;
    const double mean = b.workspace[c], squared = b.workspace[op.channels + c] + op.epsilon;
    const auto count = static_cast<double>(batch * op.parts * pixels(op));
    const double variance = -gamma(op, c, b) * gradient.gamma / (2 * squared);
    const double values = (-gamma(op, c, b) * gradient.beta / std::sqrt(squared) - 2 * mean * variance) / count;
    for (std::int64_t n = 0; n < batch; ++n) {
        diff[n * 2 * op.channels + c] = static_cast<float>(values);
        diff[(n * 2 + 1) * op.channels + c] = static_cast<float>(variance / count);
    }
}

// With x^ = (x - mean) / deviation over N values: d gamma = sum g x^, d beta = sum g,
// d x = gamma / deviation (g - d beta / N - x^ d gamma / N). g is diff_dst, or what a fused ReLU passes on of it, and
// that is also the gradient of a shortcut.
void backward(const BatchNorm& op, std::int64_t batch, const Buffers& b) {
    const auto src = b.src[0];
    const auto count = static_cast<double>(batch * pixels(op));
    const auto diff = [&](std::int64_t i) { return op.relu && b.dst_in[i] <= 0 ? 0.0F : b.diff_dst[i]; };
    for (std::size_t i = 0; op.add && i < b.diff_src[1].size(); ++i) {
        b.diff_src[1][i] = diff(static_cast<std::int64_t>(i));
    }
    for (std::int64_t c = 0; c < op.channels; ++c) {
        const double mean = b.workspace[c];
        const double deviation = std::sqrt(b.workspace[op.channels + c] + op.epsilon);
        double diff_gamma = 0;
        double diff_beta = 0;
        for_each_value(op, batch, c, [&](std::int64_t i) {
            diff_gamma += diff(i) * (src[i] - mean) / deviation;
            diff_beta += diff(i);
        });
        if (op.affine) {
            b.diff_weights[c] = static_cast<float>(diff_gamma);
            b.diff_weights[op.channels + c] = static_cast<float>(diff_beta);
        }
        if (op.parts > 1) gradient_of_sums(op, batch, c, {diff_gamma, diff_beta}, b);
        if (b.diff_src[0].empty()) continue;
        for_each_value(op, batch, c, [&](std::int64_t i) {
            const double normal = (src[i] - mean) / deviation;
            // With sums of all blocks the mean's and the variance's part of it goes by way of these.
            const double rest = diff(i) - (op.parts > 1 ? 0 : (diff_beta + normal * diff_gamma) / count);
            b.diff_src[0][i] = static_cast<float>(gamma(op, c, b) / deviation * rest);
        });
    }
}

void sum_channels(const ChannelSums& op, std::int64_t batch, const Buffers& b) {
    const std::int64_t area = pixels(op);
    for (std::int64_t n = 0; n < batch; ++n) {
        for (std::int64_t c = 0; c < op.channels; ++c) {
            double values = 0, squares = 0;
            for (std::int64_t i = 0; i < area; ++i) {
                const double value = b.src[0][(n * op.channels + c) * area + i];
                values += value;
                squares += value * value;
            }
            b.dst[n * 2 * op.channels + c] = static_cast<float>(values);
            b.dst[(n * 2 + 1) * op.channels + c] = static_cast<float>(squares);
        }
    }
}

void gradient_through_sums(const ChannelSums& op, std::int64_t batch, const Buffers& b) {
    const std::int64_t area = pixels(op);
    if (b.diff_src[0].empty()) return;
    for (std::int64_t n = 0; n < batch; ++n) {
        for (std::int64_t c = 0; c < op.channels; ++c) {
            const double values = b.diff_dst[n * 2 * op.channels + c];
            const double squares = b.diff_dst[(n * 2 + 1) * op.channels + c];
            for (std::int64_t i = 0; i < area; ++i) {
                const std::int64_t at = (n * op.channels + c) * area + i;
                b.diff_src[0][at] = static_cast<float>(values + 2 * b.src[0][at] * squares);
            }
        }
    }
}

}  // namespace

void run(const ChannelSums& op, Pass pass, std::int64_t batch, const Buffers& buffers) {
    if (pass == Pass::forward) sum_channels(op, batch, buffers);
    if (pass == Pass::backward_data) gradient_through_sums(op, batch, buffers);
}

void run(const BatchNorm& op, Pass pass, std::int64_t batch, const Buffers& buffers) {
    if (pass == Pass::forward) forward(op, batch, buffers);
    if (pass == Pass::backward_data) backward(op, batch, buffers);
}

}  // namespace rehearse::kernels::reference
