// SPDX-License-Identifier: Apache-2.0
// allreduce=auto: which algorithm a prediction says is fastest.
#pragma once

#include "core/machine.hpp"
#include "core/schedule.hpp"

namespace rehearse::sim {

/// Gives every collective of a bucket (all-reduce, reduce-scatter, all-gather) the algorithm that takes least by itself
/// on this machine (collective_time; of equal ones the first in the alphabet): a function of the machine, the mesh and
/// the size alone, so that ranks that train choose as the prediction does. InputError as simulate.
void choose_algorithms(Schedule& schedule, const Machine& machine);

}  // namespace rehearse::sim
