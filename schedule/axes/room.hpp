// SPDX-License-Identifier: Apache-2.0
// Stages of a pipeline that also have room for their layers, where those that cost alike have not.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"

namespace rehearse::schedule {

/// The schedule of `part` cut after given ends.
using StageCut = std::function<Schedule(std::span<const int> ends)>;

/// `balanced`, the schedule whose stages end at `ends`, where every rank has the memory for it; else the first found in
/// which every rank has, or `balanced` where none was. Looked for by turns: what layers would take of the other stages
/// is worked out by what they take where they are, the stages are cut anew so that the costliest costs least (`costs`,
/// by stage and layer) within their room, and the new schedule's memory is worked out in full.
Schedule with_room(Schedule balanced, std::vector<int> ends, const Part& part,
                   std::span<const std::vector<double>> costs, const Machine& machine, const StageCut& cut);

}  // namespace rehearse::schedule
