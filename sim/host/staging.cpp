// SPDX-License-Identifier: Apache-2.0
#include "sim/host/staging.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/kept_state.hpp"
#include "sim/network/storage.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

Seconds Staging::time() const { return std::max({read, received, written}); }

namespace {

// Of one user on each of the nodes from `first` on, the slowest.
Bandwidth slowest_of(const Machine& machine, const StorageTier& tier, TierUse use, std::int64_t first,
                     std::int64_t count) {
    TierUsers users;
    for (std::int64_t node = first; node < first + count; ++node) users[node] = 1;
    const auto rates = tier_rates(Wiring{machine}, tier, use, users);
    return std::ranges::min_element(rates, {}, [](const auto& rate) { return rate.second; })->second;
}

}  // namespace

Staging stage(const Machine& machine, std::int64_t nodes, const std::string& from, const std::string& to,
              std::int64_t samples, std::int64_t kept, Bytes sample) {
    const StorageTier& source = storage_tier(machine, from);
    const StorageTier& target = storage_tier(machine, to);
    if (!target.per_node || source.per_node) {
        throw InputError(
            fmt::format("staging from '{}' to '{}': right is from a shared tier to one inside the nodes "
                        "(per_node = true)",
                        from, to));
    }
    const Bytes own = sample * (static_cast<double>(samples) / static_cast<double>(nodes));
    const Bytes keeps = sample * static_cast<double>(kept);
    Staging staging{.read = own / slowest_of(machine, source, TierUse::read, 0, nodes),
                    .received = {},
                    .written = keeps / slowest_of(machine, target, TierUse::write, 0, 1)};
    if (nodes > 1 && keeps > own) staging.received = keeps / Wiring{machine}.node_ingress(0);
    return staging;
}

double cached_share(const DataServers& servers) {
    return std::min(1.0, static_cast<double>(servers.count) * servers.cache / servers.samples);
}

StorageTier served_tier(const Machine& machine, std::int64_t nodes, const DataServers& servers) {
    const std::int64_t all = node_count(machine);
    if (servers.count < 1 || nodes + servers.count > all) {
        throw InputError(
            fmt::format("{}: machine '{}': {} node{} and {} data server{}, of {} nodes; at least 1 of each",
                        machine.origin, machine.name, nodes, nodes == 1 ? " that trains" : "s that train",
                        servers.count, servers.count == 1 ? "" : "s", all));
    }
    const double missing = 1 - cached_share(servers), count = static_cast<double>(servers.count);
    Bandwidth sent = count * Wiring{machine}.node_egress(nodes);
    if (missing > 0) {
        if (servers.behind.empty()) {
            throw InputError(
                fmt::format("{} of {} of cache cannot hold samples of {} in all: take more or larger ones, or say "
                            "by --input which storage tier has the rest",
                            servers.count == 1 ? "1 data server" : fmt::format("{} data servers", servers.count),
                            to_string(servers.cache), to_string(servers.samples)));
        }
        const StorageTier& behind = storage_tier(machine, servers.behind);
        sent = std::min(sent, slowest_of(machine, behind, TierUse::read, nodes, servers.count) * (count / missing));
    }
    const Bandwidth taken = static_cast<double>(nodes) * Wiring{machine}.node_ingress(0);
    return {"data-servers", {std::min(sent, taken), fmt::format("{} nodes behind the job's", servers.count)}};
}

namespace {

/// Of the layers of a class that have weights.
std::vector<Origin> origins_of_weights(const Part& part) {
    std::vector<Origin> origins;
    for (std::size_t i = 0; i < part.origins.size(); ++i) {
        const Layer& layer = part.network.layers[i];
        const bool own = part.origins[i].layer >= 0 && layer.weights_of < 0;
        if (own && parameters(layer.op) > 0) origins.push_back(part.origins[i]);
    }
    return origins;
}

/// The axes along which each rank updates its piece of the weights that they all have.
std::set<int> axes_of_shards(const RankClass& rank_class) {
    std::set<int> axes;
    for (const Step& step : rank_class.steps) {
        const auto* update = std::get_if<Update>(&step.action);
        if (update != nullptr && update->sharded >= 0) axes.insert(update->sharded);
    }
    return axes;
}

/// Nodes on which ranks have numbers of the state that no rank before them has.
std::set<std::int64_t> nodes_of_writers(const Schedule& schedule, const Machine& machine) {
    std::vector<std::vector<Origin>> origins;
    std::vector<std::set<int>> shards;
    for (const RankClass& rank_class : schedule.classes) {
        origins.push_back(origins_of_weights(rank_class.part));
        shards.push_back(axes_of_shards(rank_class));
    }
    const auto writes = [&](RankIndex rank) {
        const std::size_t of = at(class_of(schedule, rank));
        if (has_own(schedule, rank, origins[of])) return true;
        return std::ranges::any_of(shards[of], [&](int axis) {  // of the first of its group it has a piece
            const std::int64_t place = place_on(schedule.mesh, axis, rank);
            return has_own(schedule, neighbour(schedule.mesh, axis, rank, -place), origins[of]);
        });
    };
    std::set<std::int64_t> nodes;
    const std::int64_t all = ranks(schedule.mesh);
    for (RankIndex rank{0}; rank < all; ++rank) {
        if (writes(rank)) nodes.insert(locate(machine, rank).node);
    }
    return nodes;
}

}  // namespace

Checkpoint checkpoint(const Schedule& schedule, const Machine& machine, const std::string& tier) {
    const StorageTier& target = storage_tier(machine, tier);
    if (!(target.write.value > Bandwidth{})) {
        throw InputError(
            fmt::format("{}: machine '{}': storage tier '{}' has no write rate: add one, like write = "
                        "\"2GBps\"",
                        machine.origin, machine.name, tier));
    }
    const std::set<std::int64_t> nodes = nodes_of_writers(schedule, machine);
    Checkpoint made;
    made.size = size_of(DataType::f32) * static_cast<double>(kept_numbers(schedule));
    made.writers = static_cast<std::int64_t>(nodes.size());
    TierUsers writers;
    for (const std::int64_t node : nodes) writers[node] = 1;
    for (const auto& [node, rate] : tier_rates(Wiring{machine}, target, TierUse::write, writers)) {
        made.time = std::max(made.time, made.size * (1 / static_cast<double>(made.writers)) / rate);
    }
    return made;
}

std::int64_t devices_until_bound(const Machine& machine, const StorageTier& tier, Bandwidth each) {
    const Bandwidth node = most_of_tier(Wiring{machine}, tier, TierUse::read, 0);
    const std::int64_t per_node = devices_per_node(machine.nodes.front());
    const double devices = (each * static_cast<double>(per_node) > node ? node : tier.read.value) / each;
    return devices < 1e15 ? static_cast<std::int64_t>(std::ceil(devices)) : std::numeric_limits<std::int64_t>::max();
}

}  // namespace rehearse::sim
