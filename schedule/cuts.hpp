// SPDX-License-Identifier: Apache-2.0
// Where the stages of a pipeline end: by prices and hand-overs, by blocks, or where the plan says.
#pragma once

#include <optional>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "schedule/axes/stages.hpp"
#include "schedule/plan.hpp"

namespace rehearse::schedule {

/// Where each piece of each stage ends in what a rank computes of `network` (one past its last layer); empty where
/// there is one stage alone. InputError names the plan, the network and what would be right.
std::vector<int> cuts_of(const Network& network, const Part& part, const Plan& plan, const Schedule& schedule,
                         const Machine& machine);

/// Of several cuts, each the best by a rule of its own (Goal), the one whose pipeline is through first: what is handed
/// on may be hidden beside computation or hold it up, which stage by stage cannot be told. Also of equally many blocks
/// a stage, where `room` is endless. Nothing where no cut leaves every stage its room.
std::optional<std::vector<int>> fastest_cut(const Part& part, const PieceCosts& costs, const Plan& plan,
                                            const Schedule& schedule, const std::optional<Room>& room = {});

}  // namespace rehearse::schedule
