// SPDX-License-Identifier: Apache-2.0
// Hierarchical all-reduces of very many ranks: all of them are in step, so that a round lasts as long as its slowest
// message, and of a round nothing is kept but which kinds of messages it has.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/collectives/collective.hpp"
#include "sim/collective/groups.hpp"
#include "sim/collective/in_switch.hpp"
#include "sim/collective/rounds.hpp"

namespace rehearse::sim {

/// Where all nodes are alike (Wiring::nodes_are_alike) the rounds are made node by node: inside one node for all of
/// them, across nodes once for each kind of pair, so that nothing is done a rank. Elsewhere each message is counted.
class InStep {
public:
    /// A ring inside nodes, and few rounds between them. In long rings, and without regard to nodes, ranks gain much by
    /// going ahead of each other.
    static bool serves(const Call& call);

    /// Keeps references.
    InStep(const Mesh& mesh, const Wiring& wiring);

    /// From when all ranks enter it until all have left. InputError when the algorithm cannot serve the ranks.
    Seconds time(const Call& call);
    /// Messages of all groups and rounds.
    std::int64_t messages(const Call& call);
    /// What the first rank of each group sends, over all rounds.
    Bytes sent(const Call& call);

private:
    struct AlikeRounds {
        std::vector<MessageKind> kinds;  // different ones
        std::int64_t repeats = 1;
        std::int64_t messages = 0, of_first = 0;  // in each round: of all ranks, of the first
        double share = 0;                         // of the elements, in each message
        double passes = 0;                        // over what arrives
        std::optional<Seconds> latency{};         // of sums inside switches, instead of the messages' own
    };
    using Rounds = std::vector<AlikeRounds>;

    const Rounds& rounds_of(const Call& call);
    AlikeRounds counted(const Collective& collective, const Phase& phase, const Groups& groups, std::int64_t shown);
    Rounds by_message(const Call& call, const Groups& groups);
    /// Nothing where nodes, or the algorithm, are not of that kind.
    std::optional<Rounds> by_node(const Call& call, const Groups& groups);
    void inside_nodes(CollectiveKind kind, const Call& call, const Groups& groups, Rounds& rounds);
    bool across_nodes(const Call& call, const Groups& groups, Rounds& rounds);
    Seconds time(const AlikeRounds& round, Bytes bytes) const;

    const Mesh& mesh_;
    const Wiring& wiring_;
    RoundCounter counter_;
    // By kind, axis, algorithm, elements (0: so many that only the size of messages changes), pieces of a pipeline.
    std::map<std::tuple<CollectiveKind, int, std::string, std::int64_t, std::int64_t>, Rounds> known_;
};

}  // namespace rehearse::sim
