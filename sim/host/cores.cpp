// SPDX-License-Identifier: Apache-2.0
#include "sim/host/cores.hpp"

#include <utility>

namespace rehearse::sim {

Cores::Cores(const Machine& machine, std::int64_t ranks) {
    for (const SharedCores& shared : machine.shared_cores) {
        Pool pool{shared.cores, {}};
        for (const std::int64_t device : shared.devices) {
            if (device < ranks) pool.ranks.emplace_back(device);
        }
        if (std::ssize(pool.ranks) <= pool.cores) continue;
        pool_of_.resize(static_cast<std::size_t>(ranks), -1);
        for (const RankIndex rank : pool.ranks) {
            pool_of_[static_cast<std::size_t>(rank)] = static_cast<int>(pools_.size());
        }
        pools_.push_back(std::move(pool));
    }
}

double Cores::crowding(RankIndex rank) const {
    const int pool = pool_of(rank);
    if (pool < 0) return 1;
    const Pool& of = pools_[static_cast<std::size_t>(pool)];
    return static_cast<double>(of.ranks.size()) / static_cast<double>(of.cores);
}

}  // namespace rehearse::sim
