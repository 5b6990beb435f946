// SPDX-License-Identifier: Apache-2.0
#include "sim/rounds.hpp"

#include <algorithm>

namespace rehearse::sim {

RoundCounter::RoundCounter(const Wiring& wiring)
    : wiring_(wiring), load_(static_cast<std::size_t>(wiring.link_count()), 0) {}

std::vector<FlowCost> RoundCounter::count(std::span<const Flow> flows) {
    std::vector<FlowCost> costs(flows.size());
    hops_.clear();
    ends_.clear();
    for (std::size_t i = 0; i < flows.size(); ++i) {
        const std::size_t first = hops_.size();
        costs[i].latency = wiring_.route(flows[i].from, flows[i].to, hops_);
        for (std::size_t h = first; h < hops_.size(); ++h) ++load_[static_cast<std::size_t>(hops_[h].link)];
        ends_.push_back(hops_.size());
    }
    std::size_t h = 0;
    for (std::size_t i = 0; i < flows.size(); ++i) {
        double worst = 0;
        for (; h < ends_[i]; ++h) {
            worst = std::max(worst, hops_[h].cost.value * load_[static_cast<std::size_t>(hops_[h].link)]);
        }
        costs[i].wire = PerByte{worst};
    }
    for (const Hop& hop : hops_) load_[static_cast<std::size_t>(hop.link)] = 0;
    return costs;
}

Seconds round_time(std::span<const FlowCost> costs, Bytes bytes) {
    Seconds last;
    for (const FlowCost& cost : costs) last = std::max(last, cost.latency + cost.wire * bytes);
    return last;
}

}  // namespace rehearse::sim
