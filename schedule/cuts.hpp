// SPDX-License-Identifier: Apache-2.0
// Where the stages of a pipeline end: by prices, by blocks, or where the plan says.
#pragma once

#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "schedule/plan.hpp"

namespace rehearse::schedule {

/// Where each piece of each stage ends in what a rank computes of `network` (one past its last layer); empty where
/// there is one stage alone. InputError names the plan, the network and what would be right.
std::vector<int> cuts_of(const Network& network, const Part& part, const Plan& plan, const Schedule& schedule,
                         const Machine& machine);

}  // namespace rehearse::schedule
