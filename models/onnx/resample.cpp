// SPDX-License-Identifier: Apache-2.0
// Coordinates and weights as ONNX's specification of Resize has them (opset 19).
#include "models/onnx/resample.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rehearse::models {
namespace {

constexpr double most_weights = 1 << 26;  // of a matrix

// Where the centre of pixel i lies in the input.
std::optional<double> centre(const Resampling& by, double i, double from, double to, double scale) {
    const std::string& where = by.coordinates;
    if (where == "half_pixel") return (i + 0.5) / scale - 0.5;
    if (where == "pytorch_half_pixel") return to > 1 ? (i + 0.5) / scale - 0.5 : 0;
    if (where == "align_corners") return to > 1 ? i * (from - 1) / (to - 1) : 0;
    if (where == "asymmetric") return i / scale;
    if (where == "tf_half_pixel_for_nn") return (i + 0.5) / scale;
    if (where == "half_pixel_symmetric") {
        const double whole = from * scale, adjusted = to / whole;
        return from / 2 * (1 - adjusted) + (i + 0.5) / scale - 0.5;
    }
    return std::nullopt;
}

double nearest(const std::string& rounding, double at) {
    if (rounding == "floor") return std::floor(at);
    if (rounding == "ceil") return std::ceil(at);
    return rounding == "round_prefer_ceil" ? std::floor(at + 0.5) : std::ceil(at - 0.5);
}

// Keys 1981: the weight of a pixel so far away.
double cubic(double a, double x) {
    x = std::abs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

std::vector<std::pair<double, double>> mixture(const Resampling& by, double at) {
    if (by.mode == "nearest") return {{nearest(by.rounding, at), 1}};
    const double low = std::floor(at), part = at - low;
    if (by.mode == "linear") return {{low, 1 - part}, {low + 1, part}};
    std::vector<std::pair<double, double>> all;
    for (int k = -1; k <= 2; ++k) all.emplace_back(low + k, cubic(by.cubic, part - k));
    return all;
}

}  // namespace

std::optional<std::vector<float>> resampled(const Resampling& by, std::int64_t from, std::int64_t to, double scale) {
    const auto in = static_cast<double>(from);
    if (in * static_cast<double>(to) > most_weights) return std::nullopt;
    std::vector<float> matrix(static_cast<std::size_t>(from * to), 0);
    for (std::int64_t i = 0; i < to; ++i) {
        const auto at = centre(by, static_cast<double>(i), in, static_cast<double>(to), scale);
        if (!at || !std::isfinite(*at)) return std::nullopt;
        std::vector<std::pair<double, double>> parts = mixture(by, *at);
        double sum = 1;
        if (by.outside_excluded && by.mode == "cubic") {
            std::erase_if(parts, [&](const auto& part) { return part.first < 0 || part.first > in - 1; });
            sum = 0;
            for (const auto& part : parts) sum += part.second;
        }
        for (const auto& [pixel, weight] : parts) {
            const auto place = static_cast<std::int64_t>(std::clamp(pixel, 0.0, in - 1));
            matrix[static_cast<std::size_t>(i * from + place)] += static_cast<float>(weight / sum);
        }
    }
    return matrix;
}

}  // namespace rehearse::models
