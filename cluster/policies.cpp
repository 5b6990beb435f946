// SPDX-License-Identifier: Apache-2.0
#include "cluster/policies.hpp"

#include <algorithm>

namespace rehearse::cluster {

namespace {

std::vector<Share> decide_fifo(std::span<const Standing> standing, const Options& options) {
    std::int64_t left = options.devices;
    for (const Standing& job : standing) left -= job.has.devices;
    std::vector<Share> shares;
    bool overtakes = true;
    for (const Standing& job : standing) {
        Share& share = shares.emplace_back(job.has);
        if (share.devices > 0 || !overtakes) continue;
        const Share& asked = job.prospects->asked;
        if (asked.devices > left) {
            overtakes = !options.queue;
            continue;
        }
        left -= asked.devices;
        share = asked;
    }
    return shares;
}

}  // namespace

Prospects prospects(const Job& job, const Speeds& speeds, const Options& options) {
    Prospects made;
    const bool fixed = options.policy != Policy::elastic;
    const BatchRange batches = fixed ? BatchRange{job.batch, job.batch} : job.batches;
    const std::int64_t most = std::min(job.most_devices, options.devices);
    for (std::int64_t k = 0; k <= most; ++k) made.shares.push_back(speeds.best(k, batches, options.even));
    made.asked = {job.devices, job.batch, speeds.samples_per_s(job.devices, job.batch)};
    // Where one device cannot hold even the smallest batch: a share of what the fewest that can make of it.
    for (std::int64_t k = 1; k <= most; ++k) {
        const Share share = speeds.best(k, job.batches, options.even);
        if (share.samples_per_s <= 0) continue;
        made.one_device = share.samples_per_s / static_cast<double>(k);
        break;
    }
    return made;
}

std::vector<Share> decide(std::span<const Standing> standing, const Options& options) {
    if (options.policy == Policy::fifo) return decide_fifo(standing, options);
    std::vector<Candidate> candidates;
    for (const Standing& job : standing) {
        candidates.push_back({job.prospects->shares, job.prospects->one_device, job.has});
    }
    return elastic_shares(candidates, options.devices);
}

}  // namespace rehearse::cluster
