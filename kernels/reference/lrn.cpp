// SPDX-License-Identifier: Apache-2.0
// dst = src scale^-beta, scale_c = bias + alpha / size * (sum of src^2 over the `size` channels around c). Krizhevsky
// et al. 2012 write alpha without the division; ONNX, PyTorch and oneDNN divide, and so do we. An even size reaches one
// channel further up than down, as in ONNX.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

struct Range {
    std::int64_t begin, end;
};

Range neighbours(const Lrn& op, std::int64_t c) {
    const std::int64_t below = (op.size - 1) / 2;
    return {std::max<std::int64_t>(c - below, 0), std::min(c - below + op.size, op.channels)};
}

// scale of each channel at pixel `first`, whose channels lie `area` apart.
std::vector<double> scales(const Lrn& op, std::span<const float> src, std::int64_t first, std::int64_t area) {
    std::vector<double> scale(op.channels, op.bias);
    for (std::int64_t c = 0; c < op.channels; ++c) {
        const auto [begin, end] = neighbours(op, c);
        for (std::int64_t j = begin; j < end; ++j) {
            const double value = src[first + j * area];
            scale[c] += op.alpha / static_cast<double>(op.size) * value * value;
        }
    }
    return scale;
}

void forward_pixel(const Lrn& op, const Buffers& b, std::int64_t first, std::int64_t area) {
    const std::vector<double> scale = scales(op, b.src[0], first, area);
    for (std::int64_t c = 0; c < op.channels; ++c) {
        const std::int64_t i = first + c * area;
        b.dst[i] = static_cast<float>(b.src[0][i] * std::pow(scale[c], -op.beta));
    }
}

// d src_c = g_c scale_c^-beta - 2 alpha beta / size src_c sum over j near c of g_j src_j scale_j^(-beta - 1).
void backward_pixel(const Lrn& op, const Buffers& b, std::int64_t first, std::int64_t area) {
    const std::vector<double> scale = scales(op, b.src[0], first, area);
    std::vector<double> diff(op.channels);
    for (std::int64_t j = 0; j < op.channels; ++j) {
        const std::int64_t i = first + j * area;
        diff[j] += b.diff_dst[i] * std::pow(scale[j], -op.beta);
        const double shared = b.diff_dst[i] * b.src[0][i] * std::pow(scale[j], -op.beta - 1);
        const auto [begin, end] = neighbours(op, j);
        for (std::int64_t c = begin; c < end; ++c) {
            diff[c] -= 2 * op.alpha * op.beta / static_cast<double>(op.size) * b.src[0][first + c * area] * shared;
        }
    }
    for (std::int64_t c = 0; c < op.channels; ++c) b.diff_src[0][first + c * area] = static_cast<float>(diff[c]);
}

}  // namespace

void run(const Lrn& op, Pass pass, std::int64_t batch, const Buffers& buffers) {
    if (pass == Pass::backward_data && buffers.diff_src[0].empty()) return;
    const std::int64_t area = op.height * op.width;
    for (std::int64_t n = 0; n < batch; ++n) {
        for (std::int64_t pixel = 0; pixel < area; ++pixel) {
            const std::int64_t first = n * op.channels * area + pixel;
            if (pass == Pass::forward) forward_pixel(op, buffers, first, area);
            if (pass == Pass::backward_data) backward_pixel(op, buffers, first, area);
        }
    }
}

}  // namespace rehearse::kernels::reference
