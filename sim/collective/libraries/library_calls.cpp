// SPDX-License-Identifier: Apache-2.0
// From the groups of a schedule's collective to the communicators of a library.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "core/index.hpp"
#include "sim/check/bounds.hpp"
#include "sim/collective/libraries/library_times.hpp"
#include "sim/collective/rounds.hpp"

namespace rehearse::sim {

namespace {

/// The nodes of a group's ranks, and how many are on each: the same number.
struct Spread {
    std::int64_t nodes = 1, per_node = 1;
};
Spread spread_of(const Groups& groups, std::int64_t group, const Wiring& wiring) {
    std::int64_t nodes = 0, last = -1, here = 0, first = 0;
    for (std::int64_t member = 0; member < groups.shape.size; ++member) {
        const std::int64_t node = wiring.node_of(groups.rank(group, member));
        if (node != last) {
            if (nodes == 1) first = here;
            if (nodes > 1 && here != first)
                throw InputError(fmt::format(
                    "nccl: its ranks are {} on one node and {} on another; use as many on each", first, here));
            ++nodes;
            here = 0;
            last = node;
        }
        ++here;
    }
    if (nodes > 1 && here != first)
        throw InputError(
            fmt::format("nccl: its ranks are {} on one node and {} on another; use as many on each", first, here));
    return {nodes, nodes == 1 ? here : first};
}

/// How many times as long a byte takes between nodes as alone on a network card: all groups send at once, each rank of
/// a node its share to the next node of its group.
double crowding_of(const Groups& groups, const Spread& spread, std::int64_t rails, const Wiring& wiring) {
    std::vector<Flow> flows;
    for (std::int64_t group = 0; group < groups.count; ++group) {
        for (std::int64_t member = 0; member < groups.shape.size; ++member) {
            const std::int64_t next = (member + spread.per_node) % groups.shape.size;
            flows.push_back({groups.rank(group, member), groups.rank(group, next)});
        }
    }
    RoundCounter counter{wiring};
    double most = 1;
    for (const MessageKind& kind : counter.kinds(flows)) {
        if (kind.alone > PerByte{}) most = std::max(most, kind.shared.value / kind.alone.value);
    }
    const double share = static_cast<double>(rails) / static_cast<double>(spread.per_node);
    return std::max(1.0, most * std::min(1.0, share));
}

}  // namespace

const LibraryCalls::Placed& LibraryCalls::placed(const Call& call, const Mesh& mesh) {
    const auto known = placed_.find(call.axis);
    if (known != placed_.end()) return known->second;
    const Groups groups = groups_along(mesh, call.axis, {}, wiring_);
    const Machine& machine = wiring_.machine();
    const CollectiveSoftware& software = machine.collectives;
    if (software.library && software.library->name != call.algorithm.name)
        throw InputError(fmt::format("{}: machine '{}' has {}, not {}: [collectives] library says which",
                                     machine.origin, machine.name, software.library->name, call.algorithm.name));
    const Spread spread = spread_of(groups, 0, wiring_);
    std::vector<int> devices;
    const DeviceAt first = locate(machine, groups.rank(0, 0));
    std::int64_t first_of_node = groups.rank(0, 0);
    while (first_of_node > 0 && wiring_.node_of(first_of_node - 1) == wiring_.node_of(groups.rank(0, 0)))
        --first_of_node;
    for (std::int64_t member = 0; member < spread.per_node; ++member)
        devices.push_back(static_cast<int>(groups.rank(0, member) - first_of_node));
    const auto kind = static_cast<std::size_t>(first.kind);
    double crowding = 1;
    Bandwidth most;
    if (spread.nodes > 1) {
        const LibraryTimes alone{machine, software, kind, spread.nodes, devices};
        const std::int64_t rails = alone.communicator().view.rails;
        crowding = crowding_of(groups, spread, rails, wiring_);
        const auto nics = std::ranges::count(machine.nodes[kind].vertices, VertexKind::nic, &Vertex::kind);
        most = wiring_.node_egress(first.node) * (static_cast<double>(rails) / static_cast<double>(nics));
    }
    const LibraryTimes times{machine, software, kind, spread.nodes, devices, crowding, most};
    return placed_.emplace(call.axis, Placed{times, groups.rank(0, 0), most / crowding}).first->second;
}

Bytes library_sent(const Call& call, const Mesh& mesh) {
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    const std::int64_t size = size_of(mesh, call.axis);
    return least_crossing(call.kind, size, whole) / static_cast<double>(size);
}

LibraryPrice LibraryCalls::price(const Call& call, const Mesh& mesh) {
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    const Placed& at = placed(call, mesh);
    LibraryPrice price = at.times.price(call.kind, whole, call.algorithm.inside, call.algorithm.across);
    const std::int64_t nodes = at.times.communicator().nodes;
    price.time = nodes > 1 ? wiring_.stretched_across(price.time) : wiring_.stretched_inside(price.time);
    if (at.times.communicator().ranks() < 2) return price;
    price.time = std::max(price.time, library_sent(call, mesh) / wiring_.egress(at.device));
    if (nodes > 1) {
        const Bytes crossing = least_crossing(call.kind, nodes, whole) / static_cast<double>(nodes);
        price.time = std::max(price.time, crossing / at.out);
    }
    return price;
}

}  // namespace rehearse::sim
