// SPDX-License-Identifier: Apache-2.0
// Sums inside a node's switches: what they spare the devices' links.
#pragma once

#include <optional>

#include "sim/collective/groups.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

/// Of an all-reduce by `direct` whose groups each lie in one node with switches that sum (SwitchSums). Each of n
/// devices gives the switches all of its data once, gets its share of the sum, gives that once, and gets all of it: n +
/// 1 shares in each direction, where plain messages take 2 (n - 1). Both rounds go on at once, piece after piece, so
/// that each is taken to last half of the whole.
///
/// Or of groups whose ranks are on nodes of their own, where the fabric's switches sum (Fabric::sums): every rank's
/// card carries its data once up and the sum once down, and so does every link between two switches of a tree, as it
/// does in a ring. So its messages are those of a ring, of fewer bytes: 2 (n - 1) shares count for n. A hierarchical
/// all-reduce whose outer part is `direct` does so with its lanes, one from each node: its messages inside nodes are
/// its own.
struct InSwitch {
    double bytes =
        1;            // that a message counts for on links, for each of its own: what the switches' rate needs included
    Seconds latency;  // of a round, instead of the messages' own; at nominal prices
    bool across = false;  // in switches between nodes: whose messages go as a ring's
    bool lanes = false;   // only of what goes between nodes

    /// Whether a message is one of theirs, between nodes or not.
    bool covers(bool between_nodes) const { return between_nodes || !lanes; }

    /// Whose rounds these sums go by.
    Call rounds(Call call) const;
    Seconds stretched(const Wiring& wiring) const {
        return across ? wiring.stretched_across(latency) : wiring.stretched_inside(latency);
    }
};
/// Whether the fabric's switches can sum all that they have: each rank is on a node of its own.
bool sum_between_nodes(const Groups& groups, const Wiring& wiring);
/// Whether they sum what such a call sends between nodes, as far as its algorithm goes: then a node gives all of its
/// data once.
bool may_sum_between_nodes(const Call& call, const Wiring& wiring);
/// Nothing where the switches do not sum.
std::optional<InSwitch> in_switch(const Call& call, const Groups& groups, const Wiring& wiring);

/// Bytes that all ranks of a group together send at least (bounds.hpp), fewer where switches sum.
Bytes least_sent(const Call& call, const Mesh& mesh, const Wiring& wiring);

}  // namespace rehearse::sim
