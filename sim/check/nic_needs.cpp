// SPDX-License-Identifier: Apache-2.0
#include "sim/check/nic_needs.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "core/index.hpp"
#include "sim/check/bounds.hpp"
#include "sim/collective/groups.hpp"
#include "sim/collective/in_switch.hpp"
#include "sim/network/storage.hpp"

namespace rehearse::sim {

const NicNeeds::Crossing& NicNeeds::crossing(int c, int axis) {
    const auto [entry, fresh] = crossings_.try_emplace({c, axis});
    Crossing& made = entry->second;
    if (!fresh) return made;
    const Groups groups = groups_along(steps_.schedule().mesh, axis, {}, wiring_);
    std::vector<std::int64_t> nodes;
    for (std::int64_t group = 0; group < groups.count; ++group) {
        if (steps_.class_of(groups.rank(group, 0)) != c) continue;
        std::vector<std::int64_t> touched;
        for (std::int64_t member = 0; member < groups.shape.size; ++member) {
            const std::int64_t node = wiring_.node_of(groups.rank(group, member));
            if (touched.empty() || touched.back() != node) touched.push_back(node);
        }
        std::ranges::sort(touched);
        touched.erase(std::ranges::unique(touched).begin(), touched.end());
        nodes.insert(nodes.end(), touched.begin(), touched.end());
        ++made.groups;
        ++made.by_nodes[static_cast<std::int64_t>(touched.size())];
    }
    std::ranges::sort(nodes);
    nodes.erase(std::ranges::unique(nodes).begin(), nodes.end());
    for (const std::int64_t node : nodes) made.nics += wiring_.node_egress(node);
    return made;
}

Seconds NicNeeds::time(int c, const Communicate& communicate) {
    const Crossing& of = crossing(c, communicate.axis);
    const Bytes whole = size_of(communicate.type) * static_cast<double>(communicate.elements);
    Bytes bytes;
    for (const auto& [nodes, groups] : of.by_nodes) {
        const Bytes least = nodes > 1 && may_sum_between_nodes(call_of(communicate), wiring_)
                                ? static_cast<double>(nodes) * whole
                                : least_crossing(communicate.kind, nodes, whole);
        bytes += static_cast<double>(groups) * least;
    }
    return bytes > Bytes{} ? bytes / of.nics : Seconds{};
}

Bandwidth NicNeeds::most_into(int c, const StorageTier& tier) {
    const auto [entry, fresh] = into_.try_emplace({c, tier.name});
    if (!fresh) return entry->second;
    std::set<std::int64_t> nodes;
    for (const RankIndex rank : steps_.ranks_of(c)) nodes.insert(wiring_.node_of(rank));
    for (const std::int64_t node : nodes) entry->second += most_of_tier(wiring_, tier, TierUse::read, node);
    if (!tier.per_node) entry->second = std::min(entry->second, tier.read.value);
    return entry->second;
}

}  // namespace rehearse::sim
