// SPDX-License-Identifier: Apache-2.0
// A rank's program as sequences, each of which one actor works through.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/rank_program.hpp"
#include "sim/modes/program_meetings.hpp"

namespace rehearse::sim {

/// Nodes that one actor takes one after the other, and what they wait for of other actors'.
struct RankChains {
    std::vector<std::vector<int>> chains;
    std::vector<std::vector<int>> waits;  // by node: of other chains
    std::vector<int> waiters;             // by node: how many of other chains wait for it
    std::array<bool, 2> taken_in_turn{};  // whether computations, or loads, are in several chains
};

/// A node goes on with a chain that ends with one that it waits for, of the same device, host or channel if there is
/// one.
RankChains chains_of(const std::vector<ProgramNode>& nodes, const Meetings& meetings, RankIndex rank);

}  // namespace rehearse::sim
