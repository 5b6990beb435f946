// SPDX-License-Identifier: Apache-2.0
// How sums go between nodes where nobody says it.
#pragma once

#include <cstdint>
#include <string>

#include "core/collectives/collective.hpp"
#include "core/machine.hpp"

namespace rehearse {

/// Whether the outer part of a hierarchical all-reduce is yet to be chosen, by the size of what it sums.
inline bool is_open(const Algorithm& algorithm) { return algorithm.name == "hierarchical" && algorithm.across.empty(); }

/// Returns the outer part of a hierarchical all-reduce of `whole` over `nodes` nodes, each with `lanes` ranks that send
/// their shares at the same time. Of a power of two it is halving: as many bytes as a ring in fewer rounds. Of other
/// numbers halving first hands over all that is beyond the power of two, and back in the end, which a ring of 2 (nodes
/// - 1) rounds does not: it is what takes less by the machine's prices of messages, as MPI libraries choose by
/// measured ones (Thakur et al. 2005). A ring, which sends least, where the machine has none.
std::string usual_between_nodes(const Machine& machine, std::int64_t nodes, std::int64_t lanes, Bytes whole);

}  // namespace rehearse
