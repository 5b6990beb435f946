// SPDX-License-Identifier: Apache-2.0
// The matrices of K-FAC: rows of which factors are sums of products, factors packed as they are sent, inverses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/matrix.hpp"
#include "core/op.hpp"

namespace rehearse::run {

/// What lies under a convolution's filters, a row {channels, kernel} for each pixel of its output: of {samples,
/// channels, height, width} {samples * pixels, channels * taps}, zero outside of the image.
void unfold(const Conv& conv, std::span<const float> images, std::span<float> rows);
/// {samples, channels, pixels} to {samples * pixels, channels}.
void pixels_to_rows(std::span<const float> images, std::int64_t channels, std::int64_t pixels, std::span<float> rows);
/// A convolution's filters {n, k} and, behind them, perhaps its bias {n}, as the matrix {k, n} with the bias as its
/// last row; and back.
void filters_to_matrix(std::span<const float> filters, std::int64_t n, std::int64_t k, std::span<float> matrix);
void matrix_to_filters(std::span<const float> matrix, std::int64_t n, std::int64_t k, std::span<float> filters);

/// `sums` {k, k} and, where there is a bias, the sums of the inputs {k} and the number of rows: the lower triangle of
/// `share` times them all, row by row, into `packed`.
void pack_factor(std::span<const float> sums, std::span<const float> rows, std::int64_t inputs, bool bias, double share,
                 std::span<float> packed);

/// Writes (matrix + damping I)^-1 of a packed lower triangle of `size` rows, into `inverse` {size, size}.
/// InputError when it is not positive definite: the gradients are not finite.
void invert_factor(std::span<const float> packed, double damping, std::span<float> inverse);

}  // namespace rehearse::run
