// SPDX-License-Identifier: Apache-2.0
#include "sim/bundles.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"

namespace rehearse::sim {

int Bundles::add(std::span<const Flow> flows) {
    require(kinds_.empty(), "bundles are added before rates are asked for");
    const int bundle = static_cast<int>(ways_.size());
    Way way;
    std::vector<Hop> hops;
    for (const Flow& flow : flows) {
        hops.clear();
        way.latency = std::max(way.latency, wiring_.route(flow.from, flow.to, hops));
        way.across = way.across || wiring_.across(flow.from, flow.to);
        for (const Hop& hop : hops) {
            way.alone = std::max(way.alone, hop.cost);
            Share& share = links_[hop.link];
            share.cost = hop.cost.value;
            if (share.flows.empty() || share.flows.back().first != bundle) share.flows.emplace_back(bundle, 0);
            ++share.flows.back().second;
        }
    }
    ways_.push_back(way);
    return bundle;
}

Seconds Bundles::latency(int bundle, Bytes bytes) const {
    const Way& way = ways_[static_cast<std::size_t>(bundle)];
    return way.latency + wiring_.beyond(way.across, bytes, way.alone);
}

void Bundles::reduce() {
    for (auto& [link, share] : links_) kinds_.push_back(std::move(share));
    links_.clear();
    std::ranges::sort(kinds_);
    kinds_.erase(std::unique(kinds_.begin(), kinds_.end()), kinds_.end());
}

std::vector<double> Bundles::rates(std::span<const int> bundles) {
    if (kinds_.empty()) reduce();
    std::vector<int> key{bundles.begin(), bundles.end()};
    std::vector<double>& rates = known_[key];
    if (!rates.empty()) return rates;
    // Water filling: all rates grow together; where a link is full, those that cross it stop.
    rates.assign(key.size(), 0);
    std::vector<double> left(kinds_.size(), 1);
    std::vector<bool> growing(key.size(), true);
    const auto weight = [&](const Share& kind, bool only_growing) {
        double sum = 0;
        for (std::size_t i = 0; i < key.size(); ++i) {
            if (only_growing && !growing[i]) continue;
            for (const auto& [bundle, count] : kind.flows) sum += bundle == key[i] ? count : 0;
        }
        return sum * kind.cost;
    };
    while (std::ranges::count(growing, true) > 0) {
        double growth = std::numeric_limits<double>::infinity();
        for (std::size_t k = 0; k < kinds_.size(); ++k) {
            const double grows = weight(kinds_[k], true);
            if (grows > 0) growth = std::min(growth, std::max(left[k], 0.0) / grows);
        }
        require(growth < std::numeric_limits<double>::infinity(), "every message crosses a link");
        for (std::size_t i = 0; i < key.size(); ++i) rates[i] += growing[i] ? growth : 0;
        std::vector<bool> still = growing;
        for (std::size_t k = 0; k < kinds_.size(); ++k) {
            const double grows = weight(kinds_[k], true);
            left[k] -= growth * grows;
            if (grows == 0 || left[k] > 1e-12) continue;
            for (std::size_t i = 0; i < key.size(); ++i) {
                const auto crosses = [&](const auto& flow) { return flow.first == key[i]; };
                if (std::ranges::any_of(kinds_[k].flows, crosses)) still[i] = false;
            }
        }
        growing = std::move(still);
    }
    return rates;
}

}  // namespace rehearse::sim
