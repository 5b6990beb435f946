// SPDX-License-Identifier: Apache-2.0
// Layer normalization (Ba et al. 2016): each row of a sample by its own mean and biased variance.
#include <cmath>
#include <vector>

#include "kernels/heads.hpp"
#include "kernels/reference/loops.hpp"

namespace rehearse::kernels::reference {
namespace {

void forward(const LayerNorm& op, std::int64_t rows, const Buffers& b) {
    const std::span<const float> src = b.src[0];
    const auto count = static_cast<double>(op.features);
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t first = r * op.features;
        double mean = 0;
        double variance = 0;
        for (std::int64_t i = 0; i < op.features; ++i) mean += src[first + i] / count;
        for (std::int64_t i = 0; i < op.features; ++i) variance += std::pow(src[first + i] - mean, 2) / count;
        for (std::int64_t i = 0; i < op.features; ++i) {
            const double normal = (src[first + i] - mean) / std::sqrt(variance + layer_norm_epsilon);
            b.dst[first + i] = static_cast<float>(normal * b.weights[i] + b.weights[op.features + i]);
        }
        b.workspace[r] = static_cast<float>(mean);
        b.workspace[rows + r] = static_cast<float>(variance);
    }
}

// With x^ = (x - mean) / deviation of a row: d gamma = sum g x^ and d beta = sum g over the rows; with h = g gamma,
// d x = (h - mean h - x^ mean (h x^)) / deviation.
void backward(const LayerNorm& op, std::int64_t rows, const Buffers& b) {
    const std::span<const float> src = b.src[0];
    const std::span<float> diff_src = b.diff_src[0];
    const auto count = static_cast<double>(op.features);
    std::vector<double> sums(2 * op.features);
    for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t first = r * op.features;
        const double mean = b.workspace[r];
        const double deviation = std::sqrt(b.workspace[rows + r] + layer_norm_epsilon);
        double mean_h = 0;
        double mean_hx = 0;
        for (std::int64_t i = 0; i < op.features; ++i) {
            const double normal = (src[first + i] - mean) / deviation;
            const double g = b.diff_dst[first + i];
            sums[i] += g * normal;
            sums[op.features + i] += g;
            mean_h += g * b.weights[i] / count;
            mean_hx += g * b.weights[i] * normal / count;
        }
        for (std::int64_t i = 0; !diff_src.empty() && i < op.features; ++i) {
            const double normal = (src[first + i] - mean) / deviation;
            const double h = static_cast<double>(b.diff_dst[first + i]) * b.weights[i];
            diff_src[first + i] = static_cast<float>((h - mean_h - normal * mean_hx) / deviation);
        }
    }
    for (std::size_t i = 0; i < sums.size(); ++i) b.diff_weights[i] = static_cast<float>(sums[i]);
}

}  // namespace

void run(const LayerNorm& op, Pass pass, std::int64_t batch, const Buffers& buffers) {
    if (pass == Pass::forward) forward(op, batch * op.rows, buffers);
    if (pass == Pass::backward_data) backward(op, batch * op.rows, buffers);
}

}  // namespace rehearse::kernels::reference
