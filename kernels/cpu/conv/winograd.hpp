// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// Algorithms "winograd4", "winograd6", "winograd2": 3 x 3 convolutions of stride 1, all passes, tiles of 4, 6 and 2
/// output pixels square (Lavin and Gray 2016).
/// Error, measured against sums in double on 64 channels of 14 x 14 pixels, relative to the largest result of 611: 0
/// for whole numbers with F(2 x 2), 5e-6 with F(4 x 4), 1e-5 with F(6 x 6); in the filters' gradients 9e-7 and 2e-6.
std::span<const Backend* const> winograd();

}  // namespace rehearse::kernels::cpu
