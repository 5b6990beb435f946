// SPDX-License-Identifier: Apache-2.0
// What ranks do as files of other programs tell it, on a machine: every message is a SimGrid flow.
#pragma once

#include <cstdint>
#include <optional>

#include "core/collectives/collective.hpp"
#include "core/machine.hpp"
#include "core/rank_program.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {

struct ProgramOptions {
    ZScore messages = nominal;              // of the prices of messages; times of computations are those of the files
    std::optional<Algorithm> all_reduce{};  // else as plans choose it: sums in switches, node by node, or a ring
    bool links = false;                     // the timeline says what links carried
};

/// Rank r is on device r. A device computes one node at a time, its host loads one at a time, in the order in which
/// they can begin; a message begins when both its ends have come to it, a collective's rounds as in exact mode. A
/// broadcast comes from its root. InputError as meetings_of has it, where the machine has too few devices
/// or the all-reduce cannot serve a group, and for more nodes at once than `most_chains`.
Prediction simulate_programs(const RankPrograms& programs, const Machine& machine, const ProgramOptions& options = {});

/// Sequences of nodes that go on at the same time, of all ranks together.
inline constexpr std::int64_t most_chains = 20'000;

}  // namespace rehearse::sim
