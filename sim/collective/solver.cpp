// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/solver.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "sim/modes/mail.hpp"
#include "sim/network/zone.hpp"

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

std::vector<Seconds> solve(const Wiring& wiring, std::span<const Flow> flows, std::span<const Bytes> bytes) {
    require(flows.size() == bytes.size(), "a size for each flow");
    std::int64_t devices = 0;
    for (const Flow& flow : flows) devices = std::max({devices, flow.from + 1, flow.to + 1});
    Simulation simulation{wiring, devices};
    std::vector<Seconds> ends(flows.size());
    // One actor a flow: an activity is taken from its issuer's list by value, so one issuer of all would be quadratic.
    for (std::size_t i = 0; i < flows.size(); ++i) {
        simulation.start(flows[i].from, [&, i] {
            s4u::Comm::sendto(simulation.host(flows[i].from), simulation.host(flows[i].to),
                              static_cast<std::uint64_t>(bytes[i].value));
            ends[i] = simulation.now();
        });
    }
    simulation.run();
    return ends;
}

std::vector<double> follow(const Mesh& mesh, std::span<const Begun> row, const Wiring& wiring,
                           std::vector<double> ready) {
    const auto ranks = static_cast<std::int64_t>(ready.size());
    const Seconds origin{std::ranges::min(ready)};
    std::vector<Exchanges> exchanges;
    for (const Begun& begun : row) exchanges.emplace_back(mesh, begun.call, wiring, ranks);
    Simulation simulation{wiring, ranks};
    Mail mail{simulation};
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
        simulation.start(rank, [&, rank] {
            double& mine = ready[static_cast<std::size_t>(rank)];
            Seconds when = Seconds{mine} - origin;
            for (std::size_t i = 0; i < row.size(); ++i) {
                when = std::max(when, row[i].earliest - origin);
                for (std::int64_t round = 0; round < exchanges[i].rounds(); ++round) {
                    when = mail.exchange(rank, exchanges[i].of(round, rank), Stream::communication, when).end;
                }
            }
            mine = (when + origin).value;
        });
    }
    simulation.run();
    return ready;
}

}  // namespace rehearse::sim
