// SPDX-License-Identifier: Apache-2.0
// Algorithms that depend on how much is summed: those of MPI libraries, and the default between nodes.
#pragma once

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "schedule/plan.hpp"

namespace rehearse::schedule {

/// Gives each sum of a bucket the algorithm of the plan's MPI library, by its table for so many ranks and bytes;
/// nothing where the plan names none. Ranks that are not spread evenly over nodes are as on nodes of their own.
void settle_library_choice(const Plan& plan, const Machine& machine, Schedule& schedule);

/// Gives each sum whose outer part is open what suits its size (usual_between_nodes).
void settle_between_nodes(const Machine& machine, Schedule& schedule);

}  // namespace rehearse::schedule
