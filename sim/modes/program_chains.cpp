// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/program_chains.hpp"

#include "core/index.hpp"

namespace rehearse::sim {

namespace {

// What a node occupies: the device, its host, or a channel of messages.
int lane_of(const ProgramNode& node, const Meetings& meetings, int meeting) {
    if (meeting != Meetings::none) return 2 + meetings.all[at(meeting)].channel;
    return node.kind == ProgramNode::Kind::load ? 1 : 0;
}

}  // namespace

RankChains chains_of(const std::vector<ProgramNode>& nodes, const Meetings& meetings, RankIndex rank) {
    const std::vector<std::vector<int>>& waits = meetings.waits[at(rank)];
    RankChains made;
    made.waits.resize(nodes.size());
    made.waiters.resize(nodes.size());
    std::vector<int> chain_of(nodes.size()), lanes;
    std::array<int, 2> first{-1, -1};  // chain of the first computation and of the first load
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        lanes.push_back(lane_of(nodes[i], meetings, meetings.of_node[at(rank)][i]));
        int best = -1;
        for (const int before : waits[i]) {
            const bool is_tail = made.chains[at(chain_of[at(before)])].back() == before;
            if (!is_tail) continue;
            const bool better = best < 0 || (lanes[at(before)] == lanes[i] && lanes[at(best)] != lanes[i]);
            if (better) best = before;
        }
        if (best < 0) made.chains.emplace_back();
        const int chain = best < 0 ? static_cast<int>(made.chains.size()) - 1 : chain_of[at(best)];
        chain_of[i] = chain;
        made.chains[at(chain)].push_back(static_cast<int>(i));
        for (const int before : waits[i]) {
            if (chain_of[at(before)] == chain) continue;
            made.waits[i].push_back(before);
            ++made.waiters[at(before)];
        }
        if (lanes[i] > 1) continue;
        int& known = first.at(at(lanes[i]));
        if (known < 0) known = chain;
        if (known != chain) made.taken_in_turn.at(at(lanes[i])) = true;
    }
    return made;
}

}  // namespace rehearse::sim
