// SPDX-License-Identifier: Apache-2.0
// Which messages and collectives of the programs of different ranks are the same, and in what order a rank takes them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/rank_program.hpp"

namespace rehearse::sim {

/// A node of a rank's program.
struct NodePlace {
    RankIndex rank{0};
    int node = 0;
};

/// A message (its send, then its receive) or a collective (the nodes of all members, in the group's order).
struct Rendezvous {
    std::vector<NodePlace> places;
    int channel = 0;  // the same number for messages that follow on each other: of a tag, of a group
};

struct Meetings {
    static constexpr int none = -1;
    std::vector<Rendezvous> all;
    std::vector<std::vector<int>> of_node;             // by rank and node: index into all, or none
    std::vector<std::vector<std::vector<int>>> waits;  // by rank and node: earlier nodes that it waits for
};

/// Pairs the n-th send of a rank to another with a tag with the n-th receive there, and the n-th collective of a group
/// on each of its members. A node waits for what the file says, and for the one before it of the same pair and tag, or
/// of the same group: libraries keep that order. InputError, with rank and name, for a message or collective without a
/// counterpart or with another size there, and where ranks wait for each other in a circle.
Meetings meetings_of(const RankPrograms& programs);

}  // namespace rehearse::sim
