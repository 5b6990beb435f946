// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/exact_collectives.hpp"

#include <algorithm>

#include "sim/modes/mail.hpp"
#include "sim/network/zone.hpp"

namespace rehearse::sim {

std::vector<double> follow(const Mesh& mesh, std::span<const Begun> row, const Wiring& wiring,
                           std::vector<double> ready) {
    const auto ranks = static_cast<std::int64_t>(ready.size());
    const Seconds origin{std::ranges::min(ready)};
    std::vector<Exchanges> exchanges;
    for (const Begun& begun : row) exchanges.emplace_back(mesh, begun.call, wiring, ranks);
    Simulation simulation{wiring, ranks};
    Mail mail{simulation};
    for (RankIndex rank{0}; rank < ranks; ++rank) {
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
