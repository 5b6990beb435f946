// SPDX-License-Identifier: Apache-2.0
// What every backend's batch normalization agrees on.
#pragma once

#include <cstdint>

#include "kernels/backend.hpp"

namespace rehearse::kernels {

/// Moves state (running mean, running variance) towards the mean and biased variance that forward left in the
/// workspace; the variance is made unbiased, n / (n - 1), unless n is 1. Does nothing when state is empty.
void update_running_statistics(const BatchNorm& op, std::int64_t batch, const Buffers& buffers);

}  // namespace rehearse::kernels
