// SPDX-License-Identifier: Apache-2.0
// Batch normalization with the statistics of this batch (Ioffe and Szegedy 2015, algorithms 1 and 2). The workspace
// keeps mean {channels} and biased variance {channels}; the running variance takes the unbiased one, as the paper does.
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

void forward(const BatchNorm& op, std::int64_t batch, const Buffers& b) {
    const auto src = b.src[0];
    const auto count = static_cast<double>(batch * pixels(op));
    for (std::int64_t c = 0; c < op.channels; ++c) {
        double mean = 0;
        double variance = 0;
        for_each_value(op, batch, c, [&](std::int64_t i) { mean += src[i] / count; });
        for_each_value(op, batch, c, [&](std::int64_t i) { variance += (src[i] - mean) * (src[i] - mean) / count; });
        const double scale = b.weights[c] / std::sqrt(variance + batchnorm_epsilon);
        const double shift = b.weights[op.channels + c];
        for_each_value(op, batch, c,
                       [&](std::int64_t i) { b.dst[i] = static_cast<float>((src[i] - mean) * scale + shift); });
        b.workspace[c] = static_cast<float>(mean);
        b.workspace[op.channels + c] = static_cast<float>(variance);
    }
    update_running_statistics(op, batch, b);
}

// With x^ = (x - mean) / deviation over N values: d gamma = sum g x^, d beta = sum g,
// d x = gamma / deviation (g - d beta / N - x^ d gamma / N).
void backward(const BatchNorm& op, std::int64_t batch, const Buffers& b) {
    const auto src = b.src[0];
    const auto count = static_cast<double>(batch * pixels(op));
    for (std::int64_t c = 0; c < op.channels; ++c) {
        const double mean = b.workspace[c];
        const double deviation = std::sqrt(b.workspace[op.channels + c] + batchnorm_epsilon);
        double diff_gamma = 0;
        double diff_beta = 0;
        for_each_value(op, batch, c, [&](std::int64_t i) {
            diff_gamma += b.diff_dst[i] * (src[i] - mean) / deviation;
            diff_beta += b.diff_dst[i];
        });
        b.diff_weights[c] = static_cast<float>(diff_gamma);
        b.diff_weights[op.channels + c] = static_cast<float>(diff_beta);
        if (b.diff_src[0].empty()) continue;
        for_each_value(op, batch, c, [&](std::int64_t i) {
            const double normal = (src[i] - mean) / deviation;
            const double rest = b.diff_dst[i] - (diff_beta + normal * diff_gamma) / count;
            b.diff_src[0][i] = static_cast<float>(b.weights[c] / deviation * rest);
        });
    }
}

}  // namespace

void run(const BatchNorm& op, Pass pass, std::int64_t batch, const Buffers& buffers) {
    if (pass == Pass::forward) forward(op, batch, buffers);
    if (pass == Pass::backward_data) backward(op, batch, buffers);
}

}  // namespace rehearse::kernels::reference
