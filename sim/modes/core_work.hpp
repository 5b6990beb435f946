// SPDX-License-Identifier: Apache-2.0
// Work of ranks and servers on their cores, which several may share. Included by this folder's sources only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/host/cores.hpp"
#include "sim/network/zone.hpp"

namespace rehearse::sim {

class CoreWork {
public:
    /// Keeps references; the simulation has the cores' pools from `first` on.
    CoreWork(const Cores& cores, const Simulation& simulation, std::size_t first)
        : cores_(cores), simulation_(simulation), first_(static_cast<int>(first)) {}

    struct Work {
        std::int64_t device = 0;
        Seconds alone;  // on a core of its own
    };
    /// Called by an actor: from `when` on all of it at the same time; when the last ends. Without shared cores
    /// SimGrid's clock does not go on.
    Seconds run(std::span<const Work> works, Seconds when) const {
        std::vector<std::pair<int, Seconds>> shared;
        Seconds end = when;
        for (const Work& work : works) {
            const int pool = cores_.pool_of(RankIndex{work.device});
            if (pool < 0) end = std::max(end, when + work.alone);
            if (pool >= 0) shared.emplace_back(first_ + pool, work.alone);
        }
        if (shared.empty()) return end;
        simulation_.sleep_until(when);
        simulation_.compute(shared);
        return std::max(end, simulation_.now());
    }

private:
    const Cores& cores_;
    const Simulation& simulation_;
    int first_;
};

/// How many cores there are in each pool that ranks share.
inline std::vector<std::int64_t> core_counts(const Cores& cores) {
    std::vector<std::int64_t> counts;
    for (const Cores::Pool& pool : cores.pools()) counts.push_back(pool.cores);
    return counts;
}

}  // namespace rehearse::sim
