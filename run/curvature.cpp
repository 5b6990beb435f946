// SPDX-License-Identifier: Apache-2.0
#include "run/curvature.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"

namespace rehearse::run {

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
