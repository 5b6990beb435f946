// SPDX-License-Identifier: Apache-2.0
// Rows of images that ranks lend each other, where a spatial axis cuts them.
#pragma once

#include <cstddef>
#include <vector>

#include "run/rank_context.hpp"
#include "run/steps/gradient_sums.hpp"
#include "run/steps/ready_step.hpp"

namespace rehearse::run {

/// Prepares a halo exchange of a Communication. `memory` is the layer's own, where rows are laid out to be sent.
void prepare_halo(RankContext& rank, GradientSums& gradients, std::vector<std::byte>& memory, ReadyStep& ready,
                  const Communicate& communicate);

}  // namespace rehearse::run
