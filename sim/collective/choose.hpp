// SPDX-License-Identifier: Apache-2.0
// allreduce=auto: which algorithm a prediction says is fastest.
#pragma once

#include "core/machine.hpp"
#include "core/schedule.hpp"

namespace rehearse::sim {

/// Gives every all-reduce of a bucket the algorithm that takes least by itself on this machine (collective_time; of
/// equal ones the first in the alphabet): a function of the machine, the mesh and the size alone, so that ranks that
/// train choose as the prediction does. InputError as simulate.
void choose_all_reduce(Schedule& schedule, const Machine& machine);

}  // namespace rehearse::sim
