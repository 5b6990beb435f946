// SPDX-License-Identifier: Apache-2.0
// What layers cost on the devices that a plan lays them on: stages and batches are balanced by that.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "schedule/axes/stages.hpp"
#include "schedule/plan.hpp"

namespace rehearse::schedule {

/// Of one micro-batch of `samples` in each layer of a part, forward and backward: seconds by the device's prices, or
/// operations where it has none (or is null).
std::vector<double> layer_costs(const Part& part, Precision precision, std::int64_t samples, const DeviceClass* device);

/// Stages of the pipeline, with the classes of devices on which ranks of each are; null where the machine has none.
using Places = std::set<std::pair<StageIndex, const DeviceClass*>>;
/// Of all ranks, and of the ranks of each copy along data. Needs the mesh.
Places places_of(const Schedule& schedule, const Machine& machine);
std::vector<Places> places_of_copies(const Schedule& schedule, const Machine& machine);

/// Of each of stages * chunks pieces of the pipeline and one micro-batch: piece c * stages + s is on stage s, whose
/// slowest device counts, and hands on by the way behind it (schedule/ways.hpp).
PieceCosts costs_of_pieces(const Part& part, const Plan& plan, const Schedule& schedule, const Machine& machine);

}  // namespace rehearse::schedule
