// SPDX-License-Identifier: Apache-2.0
// Convolution is one set of triples (src, weights, dst): a pixel, a tap and the output that they meet in. Each pass
// multiplies two of the three and sums into the third. A transposed convolution has the triples of its mirrored one
// with src and dst in each other's place. Images are volumes of one plane.
#include <algorithm>
#include <vector>

#include "kernels/reference/loops.hpp"
#include "kernels/reference/windows.hpp"

namespace rehearse::kernels::reference {
namespace {

struct Triple {
    std::int64_t src, weights, dst;
};

template <typename Visit>
void for_each_triple(const Conv& op, const Extent& out, std::int64_t n, std::int64_t f, Visit visit) {
    const Extent in{std::max<std::int64_t>(op.depth, 1), op.height, op.width};
    const std::int64_t group_channels = op.channels / op.groups;
    const std::int64_t first_channel = f / (op.filters / op.groups) * group_channels;
    std::int64_t dst = (n * op.filters + f) * out.pixels();
    for_each_place(out, [&](const Extent& at) {
        for (std::int64_t c = 0; c < group_channels; ++c) {
            const std::int64_t src = (n * op.channels + first_channel + c) * in.pixels();
            const std::int64_t weights = (f * group_channels + c) * op.window.taps();
            for_each_tap(op.window, in, at, [&](std::int64_t pixel, std::int64_t tap) {
                visit(Triple{src + pixel, weights + tap, dst});
            });
        }
        ++dst;
    });
}

template <typename Visit>
void for_each_triple(const Conv& op, std::int64_t batch, Visit visit) {
    const Extent out = extent(output_shape(op));
    for (std::int64_t n = 0; n < batch; ++n) {
        for (std::int64_t f = 0; f < op.filters; ++f) for_each_triple(op, out, n, f, visit);
    }
}

void for_each_triple(const ConvTranspose& op, std::int64_t batch, auto visit) {
    for_each_triple(mirrored(op), batch, [&](const Triple& t) { visit(Triple{t.dst, t.weights, t.src}); });
}

// A transposed convolution is not fused.
bool has_relu(const auto& op) {
    if constexpr (requires { op.relu; }) return op.relu;
    return false;
}

// Weights without the bias, which lies behind them.
std::int64_t tap_count(const auto& op) { return elements(weights(op)[0].shape); }

void forward(const auto& op, std::int64_t batch, const Buffers& b) {
    std::vector<double> sum(b.dst.size());
    const std::span<const float> src = b.src[0];
    const std::span<const float> factors = b.weights;
    for_each_triple(op, batch,
                    [&](const Triple& t) { sum[t.dst] += static_cast<double>(src[t.src]) * factors[t.weights]; });
    const std::int64_t area = static_cast<std::int64_t>(b.dst.size()) / (batch * op.filters);
    const std::int64_t taps = tap_count(op);
    for (std::size_t i = 0; i < sum.size(); ++i) {
        const std::int64_t filter = static_cast<std::int64_t>(i) / area % op.filters;
        const double result = sum[i] + (op.bias ? b.weights[taps + filter] : 0.0F);
        b.dst[i] = static_cast<float>(has_relu(op) ? std::max(result, 0.0) : result);
    }
}

// The gradient of what ReLU was given, or diff_dst itself.
std::vector<float> diff_of(const auto& op, const Buffers& b) {
    const std::span<const float> diff_dst = b.diff_dst;
    std::vector<float> diff(diff_dst.begin(), diff_dst.end());
    if (!has_relu(op)) return diff;
    const std::span<const float> dst = b.dst_in;
    for (std::size_t i = 0; i < diff.size(); ++i) {
        if (dst[i] <= 0) diff[i] = 0;
    }
    return diff;
}

void backward_data(const auto& op, std::int64_t batch, const Buffers& b) {
    const auto diff_src = b.diff_src[0];
    if (diff_src.empty()) return;
    std::vector<double> sum(diff_src.size());
    const std::vector<float> diff_dst = diff_of(op, b);
    const std::span<const float> factors = b.weights;
    for_each_triple(op, batch,
                    [&](const Triple& t) { sum[t.src] += static_cast<double>(diff_dst[t.dst]) * factors[t.weights]; });
    for (std::size_t i = 0; i < sum.size(); ++i) diff_src[i] = static_cast<float>(sum[i]);
}

void backward_weights(const auto& op, std::int64_t batch, const Buffers& b) {
    std::vector<double> sum(b.diff_weights.size());
    const std::span<const float> src = b.src[0];
    const std::vector<float> diff_dst = diff_of(op, b);
    for_each_triple(op, batch,
                    [&](const Triple& t) { sum[t.weights] += static_cast<double>(src[t.src]) * diff_dst[t.dst]; });
    if (op.bias) {
        const std::int64_t area = static_cast<std::int64_t>(b.diff_dst.size()) / (batch * op.filters);
        const std::int64_t taps = tap_count(op);
        for (std::size_t i = 0; i < b.diff_dst.size(); ++i) {
            sum[taps + static_cast<std::int64_t>(i) / area % op.filters] += diff_dst[i];
        }
    }
    for (std::size_t i = 0; i < sum.size(); ++i) b.diff_weights[i] = static_cast<float>(sum[i]);
}

void run_any(const auto& op, Pass pass, std::int64_t batch, const Buffers& buffers) {
    if (pass == Pass::forward) forward(op, batch, buffers);
    if (pass == Pass::backward_data) backward_data(op, batch, buffers);
    if (pass == Pass::backward_weights) backward_weights(op, batch, buffers);
}

}  // namespace

void run(const Conv& op, Pass pass, std::int64_t batch, const Buffers& buffers) { run_any(op, pass, batch, buffers); }

void run(const ConvTranspose& op, Pass pass, std::int64_t batch, const Buffers& buffers) {
    run_any(op, pass, batch, buffers);
}

}  // namespace rehearse::kernels::reference
