// SPDX-License-Identifier: Apache-2.0
// 16-bit images as a sweep reads them.
#pragma once

#include "kernels/cpu/half/half_simd.hpp"
#include "kernels/cpu/rows/sweep.hpp"

namespace rehearse::kernels::cpu {

/// The planes of one step: a channel, or of a pair two; the second is nullptr where the channels end, and where the
/// instruction takes one.
struct HalfChannels {
    const std::uint16_t *first, *second;
};

/// {pixel, pair}: the image with its padding, phase by phase.
void pack_half_image(const HalfSimd& simd, const PackedImage& image, HalfChannels channels, std::uint16_t* out);

}  // namespace rehearse::kernels::cpu
