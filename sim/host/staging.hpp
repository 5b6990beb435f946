// SPDX-License-Identifier: Apache-2.0
// Samples that are copied from a shared file system to storage inside the nodes before training begins, and checkpoints
// that are written to storage.
#pragma once

#include <string>

#include "core/machine.hpp"
#include "core/schedule.hpp"

namespace rehearse::sim {

struct Staging {
    Seconds read;  // every sample once from the shared tier, all nodes together
    Seconds
        received;  // what a node keeps, over its NICs, where others read some of it: what comes from them and the tier
    Seconds written;  // what a node keeps, into its own tier
    Seconds time() const;
};

/// As for the climate runs of SC'18: each of `samples` samples is read by one node and sent to all that keep it; a node
/// keeps `kept` of them. The three go on at the same time, so that the slowest counts. InputError when the machine
/// lacks the tiers, or `to` is not inside the nodes.
Staging stage(const Machine& machine, std::int64_t nodes, const std::string& from, const std::string& to,
              std::int64_t samples, std::int64_t kept, Bytes sample);

/// Nodes behind those of a job that keep its samples in memory and send them (Project Adam's data servers: Chilimbi et
/// al. 2014, section 3.1).
struct DataServers {
    std::int64_t count = 1;
    Bytes cache;         // of each: samples that come in any order are in it with the share of all that it holds
    Bytes samples;       // all of them
    std::string behind;  // the tier that has those which no cache has; empty: there is none
};
/// What of all samples lies in the caches.
double cached_share(const DataServers& servers);
/// The shared tier that they are to the first `nodes` nodes: each sends at the rate of its NICs, or at that of the tier
/// behind it over the share that is not in its cache, whichever is less; the job takes no more than its NICs do.
/// InputError when the machine has not so many nodes, or samples lie nowhere.
StorageTier served_tier(const Machine& machine, std::int64_t nodes, const DataServers& servers);

/// What a checkpoint holds: each weight and what the optimizer keeps of it once, as f32.
struct Checkpoint {
    Bytes size;
    std::int64_t writers = 1;  // nodes with ranks that have what none before them has (core/kept_state.hpp), or update
                               // a shard of it
    Seconds time;              // training waits for it
};
/// Each writes its share at what tier_rates gives it (sim/network/storage.hpp). InputError when the
/// machine lacks the tier or its write rate.
Checkpoint checkpoint(const Schedule& schedule, const Machine& machine, const std::string& tier);

/// From how many devices on a shared tier is the bound, when each device reads at this rate: all of it, or what one
/// node gets of it.
std::int64_t devices_until_bound(const Machine& machine, const StorageTier& tier, Bandwidth each);

}  // namespace rehearse::sim
