// SPDX-License-Identifier: Apache-2.0
// What a training keeps from step to step, and which ranks have it: a checkpoint has each number once.
#pragma once

#include <cstdint>
#include <span>

#include "core/schedule.hpp"

namespace rehearse {

/// Whether a rank has weights of layers of these origins that no rank before it along `groups` and `data` has, nor a
/// copy of its stage: copies along these axes have the same numbers, but of what they cut themselves (dense layers,
/// tables).
bool has_own(const Schedule& schedule, RankIndex rank, std::span<const Origin> origins);

/// Whether the optimizer keeps moments of a layer of the whole network: not where rows are updated as soon as their
/// gradients are made (tables that ranks share).
bool keeps_moments(const Schedule& schedule, int layer);

/// Weights and moments of the whole network, each number once.
std::int64_t kept_numbers(const Schedule& schedule);

}  // namespace rehearse
