// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// forward and backward_data: both sum over channels and taps.
std::unique_ptr<Kernel> direct_tap_sums(const Problem& problem);

/// backward_weights: sums over samples and pixels.
std::unique_ptr<Kernel> direct_pixel_sums(const Problem& problem);

/// Packed images that are worked on at a time: 2 MiB of them, or one.
constexpr std::int64_t packed_floats = 512 * 1024;

}  // namespace rehearse::kernels::cpu
