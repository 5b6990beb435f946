// SPDX-License-Identifier: Apache-2.0
// From the groups of a schedule's collective to the communicators of a library.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"
#include "sim/check/bounds.hpp"
#include "sim/collective/libraries/library_times.hpp"
#include "sim/collective/rounds.hpp"

namespace rehearse::sim {

namespace {

/// How many nodes of a kind a group is on, and by which of a node's devices.
struct Spread {
    std::size_t kind = 0;
    std::int64_t nodes = 1;
    std::vector<int> devices;  // numbers in a node
    auto operator<=>(const Spread&) const = default;
};

int number_in_node(const Machine& machine, std::int64_t device) {
    const DeviceAt at = locate(machine, device);
    const std::vector<Vertex>& vertices = machine.nodes[static_cast<std::size_t>(at.kind)].vertices;
    return static_cast<int>(std::count_if(vertices.begin(), vertices.begin() + at.vertex,
                                          [](const Vertex& vertex) { return vertex.kind == VertexKind::device; }));
}

Spread spread_of(std::int64_t nodes, const std::vector<RankIndex>& on_node, const Machine& machine) {
    Spread spread{static_cast<std::size_t>(locate(machine, on_node.front()).kind), nodes, {}};
    for (const RankIndex rank : on_node) spread.devices.push_back(number_in_node(machine, rank));
    return spread;
}

/// The ranks of a group, node by node.
std::vector<std::vector<RankIndex>> by_node(const Groups& groups, std::int64_t group, const Wiring& wiring) {
    std::vector<std::vector<RankIndex>> nodes;
    for (std::int64_t member = 0; member < groups.shape.size; ++member) {
        const RankIndex rank = groups.rank(group, member);
        if (nodes.empty() || wiring.across(nodes.back().front(), rank)) nodes.emplace_back();
        nodes.back().push_back(rank);
    }
    return nodes;
}

void check_even(const std::vector<std::vector<RankIndex>>& nodes, const Call& call, const Mesh& mesh) {
    const std::size_t each = nodes.front().size();
    const auto other = std::ranges::find_if(nodes, [&](const auto& node) { return node.size() != each; });
    if (other == nodes.end()) return;
    throw InputError(
        fmt::format("allreduce={}: of the ranks along axis '{}' from rank {} on, {} are on one node and {} on another, "
                    "which is not modelled; use as many on each, or another algorithm",
                    call.algorithm.name, name_of(mesh, call.axis), nodes.front().front(), each, other->size()));
}

/// How many times as long a byte takes on these ways as on a network card of its own, where all send at once.
double crowding_of(const std::vector<Flow>& flows, const Wiring& wiring) {
    RoundCounter counter{wiring};
    double most = 1;
    for (const MessageKind& kind : counter.kinds(flows)) {
        if (kind.alone > PerByte{}) most = std::max(most, kind.shared.value / kind.alone.value);
    }
    return most;
}

}  // namespace

const std::vector<LibraryCalls::Placed>& LibraryCalls::placed(const Call& call, const Mesh& mesh, RankIndex rank) {
    const std::pair key{call.axis, class_of_ ? class_of_(rank) : 0};
    const auto known = placed_.find(key);
    return known != placed_.end() ? known->second : placed_.emplace(key, place(call, mesh, rank)).first->second;
}

std::vector<LibraryCalls::Placed> LibraryCalls::place(const Call& call, const Mesh& mesh, RankIndex rank) const {
    const Machine& machine = wiring_.machine();
    const CollectiveSoftware& software = machine.collectives;
    if (software.library && software.library->name != call.algorithm.name)
        throw InputError(fmt::format("{}: machine '{}' has {}, not {}: [collectives] library says which",
                                     machine.origin, machine.name, software.library->name, call.algorithm.name));
    const Groups groups = groups_along(mesh, call.axis, {}, wiring_);
    const auto lead_of = [&](std::int64_t group) { return class_of_(groups.rank(group, 0)); };
    const int lead = class_of_ ? lead_of(groups.group_of(rank)) : 0;
    std::map<Spread, std::vector<RankIndex>> spreads;  // with the ranks on one node of those that are spread so
    std::vector<Flow> flows;                           // of each rank to the next node of its group
    for (std::int64_t group = 0; group < groups.count; ++group) {
        if (class_of_ && lead_of(group) != lead) continue;
        const std::vector<std::vector<RankIndex>> nodes = by_node(groups, group, wiring_);
        check_even(nodes, call, mesh);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            spreads.emplace(spread_of(std::ssize(nodes), nodes[i], machine), nodes[i]);
            const std::vector<RankIndex>& next = nodes[(i + 1) % nodes.size()];
            for (std::size_t m = 0; nodes.size() > 1 && m < next.size(); ++m) flows.push_back({nodes[i][m], next[m]});
        }
    }
    const double crowded = crowding_of(flows, wiring_);
    std::vector<Placed> placed;
    for (const auto& [spread, ranks] : spreads) {
        double crowding = 1;
        Bandwidth most;
        if (spread.nodes > 1) {
            const NodeKind& kind = machine.nodes[spread.kind];
            const auto rails = static_cast<double>(view_of(machine, software, kind, spread.devices).rails);
            const auto nics = static_cast<double>(std::ranges::count(kind.vertices, VertexKind::nic, &Vertex::kind));
            crowding = std::max(1.0, crowded * std::min(1.0, rails / static_cast<double>(ranks.size())));
            most = wiring_.node_egress(wiring_.node_of(ranks.front())) * (rails / nics);
        }
        Bandwidth out = wiring_.egress(ranks.front());
        for (const RankIndex each : ranks) out = std::min(out, wiring_.egress(each));
        placed.push_back(
            {{machine, software, spread.kind, spread.nodes, spread.devices, crowding, most}, out, most / crowding});
    }
    return placed;
}

Bytes library_sent(const Call& call, const Mesh& mesh) {
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    const std::int64_t size = size_of(mesh, call.axis);
    return least_crossing(call.kind, size, whole) / static_cast<double>(size);
}

LibraryPrice LibraryCalls::price(const Call& call, const Mesh& mesh, RankIndex rank) {
    LibraryPrice slowest;
    for (const Placed& at : placed(call, mesh, rank)) {
        const LibraryPrice price = price_at(at, call, mesh);
        if (price.time >= slowest.time) slowest = price;
    }
    return slowest;
}

LibraryPrice LibraryCalls::price_at(const Placed& at, const Call& call, const Mesh& mesh) const {
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    LibraryPrice price = at.times.price(call.kind, whole, call.algorithm.inside, call.algorithm.across);
    const std::int64_t nodes = at.times.communicator().nodes;
    price.time = nodes > 1 ? wiring_.stretched_across(price.time) : wiring_.stretched_inside(price.time);
    if (at.times.communicator().ranks() < 2) return price;
    price.time = std::max(price.time, library_sent(call, mesh) / at.out_of_device);
    if (nodes > 1) {
        const Bytes crossing = least_crossing(call.kind, nodes, whole) / static_cast<double>(nodes);
        price.time = std::max(price.time, crossing / at.out_of_node);
    }
    return price;
}

}  // namespace rehearse::sim
