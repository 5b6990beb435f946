// SPDX-License-Identifier: Apache-2.0
// A schedule as what every rank does, for other simulators.
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

}  // namespace rehearse::sim
