// SPDX-License-Identifier: Apache-2.0
// Communication that goes on beside computation takes some of the core, and is late where the core computes.
#pragma once

#include <vector>

#include "core/timeline.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

/// Whether the machine says what ranks lose to messages: its messages were measured as `run` sends them.
bool loses_to_messages(const Machine& machine);

/// How often the losses are looked for anew, because what steps take from each other depends on when they are, and
/// that on what they take (it settles quickly, as each loss is a small part of its step): 0 where nothing is lost, as
/// the machine does not say what ranks lose, and no library's collective takes processors of devices whose number is
/// known.
int overlap_rounds(const Machine& machine, const Schedule& schedule);

/// What each step of each class takes longer, because of what the timeline shows beside it: a computation by the core
/// time of the messages in the part of a communication that it overlaps; a communication by the delay of those of its
/// rounds that are under way while the core computes, of this rank or of others that share it, and no longer than that
/// computation (Overlap of core/machine.hpp). The kernel of a library's collective (NCCL) holds a processor of the
/// device for each of its thread blocks: computation beside it has the others. `timeline` is one that these steps made,
/// with what lengthen() gave them; its first iteration and the first rank of each class count.
std::vector<std::vector<Seconds>> losses(const Steps& steps, const Wiring& wiring, const Timeline& timeline);

}  // namespace rehearse::sim
