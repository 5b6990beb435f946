// SPDX-License-Identifier: Apache-2.0
// What each policy gives to the jobs that are there.
#pragma once

#include <span>
#include <vector>

#include "cluster/allocate.hpp"
#include "cluster/simulate.hpp"

namespace rehearse::cluster {

/// What a job could have of a cluster, under a policy.
struct Prospects {
    std::vector<Share> shares;  // by devices
    double one_device = 1;      // samples a second of one device at its best: the unit of the scaling factor
    Share asked;                // by its user
};
Prospects prospects(const Job& job, const Speeds& speeds, const Options& options);

/// A job at a decision: what it could have, and what it has; no devices: it waits.
struct Standing {
    const Prospects* prospects;
    Share has;
};

/// What each has from now on, the first to be ready first.
std::vector<Share> decide(std::span<const Standing> standing, const Options& options);

}  // namespace rehearse::cluster
