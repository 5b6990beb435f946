// SPDX-License-Identifier: Apache-2.0
// What a library's kernels and the other messages of their device leave each other of its links, in exact mode: a call
// of a library has a time and no flows, so that it ends later by what messages beside it take.
#pragma once

#include <simgrid/s4u.hpp>

#include <array>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/schedule.hpp"
#include "sim/collective/exchanges.hpp"
#include "sim/network/zone.hpp"

namespace rehearse::sim {

class SharedLinks {
public:
    SharedLinks(const Schedule& schedule, const Wiring& wiring, Simulation& simulation);

    /// Whether devices of a class have messages under way while they are in a library's kernel: else nothing is shared.
    bool matter(int rank_class) const { return matter_[static_cast<std::size_t>(rank_class)]; }

    /// What messages take of a rank's links: inside its node, and between nodes.
    using Takes = std::array<Seconds, 2>;

    /// Notes that a rank's messages begin now, and says what they take, which `end` wants to know.
    Takes begin(RankIndex rank, std::span<const Exchange> messages);
    void end(RankIndex rank, const Takes& takes);

    /// Waits until a library's kernel, which takes `alone` by itself, has ended on a device whose messages go over the
    /// same links, inside the node or across nodes: it has what they leave. Returns when.
    Seconds end_of_library(RankIndex rank, Seconds alone, bool across);

private:
    struct Taken {
        Seconds begun, open;  // of all messages so far; of those under way
    };

    Seconds on_links(RankIndex rank, const Exchange& message, bool across);

    const Wiring& wiring_;
    Simulation& simulation_;
    std::vector<bool> matter_;                             // by class
    std::map<std::pair<RankIndex, bool>, Taken> taken_;    // by rank, and whether between nodes
    std::map<RankIndex, simgrid::s4u::MutexPtr> kernels_;  // held by that of a library on a rank's device
    std::vector<Hop> hops_;
};

}  // namespace rehearse::sim
