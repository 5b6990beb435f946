// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/in_step.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/error.hpp"

namespace rehearse::sim {

namespace {

double mean_share(const std::vector<Message>& messages, std::int64_t elements) {
    double sum = 0;
    for (const Message& p : messages) sum += static_cast<double>(p.elements);
    return messages.empty() || elements == 0
               ? 0
               : sum / static_cast<double>(messages.size()) / static_cast<double>(elements);
}

double passes_of(const std::vector<Message>& messages) {
    return messages.empty() ? 0 : passes(messages.front().combine);
}

std::int64_t sent_by(std::int64_t member, const std::vector<Message>& messages) {
    return std::ranges::count(messages, member, &Message::from);
}

// Every member sends one message at most and receives one at most.
bool one_each(const std::vector<Message>& messages, std::int64_t members) {
    std::vector<char> sends(static_cast<std::size_t>(members)), receives(static_cast<std::size_t>(members));
    for (const Message& p : messages) {
        char& out = sends[static_cast<std::size_t>(p.from)];
        char& in = receives[static_cast<std::size_t>(p.to)];
        if (out != 0 || in != 0) return false;
        out = in = 1;
    }
    return true;
}

}  // namespace

InStep::InStep(const Mesh& mesh, const Wiring& wiring) : mesh_(mesh), wiring_(wiring), counter_(wiring) {}

// Rounds of a phase by the first `shown` groups.
InStep::AlikeRounds InStep::counted(const Collective& collective, const Phase& phase, const Groups& groups,
                                    std::int64_t shown) {
    const std::vector<Message> messages = collective.messages(phase.first_round);
    const std::int64_t elements = collective.elements();
    const bool equal = equal_sizes(messages, collective.group());
    const double mean = mean_share(messages, elements) * static_cast<double>(elements);
    std::vector<Flow> flows;
    flows.reserve(messages.size() * static_cast<std::size_t>(shown));
    for (std::int64_t group = 0; group < shown; ++group) {
        for (const Message& p : messages) {
            const double size = equal ? 1 : static_cast<double>(p.elements) / mean;
            flows.push_back({groups.rank(group, p.from), groups.rank(group, p.to), size});
        }
    }
    return {.kinds = counter_.kinds(flows),
            .repeats = phase.repeats,
            .messages = static_cast<std::int64_t>(flows.size()),
            .of_first = sent_by(0, messages),
            .share = mean_share(messages, elements),
            .passes = passes_of(messages)};
}

InStep::Rounds InStep::by_message(const Call& call, const Groups& groups) {
    Rounds rounds;
    const std::optional<InSwitch> sums = in_switch(call, groups, wiring_);
    const Collective collective = sim::rounds_of(sums ? sums->rounds(call) : call, groups);
    for (const Phase& phase : collective.phases()) {
        AlikeRounds round = counted(collective, phase, groups, groups.count);
        const bool between = std::ranges::any_of(round.kinds, &MessageKind::across);
        if (sums && sums->covers(between)) {
            round.share *= sums->bytes;
            round.passes = 0;
            round.latency = sums->stretched(wiring_);
        }
        rounds.push_back(std::move(round));
    }
    return rounds;
}

// The same in every node: its first node's messages stand for all.
void InStep::inside_nodes(CollectiveKind kind, const Call& call, const Groups& groups, Rounds& rounds) {
    Group node = shape_for(call, groups);
    const std::int64_t nodes = node.size / node.per_node;
    node.size = node.per_node;
    const Collective collective{kind, parse_algorithm(call.algorithm.inside, kind), std::move(node), call.elements};
    for (const Phase& phase : collective.phases()) {
        rounds.push_back(counted(collective, phase, groups, 1));
        rounds.back().messages *= nodes;
    }
}

// Every device of a node with its share to the same place of another node. As a node sends to one node and receives
// from one, its links carry nothing else, and pairs of nodes that are alike take as long.
bool InStep::across_nodes(const Call& call, const Groups& groups, Rounds& rounds) {
    const std::int64_t local = groups.shape.per_node, nodes = groups.shape.size / local;
    const std::int64_t share = (call.elements + local - 1) / local;
    const std::optional<InSwitch> sums = in_switch(call, groups, wiring_);
    const std::string across = sums ? sums->rounds(call).algorithm.across : call.algorithm.across;
    const Collective lane{CollectiveKind::all_reduce, parse_algorithm(across), {nodes, 1}, share};
    std::unordered_map<std::int64_t, std::vector<MessageKind>> known;  // by likeness
    std::vector<Flow> flows;
    const std::int64_t first = wiring_.node_of(groups.rank(0, 0));
    for (const Phase& phase : lane.phases()) {
        const std::vector<Message> messages = lane.messages(phase.first_round);
        if (!one_each(messages, nodes)) return false;
        AlikeRounds round{.kinds = {},
                          .repeats = phase.repeats,
                          .messages = static_cast<std::int64_t>(messages.size()) * local,
                          .of_first = sent_by(0, messages),
                          .share = mean_share(messages, call.elements),
                          .passes = passes_of(messages)};
        if (sums) {
            round.share *= sums->bytes;
            round.passes = 0;
            round.latency = sums->stretched(wiring_);
        }
        std::vector<std::int64_t> seen;
        for (const Message& p : messages) {
            const std::int64_t likeness = wiring_.likeness(first + p.from, first + p.to);
            if (std::ranges::find(seen, likeness) != seen.end()) continue;
            seen.push_back(likeness);
            const auto [entry, fresh] = known.try_emplace(likeness);
            if (fresh) {
                flows.clear();
                for (std::int64_t i = 0; i < local; ++i) {
                    flows.push_back({groups.rank(0, p.from * local + i), groups.rank(0, p.to * local + i)});
                }
                entry->second = counter_.kinds(flows);
            }
            round.kinds.insert(round.kinds.end(), entry->second.begin(), entry->second.end());
        }
        rounds.push_back(std::move(round));
    }
    return true;
}

bool InStep::serves(const Call& call) {
    return call.kind == CollectiveKind::all_reduce && call.algorithm.name == "hierarchical" &&
           call.algorithm.inside == "ring" && call.algorithm.across != "ring";
}

std::optional<InStep::Rounds> InStep::by_node(const Call& call, const Groups& groups) {
    if (!serves(call)) return std::nullopt;
    const std::int64_t local = groups.shape.per_node;
    const bool whole_nodes = wiring_.node_mates(groups.rank(0, 0), rehearse::ranks(mesh_)) == local;
    if (groups.count != 1 || !whole_nodes) return std::nullopt;
    if (!wiring_.nodes_are_alike() || groups.shape.size % local != 0 || groups.shape.size == local) return std::nullopt;
    Rounds rounds;
    inside_nodes(CollectiveKind::reduce_scatter, call, groups, rounds);
    if (!across_nodes(call, groups, rounds)) return std::nullopt;
    inside_nodes(CollectiveKind::all_gather, call, groups, rounds);
    return rounds;
}

const InStep::Rounds& InStep::rounds_of(const Call& call) {
    // Of a buffer that leaves no rank out, only the size of messages changes with its own.
    const bool all_have_some =
        call.elements >= std::max(2 * size_of(mesh_, call.axis), fewest_for_rings) && is_sum(call.algorithm);
    const auto [entry, fresh] =
        known_.try_emplace({call.kind, call.axis, to_string(call.algorithm), all_have_some ? 0 : call.elements,
                            pipeline_pieces(call.algorithm, call.elements)});
    if (fresh) {
        const Groups groups = groups_along(mesh_, call.axis, call.algorithm, wiring_);
        std::optional<Rounds> nodes = by_node(call, groups);
        entry->second = nodes ? *std::move(nodes) : by_message(call, groups);
    }
    return entry->second;
}

Seconds InStep::time(const AlikeRounds& round, Bytes bytes) const {
    Seconds slowest;
    for (const MessageKind& kind : round.kinds) {
        const Seconds after =
            round.latency ? *round.latency : kind.latency + wiring_.beyond(kind.across, bytes, kind.alone);
        const Seconds wire = kind.shared * bytes + after;
        slowest = std::max(slowest, wire + round.passes * (kind.combine * bytes));
    }
    return slowest;
}

Seconds InStep::time(const Call& call) {
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    Seconds sum;
    for (const AlikeRounds& round : rounds_of(call)) {
        sum += static_cast<double>(round.repeats) * time(round, whole * round.share);
    }
    return sum;
}

std::int64_t InStep::messages(const Call& call) {
    std::int64_t count = 0;
    for (const AlikeRounds& round : rounds_of(call)) count += round.repeats * round.messages;
    return count;
}

Bytes InStep::sent(const Call& call) {
    double elements = 0;
    for (const AlikeRounds& round : rounds_of(call)) {
        elements +=
            static_cast<double>(round.of_first * round.repeats) * round.share * static_cast<double>(call.elements);
    }
    return size_of(call.type) * elements;
}

}  // namespace rehearse::sim
