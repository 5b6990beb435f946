// SPDX-License-Identifier: Apache-2.0
// Communication that goes on beside computation takes some of the core, and is late where the core computes.
#pragma once

#include <vector>

#include "core/timeline.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

/// Whether the machine says what ranks lose by it.
bool loses_by_overlap(const Machine& machine);

/// What each step of each class takes longer, because of what the timeline shows beside it: a computation by the core
/// time of the messages in the part of a communication that it overlaps; a communication by the delay of those of its
/// rounds that are under way while the core computes, of this rank or of others that share it, and no longer than that
/// computation (Overlap of core/machine.hpp). `timeline` is one that these steps made, with what lengthen() gave them;
/// its first iteration and the first rank of each class count.
std::vector<std::vector<Seconds>> losses(const Steps& steps, const Wiring& wiring, const Timeline& timeline);

}  // namespace rehearse::sim
