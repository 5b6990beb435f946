// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/groups.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/collectives/library.hpp"
#include "core/error.hpp"
#include "sim/collective/in_switch.hpp"
#include "sim/network/node_rings.hpp"

namespace rehearse::sim {

namespace {

constexpr std::int64_t most_direct = 128;  // ranks: 16,256 messages a round

std::int64_t members_on_first_node(const Groups& groups, std::int64_t group, const Wiring& wiring) {
    const std::int64_t node = wiring.node_of(groups.rank(group, 0));
    std::int64_t members = 1;
    while (members < groups.shape.size && wiring.node_of(groups.rank(group, members)) == node) ++members;
    return members;
}

// Of each line along its single axis some places take part.
void place_some(const Mesh& mesh, int axis, Groups& groups) {
    const JoinedAxes some = mesh.joined[static_cast<std::size_t>(axis) - mesh.axes.size()];
    const std::int64_t each = stride(mesh, some.first);
    groups.begins = some.between ? stride(mesh, axis) : each;
    groups.block = each * size_of(mesh, some.first);
    groups.first = some.from * each;
}

// What is sent and received between ncclGroupStart and ncclGroupEnd runs in one kernel, as PyTorch's all-to-alls are
// posted (torch/csrc/cuda/nccl.cpp); since 2.7, the first that has them.
bool posts_together(const CollectiveSoftware& software) {
    constexpr std::int64_t first = 20700;
    return software.library && software.library->name == "nccl" && (software.version == 0 || software.version >= first);
}

// How they lie on nodes, and the rings that the algorithm goes by there; `where` names them in a refusal.
void settle(Groups& groups, const Algorithm& algorithm, const Wiring& wiring, const std::string& where) {
    groups.shape.per_node = members_on_first_node(groups, 0, wiring);
    if (algorithm.name == "direct" && groups.shape.size > most_direct && !sum_between_nodes(groups, wiring)) {
        throw InputError(
            fmt::format("all-reduce direct {}: each of {} ranks would send to all others at once; "
                        "it is for {} at most",
                        where, groups.shape.size, most_direct));
    }
    const std::int64_t nodes = groups.shape.size / groups.shape.per_node;
    const bool sums = !wiring.machine().fabric.sums.rate.source.empty();
    if (algorithm.across == "direct" && nodes > most_direct && !sums) {
        throw InputError(
            fmt::format("all-reduce {} {}: each of {} nodes would send to all others at once; it is for {} at most, or "
                        "for switches between nodes that sum",
                        to_string(algorithm), where, nodes, most_direct));
    }
    const bool even = groups.shape.size % groups.shape.per_node == 0;  // else Collective refuses, and says so
    if (algorithm.name == "hierarchical" && even && !fills_nodes(groups, wiring)) {
        throw InputError(
            fmt::format("all-reduce {} {}: its ranks lie unevenly on the nodes of machine '{}'; "
                        "use another algorithm or other axis sizes",
                        to_string(algorithm), where, wiring.machine().name));
    }
    const bool rings = algorithm.name == "ring" || algorithm.name == "rings" || algorithm.inside == "ring";
    if (rings) groups.shape.rings = node_rings(groups, wiring);
    groups.posts_together = algorithm.name == "pairwise" && groups.shape.size == groups.shape.per_node &&
                            posts_together(wiring.machine().collectives) && fills_nodes(groups, wiring);
}

}  // namespace

bool fills_nodes(const Groups& groups, const Wiring& wiring) {
    for (std::int64_t group = 0; group < groups.count; ++group) {
        std::int64_t before = -1;
        for (std::int64_t first = 0; first < groups.shape.size; first += groups.shape.per_node) {
            const std::int64_t node = wiring.node_of(groups.rank(group, first));
            if (node == before) return false;
            const std::int64_t last = std::min(first + groups.shape.per_node, groups.shape.size) - 1;
            if (wiring.node_of(groups.rank(group, last)) != node) return false;
            before = node;
        }
    }
    return true;
}

Groups groups_along(const Mesh& mesh, int axis, const Algorithm& algorithm, const Wiring& wiring) {
    Groups groups;
    groups.stride = stride(mesh, axis);
    groups.shape.size = size_of(mesh, axis);
    groups.block = groups.stride * groups.shape.size;
    groups.begins = groups.stride;
    if (is_partial(mesh, axis)) place_some(mesh, axis, groups);
    groups.count = ranks(mesh) / groups.block * groups.begins;
    settle(groups, algorithm, wiring, fmt::format("along axis '{}'", name_of(mesh, axis)));
    return groups;
}

Groups groups_among(std::vector<RankIndex> members, const Algorithm& algorithm, const Wiring& wiring) {
    Groups groups;
    groups.shape.size = std::ssize(members);
    groups.members = std::make_shared<const std::vector<RankIndex>>(std::move(members));
    settle(groups, algorithm, wiring, fmt::format("of {} ranks", groups.shape.size));
    return groups;
}

Group shape_for(const Call& call, const Groups& groups) {
    Group group = groups.shape;
    if (call.elements < fewest_for_rings) group.rings = nullptr;
    return group;
}

Collective rounds_of(const Call& call, const Groups& groups) {
    Algorithm algorithm = call.algorithm;
    if (call.kind == CollectiveKind::all_to_all && groups.posts_together && algorithm.name == "pairwise")
        algorithm.name = "grouped";
    return Collective{call.kind, algorithm, shape_for(call, groups), call.elements, call.root};
}

std::vector<Phase> phases_of(const Collective& rounds, const Groups& groups) {
    const Group group = rounds.group();
    const bool whole = rounds.elements() >= group.size * group.per_node;  // of each ring, where a node has several
    if (whole || rounds.rounds() * group.size * groups.count > most_apart) return rounds.phases();
    std::vector<Phase> apart;
    const auto same_ends = [](const Message& a, const Message& b) { return a.from == b.from && a.to == b.to; };
    for (const Phase& phase : rounds.phases()) {
        std::vector<Message> before;
        for (std::int64_t round = phase.first_round; round < phase.first_round + phase.repeats; ++round) {
            std::vector<Message> messages = rounds.messages(round);
            if (round > phase.first_round && std::ranges::equal(messages, before, same_ends)) {
                ++apart.back().repeats;
                continue;
            }
            apart.push_back({round, 1});
            before = std::move(messages);
        }
    }
    return apart;
}

bool equal_sizes(const std::vector<Message>& messages, const Group& group) {
    if (messages.empty()) return true;
    const auto [least, most] = std::ranges::minmax(messages, {}, &Message::elements);
    const std::int64_t parts = group.rings == nullptr ? 1 : std::ssize(*group.rings);  // of a chunk, each rounded
    return most.elements - least.elements <= parts;
}

Bytes bytes_of(const Message& message, DataType type) { return size_of(type) * static_cast<double>(message.elements); }

}  // namespace rehearse::sim
