// SPDX-License-Identifier: Apache-2.0
// Windows may stick out of the image on any side. The largest of equal pixels is the first of them, row by row; a
// window that holds no pixel at all gives 0 and takes no gradient.
#include <algorithm>
#include <vector>

#include "kernels/reference/loops.hpp"
#include "kernels/reference/windows.hpp"

namespace rehearse::kernels::reference {
namespace {

// visit(dst index, pixels of the window as src indices) for each output.
template <typename Visit>
void for_each_window(const Pool& op, std::int64_t batch, Visit visit) {
    const Extent in{op.depth == 0 ? 1 : op.depth, op.height, op.width};
    const Extent out = extent(output_shape(op));
    std::vector<std::int64_t> pixels;
    std::int64_t dst = 0;
    for (std::int64_t channel = 0; channel < batch * op.channels; ++channel) {
        for_each_place(out, [&](const Extent& at) {
            pixels.clear();
            for_each_tap(op.window, in, at,
                         [&](std::int64_t pixel, std::int64_t) { pixels.push_back(channel * in.pixels() + pixel); });
            visit(dst++, pixels);
        });
    }
}

std::int64_t first_largest(std::span<const float> src, const std::vector<std::int64_t>& pixels) {
    return *std::max_element(pixels.begin(), pixels.end(),
                             [&](std::int64_t a, std::int64_t b) { return src[a] < src[b]; });
}

double divisor(const Pool& op, const std::vector<std::int64_t>& pixels) {
    if (op.count_padding) return static_cast<double>(op.window.taps());
    return static_cast<double>(pixels.size());
}

void forward(const Pool& op, std::int64_t batch, const Buffers& b) {
    const auto src = b.src[0];
    for_each_window(op, batch, [&](std::int64_t dst, const std::vector<std::int64_t>& pixels) {
        double value = 0;
        if (!pixels.empty() && op.kind == PoolKind::max) value = src[first_largest(src, pixels)];
        if (!pixels.empty() && op.kind == PoolKind::average) {
            for (const std::int64_t pixel : pixels) value += src[pixel];
            value /= divisor(op, pixels);
        }
        b.dst[dst] = static_cast<float>(value);
    });
}

void backward_data(const Pool& op, std::int64_t batch, const Buffers& b) {
    if (b.diff_src[0].empty()) return;
    std::vector<double> sum(b.diff_src[0].size());
    for_each_window(op, batch, [&](std::int64_t dst, const std::vector<std::int64_t>& pixels) {
        if (pixels.empty()) return;
        if (op.kind == PoolKind::max) {
            sum[first_largest(b.src[0], pixels)] += b.diff_dst[dst];
        } else {
            for (const std::int64_t pixel : pixels) sum[pixel] += b.diff_dst[dst] / divisor(op, pixels);
        }
    });
    for (std::size_t i = 0; i < sum.size(); ++i) b.diff_src[0][i] = static_cast<float>(sum[i]);
}

}  // namespace

void run(const Pool& op, Pass pass, std::int64_t batch, const Buffers& buffers) {
    if (pass == Pass::forward) forward(op, batch, buffers);
    if (pass == Pass::backward_data) backward_data(op, batch, buffers);
}

}  // namespace rehearse::kernels::reference
