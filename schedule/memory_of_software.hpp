// SPDX-License-Identifier: Apache-2.0
// What the software that trains keeps in memory beside what a plan says (MemoryHabits).
#pragma once

#include "core/machine.hpp"
#include "core/methods/memory_habits.hpp"
#include "core/schedule.hpp"
#include "schedule/plan.hpp"

namespace rehearse::schedule {

/// Returns what the plan's software keeps, and where nobody has said so, what that of the machine's prices does:
/// whatever takes time to move lies in memory. Of devices that are not priced by such software nothing is kept.
MemoryHabits habits_of(const Plan& plan, const Machine& machine);

/// Returns whether attention's probabilities lie in memory from forward to backward: as the plan says, or its software
/// does. Around a ring they are never all there.
bool keeps_probabilities(const Plan& plan, const MemoryHabits& habits);

/// What a loss holds in f32 beside its scores and their gradient, in bytes of a sample: from its forward pass on, and
/// during its backward pass.
struct LossCopies {
    double kept = 0, working = 0;
};
/// Returns that of an operator whose inputs have `size` bytes an element; nothing where it makes no loss of scores.
LossCopies loss_copies(const Op& op, const MemoryHabits& habits, Bytes size);

/// Returns the elements of the buckets that ranks sum and that are copies of gradients (DistributedDataParallel's,
/// unless it is asked for views). ZeRO 3 has none.
double copied_to_buckets(const Schedule& schedule, const RankClass& rank_class);

}  // namespace rehearse::schedule
