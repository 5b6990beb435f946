// SPDX-License-Identifier: Apache-2.0
// Ranks that compute on the same cores, more of them than cores.
#pragma once

#include <cstdint>
#include <vector>

#include "core/machine.hpp"

namespace rehearse::sim {

/// The SharedCores of a machine as far as a job's ranks, and servers behind them, are on them, rank r on device r.
/// While n ranks of a pool compute, each does so at min(1, cores / n) of the rate of a core of its own (processor
/// sharing).
class Cores {
public:
    Cores(const Machine& machine, std::int64_t ranks);

    struct Pool {
        std::int64_t cores = 1;
        std::vector<RankIndex> ranks;  // more than cores
    };
    const std::vector<Pool>& pools() const { return pools_; }
    /// Index into pools(); -1: the rank has a core to itself, whoever computes.
    int pool_of(RankIndex rank) const { return pool_of_.empty() ? -1 : pool_of_[static_cast<std::size_t>(rank)]; }
    /// How much longer a rank computes while all ranks of its pool do.
    double crowding(RankIndex rank) const;

private:
    std::vector<Pool> pools_;
    std::vector<int> pool_of_;  // by rank; empty: there are no pools
};

}  // namespace rehearse::sim
