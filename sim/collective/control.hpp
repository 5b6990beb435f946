// SPDX-License-Identifier: Apache-2.0
// How long ranks take to agree that all have the gradients of a bucket, before they sum it (Schedule::control).
#pragma once

#include <cstdint>

#include "core/machine.hpp"

namespace rehearse::sim {

/// Star: rank 0 notes each tensor of each other rank, one after the other, then tells all along a binary tree. Tree of
/// r children a rank: each notes those of its children, in as many levels as the tree has, and what to sum comes down
/// the same way. Control 0 or one rank: no time. A rank sums nothing meanwhile, as one thread does both.
Seconds control_time(int control, std::int64_t ranks, std::int64_t tensors, const Machine& machine);

}  // namespace rehearse::sim
