// SPDX-License-Identifier: Apache-2.0
#include "run/methods/factors.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace rehearse::run {

void unfold(const Conv& conv, std::span<const float> images, std::span<float> rows) {
    const Window& w = conv.window;
    const Shape out = output_shape(Op{conv});
    const std::int64_t image = conv.channels * conv.height * conv.width;
    auto next = rows.begin();
    for (std::size_t first = 0; first < images.size(); first += static_cast<std::size_t>(image)) {
        for (std::int64_t pixel = 0; pixel < out[1] * out[2]; ++pixel) {
            const std::int64_t top = pixel / out[2] * w.stride_h - w.pad_top;
            const std::int64_t left = pixel % out[2] * w.stride_w - w.pad_left;
            for (std::int64_t c = 0; c < conv.channels; ++c) {
                for (std::int64_t tap = 0; tap < w.kernel_h * w.kernel_w; ++tap) {
                    const std::int64_t y = top + tap / w.kernel_w * w.dilation_h;
                    const std::int64_t x = left + tap % w.kernel_w * w.dilation_w;
                    const bool inside = y >= 0 && y < conv.height && x >= 0 && x < conv.width;
                    const std::int64_t place = (c * conv.height + y) * conv.width + x;
                    *next++ = inside ? images[first + static_cast<std::size_t>(place)] : 0;
                }
            }
        }
    }
}

void pixels_to_rows(std::span<const float> images, std::int64_t channels, std::int64_t pixels, std::span<float> rows) {
    const auto count = static_cast<std::size_t>(channels), all = static_cast<std::size_t>(pixels);
    for (std::size_t i = 0; i < images.size(); ++i) {
        const std::size_t sample = i / (count * all), channel = i / all % count, pixel = i % all;
        rows[(sample * all + pixel) * count + channel] = images[i];
    }
}

void filters_to_matrix(std::span<const float> filters, std::int64_t n, std::int64_t k, std::span<float> matrix) {
    const auto columns = static_cast<std::size_t>(n), height = static_cast<std::size_t>(k);
    for (std::size_t i = 0; i < columns * height; ++i) matrix[i % height * columns + i / height] = filters[i];
    std::copy(filters.begin() + n * k, filters.end(), matrix.begin() + n * k);
}

void matrix_to_filters(std::span<const float> matrix, std::int64_t n, std::int64_t k, std::span<float> filters) {
    const auto columns = static_cast<std::size_t>(n), height = static_cast<std::size_t>(k);
    for (std::size_t i = 0; i < columns * height; ++i) filters[i] = matrix[i % height * columns + i / height];
    std::copy(matrix.begin() + n * k, matrix.end(), filters.begin() + n * k);
}

void pack_factor(std::span<const float> sums, std::span<const float> rows, std::int64_t inputs, bool bias, double share,
                 std::span<float> packed) {
    const auto size = static_cast<std::size_t>(inputs);
    auto next = packed.begin();
    for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j <= i; ++j) *next++ = static_cast<float>(share * sums[i * size + j]);
    }
    if (!bias) return;
    std::vector<double> column(size);
    for (std::size_t at = 0; at < rows.size(); ++at) column[at % size] += rows[at];
    for (const double sum : column) *next++ = static_cast<float>(share * sum);
    *next = static_cast<float>(share * static_cast<double>(rows.size() / size));
}

void invert_factor(std::span<const float> packed, double damping, std::span<float> inverse) {
    const auto size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(inverse.size()))));
    Matrix matrix(size);
    auto next = packed.begin();
    for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j <= i; ++j) matrix(i, j) = matrix(j, i) = *next++;
        matrix(i, i) += damping;
    }
    if (!std::ranges::all_of(packed, [](float value) { return std::isfinite(value); })) {
        throw InputError("kfac: gradients are not finite: a lower --learning-rate, or more damping");
    }
    const Matrix inverted = rehearse::inverse(cholesky(std::move(matrix)));
    for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j < size; ++j) inverse[i * size + j] = static_cast<float>(inverted(i, j));
    }
}

}  // namespace rehearse::run
