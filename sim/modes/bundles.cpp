// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/bundles.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::sim {

namespace {

// Every weight of `light` stands in `heavy` too, and is no less there.
template <typename Share>
bool covers(const Share& heavy, const Share& light) {
    std::size_t h = 0;
    for (const auto& weight : light) {
        while (h < heavy.size() && heavy[h].bundle < weight.bundle) ++h;
        if (h == heavy.size() || heavy[h].bundle != weight.bundle || heavy[h].cost < weight.cost) return false;
    }
    return true;
}

}  // namespace

std::size_t Bundles::Hash::operator()(const std::vector<int>& bundles) const {
    std::uint64_t hash = 14695981039346656037U;  // FNV-1a, a number at a time
    for (const int bundle : bundles) hash = (hash ^ static_cast<std::uint64_t>(bundle)) * 1099511628211U;
    return hash ^ hash >> 29U;
}

int Bundles::add(std::span<const Flow> flows) {
    require(kinds_.empty(), "bundles are added before rates are asked for");
    const int bundle = static_cast<int>(ways_.size());
    Way way;
    std::vector<Hop> hops;
    for (const Flow& flow : flows) {
        hops.clear();
        way.latency = std::max(way.latency, wiring_.limiting_route(flow.from, flow.to, hops));
        way.across = way.across || wiring_.across(flow.from, flow.to);
        for (const Hop& hop : hops) {
            way.alone = std::max(way.alone, hop.cost);
            Share& share = links_[hop.link];
            if (share.empty() || share.back().bundle != bundle) share.push_back({bundle, 0});
            share.back().cost += hop.cost.value;
        }
    }
    ways_.push_back(way);
    return bundle;
}

// A pool is a link that carries as much work a second as it has cores, and each rank has one of its own that carries
// what one core does. Links of the machine have numbers from 0 on.
int Bundles::add_work(const Cores& cores, std::span<const std::int64_t> ranks) {
    require(kinds_.empty(), "bundles are added before rates are asked for");
    const int bundle = static_cast<int>(ways_.size());
    links_[-1 - std::ssize(cores.pools()) - bundle].push_back({bundle, 1});
    for (const std::int64_t rank : ranks) {
        const int pool = cores.pool_of(rank);
        if (pool < 0) continue;
        Share& share = links_[-1 - pool];
        if (share.empty() || share.back().bundle != bundle) share.push_back({bundle, 0});
        share.back().cost += 1 / static_cast<double>(cores.pools()[at(pool)].cores);
    }
    ways_.push_back({});
    return bundle;
}

int Bundles::add_filling() {
    require(kinds_.empty(), "bundles are added before rates are asked for");
    const int bundle = static_cast<int>(ways_.size());
    links_[std::numeric_limits<std::int64_t>::min()].push_back({bundle, 1});
    ways_.push_back({});
    return bundle;
}

Seconds Bundles::latency(int bundle, Bytes bytes) const {
    const Way& way = ways_[static_cast<std::size_t>(bundle)];
    return way.latency + wiring_.beyond(way.across, bytes, way.alone);
}

void Bundles::reduce() {
    kinds_.reserve(links_.size());
    for (auto& [link, share] : links_) kinds_.push_back(std::move(share));
    links_.clear();
    std::ranges::sort(kinds_);
    kinds_.erase(std::unique(kinds_.begin(), kinds_.end()), kinds_.end());
    drop_lighter();
    kinds_of_.resize(ways_.size());
    meet_.resize(ways_.size() * ways_.size(), false);
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
        for (const Weight& a : kinds_[k]) {
            kinds_of_[at(a.bundle)].push_back(static_cast<int>(k));
            for (const Weight& b : kinds_[k]) meet_[at(a.bundle) * ways_.size() + at(b.bundle)] = true;
        }
    }
}

// A link is never full before one on which all its bundles weigh as much or more.
void Bundles::drop_lighter() {
    std::ranges::stable_sort(kinds_, std::ranges::greater{}, &Share::size);
    std::vector<std::vector<std::size_t>> kept_of(ways_.size());  // by bundle: indices into kept
    std::vector<Share> kept;
    for (Share& share : kinds_) {
        const auto& others = kept_of[at(share.front().bundle)];
        if (std::ranges::any_of(others, [&](std::size_t k) { return covers(kept[k], share); })) continue;
        for (const Weight& weight : share) kept_of[at(weight.bundle)].push_back(kept.size());
        kept.push_back(std::move(share));
    }
    kinds_ = std::move(kept);
}

bool Bundles::meet(int a, int b) {
    if (kinds_of_.empty()) reduce();
    return meet_[at(a) * ways_.size() + at(b)];
}

const std::vector<double>& Bundles::rates(const std::vector<int>& bundles) {
    if (kinds_of_.empty()) reduce();
    std::vector<double>& rates = known_[bundles];
    if (rates.empty()) rates = solve(bundles);
    return rates;
}

// Water filling: all rates grow together; where a link is full, those that cross it stop.
std::vector<double> Bundles::solve(const std::vector<int>& bundles) const {
    struct Filling {
        double left = 1, grows = 0;
        std::vector<std::pair<std::size_t, double>> members;  // index into bundles, cost
    };
    std::vector<int> used;
    for (const int bundle : bundles) {
        used.insert(used.end(), kinds_of_[at(bundle)].begin(), kinds_of_[at(bundle)].end());
    }
    std::ranges::sort(used);
    used.erase(std::unique(used.begin(), used.end()), used.end());
    std::vector<Filling> links;
    for (const int kind : used) {
        Filling& link = links.emplace_back();
        for (std::size_t i = 0; i < bundles.size(); ++i) {
            const auto weight = std::ranges::lower_bound(kinds_[at(kind)], bundles[i], {}, &Weight::bundle);
            if (weight == kinds_[at(kind)].end() || weight->bundle != bundles[i]) continue;
            link.members.emplace_back(i, weight->cost);
            link.grows += weight->cost;
        }
    }
    std::vector<double> rates(bundles.size(), 0);
    std::vector<bool> growing(bundles.size(), true);
    for (std::size_t still = bundles.size(); still > 0;) {
        double growth = std::numeric_limits<double>::infinity();
        for (const Filling& link : links) {
            if (link.grows > 0) growth = std::min(growth, std::max(link.left, 0.0) / link.grows);
        }
        require(growth < std::numeric_limits<double>::infinity(), "every message crosses a link");
        for (std::size_t i = 0; i < rates.size(); ++i) rates[i] += growing[i] ? growth : 0;
        for (Filling& link : links) link.left -= growth * link.grows;
        for (const Filling& link : links) {
            if (link.grows == 0 || link.left > 1e-12) continue;
            for (const auto& [i, cost] : link.members) {
                still -= growing[i] ? 1 : 0;
                growing[i] = false;
            }
        }
        for (Filling& link : links) {
            link.grows = 0;
            for (const auto& [i, cost] : link.members) link.grows += growing[i] ? cost : 0;
        }
    }
    return rates;
}

}  // namespace rehearse::sim
