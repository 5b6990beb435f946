// SPDX-License-Identifier: Apache-2.0
// SimGrid's solver as an oracle: messages that start together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/collective/rounds.hpp"
#include "sim/network/zone.hpp"

namespace rehearse::sim::test {

/// When each flow's last byte leaves, without its latency, when all start at once, shared max-min.
inline std::vector<Seconds> solve(const Wiring& wiring, std::span<const Flow> flows, std::span<const Bytes> bytes) {
    std::int64_t devices = 0;
    for (const Flow& flow : flows) devices = std::max({devices, flow.from + 1, flow.to + 1});
    Simulation simulation{wiring, devices};
    std::vector<Seconds> ends(flows.size());
    // One actor a flow: an activity is taken from its issuer's list by value, so one issuer of all would be quadratic.
    for (std::size_t i = 0; i < flows.size(); ++i) {
        simulation.start(flows[i].from, [&, i] {
            simgrid::s4u::Comm::sendto(simulation.host(flows[i].from), simulation.host(flows[i].to),
                                       static_cast<std::uint64_t>(bytes[i].value));
            ends[i] = simulation.now();
        });
    }
    simulation.run();
    return ends;
}

}  // namespace rehearse::sim::test
