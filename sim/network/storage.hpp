// SPDX-License-Identifier: Apache-2.0
// What nodes get of storage while they read from it, or write to it, at the same time.
#pragma once

#include <cstdint>
#include <map>

#include "core/machine.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {

/// The tier, or InputError with those that there are.
const StorageTier& storage_tier(const Machine& machine, const std::string& name);

/// How many on each node read or write at the same time, by node.
using TierUsers = std::map<std::int64_t, std::int64_t>;
enum class TierUse { read, write };

/// What each user on each node gets. Of a tier inside the nodes an even share of its node's; of a shared one an even
/// share of the whole tier, and of what one client gets (StorageTier::client), the NICs of its node carry, and the
/// links from the top of a tree of switches down to it. Where storage is attached to a fabric without a top no figure
/// says: its switches are taken to be no bottleneck. What else goes over these links at the same time is not seen.
std::map<std::int64_t, Bandwidth> tier_rates(const Wiring& wiring, const StorageTier& tier, TierUse use,
                                             const TierUsers& users);

/// No node gets more of the tier, whoever else uses it.
Bandwidth most_of_tier(const Wiring& wiring, const StorageTier& tier, TierUse use, std::int64_t node);

}  // namespace rehearse::sim
