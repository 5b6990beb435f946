// SPDX-License-Identifier: Apache-2.0
// Stages of a pipeline that also have room for their layers, where those that cost alike have not.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "schedule/axes/stages.hpp"

namespace rehearse::schedule {

/// The schedule of `part` cut after given ends.
using StageCut = std::function<Schedule(std::span<const int> ends)>;
/// Where stages end that have room for their layers; nothing where they cannot have it (fastest_cut).
using CutWithin = std::function<std::optional<std::vector<int>>(const Room& room)>;

/// `balanced`, the schedule whose stages end at `ends`, where every rank has the memory for it; else the first found in
/// which every rank has, or `balanced` where none was. Looked for by turns: what layers would take of the other stages
/// is worked out by what they take where they are, the stages are cut anew within their room, and the new schedule's
/// memory is worked out in full.
Schedule with_room(Schedule balanced, std::vector<int> ends, const Part& part, const Machine& machine,
                   const CutWithin& cut_within, const StageCut& cut);

}  // namespace rehearse::schedule
