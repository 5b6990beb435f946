// SPDX-License-Identifier: Apache-2.0
// What a rank keeps of K-FAC: both factors of each layer, and the inverses of the layers that it owns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/matrix.hpp"

namespace rehearse::run {

/// `sums` {k, k} and, where there is a bias, the sums of the inputs {k} and the number of rows: the lower triangle of
/// `share` times them all, row by row, into `packed`.
void pack_factor(std::span<const float> sums, std::span<const float> rows, std::int64_t inputs, bool bias, double share,
                 std::span<float> packed);

/// (matrix + damping I)^-1 of a packed lower triangle of `size` rows, into `inverse` {size, size}.
/// InputError when it is not positive definite: the gradients are not finite.
void invert_factor(std::span<const float> packed, double damping, std::span<float> inverse);

}  // namespace rehearse::run
