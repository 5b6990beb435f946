// SPDX-License-Identifier: Apache-2.0
#include "sim/network/storage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::sim {

namespace {

// Written as fast as read, where nothing else is said.
Bandwidth whole_rate(const StorageTier& tier, TierUse use) {
    return use == TierUse::write && !tier.write.source.empty() ? tier.write.value : tier.read.value;
}

}  // namespace

const StorageTier& storage_tier(const Machine& machine, const std::string& name) {
    const auto tier = std::ranges::find(machine.storage, name, &StorageTier::name);
    if (tier == machine.storage.end()) {
        std::vector<std::string_view> names;
        for (const StorageTier& known : machine.storage) names.push_back(known.name);
        throw InputError(fmt::format("{}: machine '{}' has no storage tier '{}'{}; it has: {}", machine.origin,
                                     machine.name, name, did_you_mean(name, names),
                                     names.empty() ? "none" : join(names)));
    }
    if (!(tier->read.value.value > 0)) {
        throw InputError(fmt::format("{}: machine '{}': storage tier '{}' needs a read bandwidth above 0",
                                     machine.origin, machine.name, tier->name));
    }
    return *tier;
}

Bandwidth most_of_tier(const Wiring& wiring, const StorageTier& tier, TierUse use, std::int64_t node) {
    Bandwidth most = whole_rate(tier, use);
    if (tier.per_node) return most;
    if (!tier.client.source.empty()) most = std::min(most, tier.client.value);
    const Bandwidth nics = use == TierUse::read ? wiring.node_ingress(node) : wiring.node_egress(node);
    return nics > Bandwidth{} ? std::min(most, nics) : most;
}

std::map<std::int64_t, Bandwidth> tier_rates(const Wiring& wiring, const StorageTier& tier, TierUse use,
                                             const TierUsers& users) {
    std::int64_t all = 0;
    std::map<std::int64_t, std::vector<Hop>> routes;   // by node
    std::map<std::int64_t, std::int64_t> users_below;  // by link
    for (const auto& [node, count] : users) {
        all += count;
        if (tier.per_node) continue;
        std::vector<Hop>& route = routes[node];
        wiring.from_top(node, use == TierUse::read, route);
        for (const Hop& hop : route) users_below[hop.link] += count;
    }
    std::map<std::int64_t, Bandwidth> rates;
    for (const auto& [node, count] : users) {
        Bandwidth& rate = rates[node];
        rate = most_of_tier(wiring, tier, use, node) * (1 / static_cast<double>(count));
        if (tier.per_node) continue;
        rate = std::min(rate, whole_rate(tier, use) * (1 / static_cast<double>(all)));
        for (const Hop& hop : routes[node]) {
            rate = std::min(rate, Bandwidth{1 / (hop.cost.value * static_cast<double>(users_below[hop.link]))});
        }
    }
    return rates;
}

}  // namespace rehearse::sim
