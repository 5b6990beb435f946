// SPDX-License-Identifier: Apache-2.0
// A schedule as what every rank does, for other simulators, and what they say of it.
#pragma once

#include "core/machine.hpp"
#include "core/rank_program.hpp"
#include "core/schedule.hpp"

namespace rehearse::sim {

/// Collectives as such, or as the messages of their rounds, one round after the other.
enum class Collectives_as : std::uint8_t { calls, messages };

/// Nodes that all ranks together may have.
inline constexpr std::int64_t most_nodes = 20'000'000;

/// Of one training step, with the prices of the machine. A node waits for the one before it on its stream and for what
/// its step waits for. InputError for what other simulators have no words for (servers, halos), and for too many nodes.
RankPrograms rank_programs(const Schedule& schedule, const Machine& machine, Collectives_as how);

/// Whether a node of the host, Kind::load, computes there and reads no samples: all that execution traces say of it is
/// which processor it is on, and its name.
bool computes_on_host(const ProgramNode& node);

/// InputError where there are more ranks than devices.
void check_devices(const RankPrograms& programs, const Machine& machine);

/// Gives computations without a time the longer of what their operations take at the peak of the device of their rank
/// for operands of this type, and what their bytes take at its memory bandwidth; how many there were. InputError where
/// the machine has too few devices, or the device no such peak.
std::int64_t price_untimed(RankPrograms& programs, const Machine& machine, DataType type);

}  // namespace rehearse::sim
