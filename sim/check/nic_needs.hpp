// SPDX-License-Identifier: Apache-2.0
// What the ranks of a class need of the NICs of their nodes, whatever they send. Included by this folder's sources
// only.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "sim/network/wiring.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

class NicNeeds {
public:
    /// Keeps references.
    NicNeeds(const Steps& steps, const Wiring& wiring) : steps_(steps), wiring_(wiring) {}

    /// How many groups along an axis the class has.
    std::int64_t groups(int rank_class, int axis) { return crossing(rank_class, axis).groups; }
    /// The least time that a collective of these groups takes on all NICs of their nodes together.
    Seconds time(int rank_class, const Communicate& communicate);
    /// The most that a storage tier and the NICs bring into all nodes of the class together.
    Bandwidth most_into(int rank_class, const StorageTier& tier);

private:
    /// Of a class's groups along an axis.
    struct Crossing {
        std::int64_t groups = 0;
        std::map<std::int64_t, std::int64_t> by_nodes;  // how many groups lie on so many nodes
        Bandwidth nics;                                 // of all nodes together, out of them
    };
    const Crossing& crossing(int rank_class, int axis);

    const Steps& steps_;
    const Wiring& wiring_;
    std::map<std::pair<int, int>, Crossing> crossings_;      // by class and axis
    std::map<std::pair<int, std::string>, Bandwidth> into_;  // by class and tier
};

}  // namespace rehearse::sim
