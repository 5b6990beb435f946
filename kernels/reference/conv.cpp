// SPDX-License-Identifier: Apache-2.0
// Convolution is one set of triples (src, weights, dst): a pixel, a tap and the output that they meet in. Each pass
// multiplies two of the three and sums into the third.
#include <algorithm>
#include <vector>

#include "kernels/reference/loops.hpp"
#include "kernels/reference/windows.hpp"

namespace rehearse::kernels::reference {
namespace {

// visit(src index, weights index, dst index) for each triple of sample n and filter f.
template <typename Visit>
void for_each_triple(const Conv2d& op, const Shape& out, std::int64_t n, std::int64_t f, Visit visit) {
    const std::int64_t group_channels = op.channels / op.groups;
    const std::int64_t first_channel = f / (op.filters / op.groups) * group_channels;
    for (std::int64_t y = 0; y < out[1]; ++y) {
        for (std::int64_t x = 0; x < out[2]; ++x) {
            const std::int64_t dst = ((n * op.filters + f) * out[1] + y) * out[2] + x;
            for (std::int64_t c = 0; c < group_channels; ++c) {
                const std::int64_t src = (n * op.channels + first_channel + c) * op.height * op.width;
                const std::int64_t weights = (f * group_channels + c) * op.window.kernel_h * op.window.kernel_w;
                for_each_tap(op.window, op.height, op.width, y, x,
                             [&](std::int64_t pixel, std::int64_t tap) { visit(src + pixel, weights + tap, dst); });
            }
        }
    }
}

template <typename Visit>
void for_each_triple(const Conv2d& op, std::int64_t batch, Visit visit) {
    const Shape out = output_shape(op);
    for (std::int64_t n = 0; n < batch; ++n) {
        for (std::int64_t f = 0; f < op.filters; ++f) for_each_triple(op, out, n, f, visit);
    }
}

// Weights without the bias, which lies behind them.
std::int64_t tap_count(const Conv2d& op) {
    return op.filters * (op.channels / op.groups) * op.window.kernel_h * op.window.kernel_w;
}

void forward(const Conv2d& op, std::int64_t batch, const Buffers& b) {
    std::vector<double> sum(b.dst.size());
    const auto src = b.src[0];
    for_each_triple(op, batch, [&](std::int64_t s, std::int64_t w, std::int64_t d) {
        sum[d] += static_cast<double>(src[s]) * b.weights[w];
    });
    const std::int64_t area = static_cast<std::int64_t>(b.dst.size()) / (batch * op.filters);
    for (std::size_t i = 0; i < sum.size(); ++i) {
        const std::int64_t filter = static_cast<std::int64_t>(i) / area % op.filters;
        const double result = sum[i] + (op.bias ? b.weights[tap_count(op) + filter] : 0.0F);
        b.dst[i] = static_cast<float>(op.relu ? std::max(result, 0.0) : result);
    }
}

// The gradient of what ReLU was given, or diff_dst itself.
float diff_at(const Conv2d& op, const Buffers& b, std::int64_t i) {
    return op.relu && b.dst_in[i] <= 0 ? 0 : b.diff_dst[i];
}

void backward_data(const Conv2d& op, std::int64_t batch, const Buffers& b) {
    const auto diff_src = b.diff_src[0];
    if (diff_src.empty()) return;
    std::vector<double> sum(diff_src.size());
    for_each_triple(op, batch, [&](std::int64_t s, std::int64_t w, std::int64_t d) {
        sum[s] += static_cast<double>(diff_at(op, b, d)) * b.weights[w];
    });
    for (std::size_t i = 0; i < sum.size(); ++i) diff_src[i] = static_cast<float>(sum[i]);
}

void backward_weights(const Conv2d& op, std::int64_t batch, const Buffers& b) {
    std::vector<double> sum(b.diff_weights.size());
    const auto src = b.src[0];
    for_each_triple(op, batch, [&](std::int64_t s, std::int64_t w, std::int64_t d) {
        sum[w] += static_cast<double>(src[s]) * diff_at(op, b, d);
    });
    if (op.bias) {
        const std::int64_t area = static_cast<std::int64_t>(b.diff_dst.size()) / (batch * op.filters);
        for (std::size_t i = 0; i < b.diff_dst.size(); ++i) {
            const auto at = static_cast<std::int64_t>(i);
            sum[tap_count(op) + at / area % op.filters] += diff_at(op, b, at);
        }
    }
    for (std::size_t i = 0; i < sum.size(); ++i) b.diff_weights[i] = static_cast<float>(sum[i]);
}

}  // namespace

void run(const Conv2d& op, Pass pass, std::int64_t batch, const Buffers& buffers) {
    if (pass == Pass::forward) forward(op, batch, buffers);
    if (pass == Pass::backward_data) backward_data(op, batch, buffers);
    if (pass == Pass::backward_weights) backward_weights(op, batch, buffers);
}

}  // namespace rehearse::kernels::reference
