// SPDX-License-Identifier: Apache-2.0
// Rings over the links that join the devices of a node without a switch between them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/collectives/collective.hpp"
#include "sim/collective/groups.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

/// Of so many devices of a node at most: rings are looked for among all orders of them.
inline constexpr std::int64_t most_ring_devices = 8;

/// The rings that carry most through the ranks that each group has on a node, as NCCL's channels do (its search lays
/// as many as the links carry; src/graph/search.cc): Hamiltonian cycles over links that join two devices directly, with
/// shares of the data so that no link carries more than it can while all groups are under way. Four devices joined all
/// to all: six rings, which fill all three links of each. Null where one ring in the order of ranks carries as much
/// (two ranks, devices on a switch), where no ring goes over direct links alone, and where messaging.inside says
/// one_ring.
std::shared_ptr<const std::vector<NodeRing>> node_rings(const Groups& groups, const Wiring& wiring);

/// All Hamiltonian cycles of 0 .. n - 1 from 0 on, in the order of the alphabet, over pairs whose capacity is above 0.
std::vector<std::vector<std::int64_t>> cycles_over(std::span<const double> capacity, std::int64_t n);

/// How much of each cycle: sum as large as can be, while the cycles over a pair carry no more than its capacity. Cycles
/// are orders of the numbers 0 .. n - 1, capacity[i * n + j] is what goes from i to j. (Simplex method.)
std::vector<double> most_through(std::span<const std::vector<std::int64_t>> cycles, std::span<const double> capacity);

}  // namespace rehearse::sim
