// SPDX-License-Identifier: Apache-2.0
// Machines whose fabric alone holds messages up, and how long messages that start together take on them.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "fixture.hpp"
#include "sim/collective/price.hpp"
#include "sim/collective/rounds.hpp"
#include "sim/modes/mail.hpp"

namespace rehearse::sim::test {

// Links of 1 TB/s join devices and cards, so that these never hold up; cards of 10 GB/s; no latency that matters here.
inline Machine plain(std::int64_t nodes, Topology topology) {
    Machine machine = one_device_nodes(nodes, std::move(topology));
    machine.fabric.latency.value = machine.fabric.hop_latency.value = Seconds{0};
    return machine;
}

/// `cards` devices and cards a node, each device at its own card and all devices joined by a switch.
inline Machine railed(std::int64_t nodes, int cards, FatTree tree) {
    Machine machine = one_device_nodes(nodes, std::move(tree));
    NodeKind& kind = machine.nodes[0];
    kind.vertices.clear();
    kind.links.clear();
    for (int d = 0; d < cards; ++d) kind.vertices.push_back({fmt::format("gpu{}", d), VertexKind::device, 0});
    for (int d = 0; d < cards; ++d) kind.vertices.push_back({fmt::format("nic{}", d), VertexKind::nic, -1});
    kind.vertices.push_back({"switch", VertexKind::bridge, -1});
    for (int d = 0; d < cards; ++d) {
        kind.links.push_back(node_link(d, cards + d, 100.0_GBps));
        kind.links.push_back(node_link(d, 2 * cards, 200.0_GBps));
        kind.links.push_back(node_link(cards + d, 2 * cards, 50.0_GBps));
    }
    return machine;
}

/// How many times as long as alone on a card of 10 GB/s messages take that all start together: by counting.
inline double counted(const Machine& machine, const std::vector<Flow>& flows) {
    const Wiring wiring{machine};
    return round_time(RoundCounter{wiring}.count(flows).flows, 1_MB) / (1_MB / 10.0_GBps);
}

/// The same, every message by itself, each cut into pieces that choose their ways when they start. A piece sees only
/// what is under way then, and the last of a round leave links unevenly busy: up to 15 % longer than the best.
inline double followed(const Machine& machine, const std::vector<Flow>& flows) {
    const Wiring wiring{machine};
    Simulation simulation{wiring, device_count(machine)};
    Mail mail{simulation};
    Seconds last;
    for (RankIndex rank{0}; rank < device_count(machine); ++rank) {
        std::vector<Exchange> mine;
        for (const Flow& flow : flows) {
            if (flow.from == rank) mine.push_back({RankIndex{flow.to}, 1_MB, true, Seconds{0}});
            if (flow.to == rank) mine.push_back({RankIndex{flow.from}, 1_MB, false, Seconds{0}});
        }
        if (mine.empty()) continue;
        simulation.start(rank, [&, mine, rank] {
            last = std::max(last, mail.exchange(rank, mine, Stream::communication, Seconds{0}).end);
        });
    }
    simulation.run();
    return last / (1_MB / 10.0_GBps);
}

inline std::vector<Flow> shift(std::int64_t devices, std::int64_t by) {
    std::vector<Flow> flows;
    for (std::int64_t d = 0; d < devices; ++d) flows.push_back({d, (d + by) % devices});
    return flows;
}

inline std::vector<std::string> names(const Machine& machine, std::int64_t from, std::int64_t to) {
    const Wiring wiring{machine};
    std::vector<Hop> hops;
    wiring.route(from, to, hops);
    std::vector<std::string> result;
    for (const Hop& hop : hops) result.push_back(wiring.link(hop.link).name);
    return result;
}

inline double microseconds(const Machine& machine, std::int64_t from, std::int64_t to) {
    const Wiring wiring{machine};
    std::vector<Hop> hops;
    return wiring.route(from, to, hops).value * 1e6;
}

inline Dragonfly adaptive(std::int64_t groups, std::int64_t routers, std::int64_t nodes, Bandwidth local,
                          Bandwidth global) {
    return {groups, routers, nodes, {local, "test"}, {global, "test"}, FabricRouting::adaptive};
}

inline DragonflyPlus plus(std::int64_t groups, std::int64_t leaves, std::int64_t nodes, Bandwidth up, Bandwidth global,
                          FabricRouting routing) {
    return {groups, leaves, nodes, {up, "test"}, {global, "test"}, routing};
}

}  // namespace rehearse::sim::test
