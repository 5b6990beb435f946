// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kernels/backend.hpp"
#include "kernels/cpu/tiles.hpp"

namespace rehearse::kernels::cpu {

/// Algorithm "fft": convolutions of stride 1 whose (dilated) kernel fits into 32 x 32 pixels, all passes.
std::span<const Backend* const> fft();

/// The tile, of 8, 16 or 32 pixels square, that takes the fewest floating-point operations.
TileShape fft_tile(const Correlation& c);

}  // namespace rehearse::kernels::cpu
