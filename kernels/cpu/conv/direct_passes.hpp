// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/backend.hpp"
#include "kernels/cpu/conv/convolution.hpp"

namespace rehearse::kernels::cpu {

/// forward and backward_data: both sum over channels and taps.
std::unique_ptr<Kernel> direct_convolution(const Problem& problem);

/// backward_weights: sums over samples and pixels.
std::unique_ptr<Kernel> direct_weight_gradient(const Problem& problem);

/// Every pass of as many groups as channels and filters, where the others would leave most lanes empty.
bool is_depthwise(const Convolution& conv);
std::unique_ptr<Kernel> depthwise(const Problem& problem);

/// Packed images that are worked on at a time: 2 MiB of them, or one.
constexpr std::int64_t packed_floats = 512 * 1024;

}  // namespace rehearse::kernels::cpu
