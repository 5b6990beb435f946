// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kernels/backend.hpp"
#include "kernels/cpu/conv/tiles.hpp"

namespace rehearse::kernels::cpu {

/// Algorithm "fft": convolutions of stride 1 whose (dilated) kernel fits into 32 x 32 pixels, all passes
/// (Mathieu, Henaff and LeCun 2014; Vasilache et al. 2015).
/// Error, measured against sums in double on 64 channels of 28 x 28 pixels and 11 x 11 taps, relative to the largest
/// result of 2468: 3.2e-7 in images, 2.4e-7 in the filters' gradients.
std::span<const Backend* const> fft();

/// The tile, of 8, 16 or 32 pixels square, that takes the fewest floating-point operations.
TileShape fft_tile(const Correlation& c);

}  // namespace rehearse::kernels::cpu
