// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/aggregates.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::sim {

namespace {

// Every weight of `light` stands in `heavy` too, and is no less there.
template <typename LinkWeights>
bool covers(const LinkWeights& heavy, const LinkWeights& light) {
    std::size_t h = 0;
    for (const auto& weight : light) {
        while (h < heavy.size() && heavy[h].aggregate < weight.aggregate) ++h;
        if (h == heavy.size() || heavy[h].aggregate != weight.aggregate || heavy[h].cost < weight.cost) return false;
    }
    return true;
}

}  // namespace

int FlowAggregates::add(std::span<const Flow> flows) {
    require(links_ == 0, "aggregates are added before one is asked about");
    const int number = static_cast<int>(aggregates_.size());
    Aggregate& made = aggregates_.emplace_back();
    std::vector<Hop> hops;
    std::vector<double> sizes;  // of the hops' messages
    double largest = 0;
    for (const Flow& flow : flows) {
        largest = std::max(largest, flow.size);
        made.latency = std::max(made.latency, wiring_.limiting_route(flow.from, flow.to, hops));
        sizes.resize(hops.size(), flow.size);
        made.across = made.across || wiring_.across(flow.from, flow.to);
    }
    wiring_.spread(hops, sizes);
    for (std::size_t i = 0; i < hops.size(); ++i) {
        const PerByte cost = sizes[i] * hops[i].cost;
        made.alone = std::max(made.alone, cost / largest);
        LinkWeights& weights = found_[hops[i].link];
        if (weights.empty() || weights.back().aggregate != number) weights.push_back({number, 0});
        weights.back().cost += cost.value;
    }
    if (std::ranges::any_of(flows, [&](const Flow& flow) { return flow.size != 1; })) relate(number, hops, sizes);
    return number;
}

// What links it takes is by byte of a flow of size 1 until here.
void FlowAggregates::relate(int number, std::span<const Hop> hops, std::span<const double> sizes) {
    std::int64_t worst = hops.front().link;
    for (const Hop& hop : hops) {
        if (found_[hop.link].back().cost > found_[worst].back().cost) worst = hop.link;
    }
    double there = 0, of_one = 0;
    for (std::size_t i = 0; i < hops.size(); ++i) {
        if (hops[i].link != worst) continue;
        there += sizes[i] * hops[i].cost.value;
        of_one += hops[i].cost.value;
    }
    const double size = aggregates_[at(number)].size = there / of_one;
    std::set<std::int64_t> links;
    for (const Hop& hop : hops) {
        if (links.insert(hop.link).second) found_[hop.link].back().cost /= size;
    }
}

// A pool is a link that carries as much work a second as it has cores, and each rank has one of its own that carries
// what one core does. Links of the machine have numbers from 0 on.
int FlowAggregates::add_work(const Cores& cores, std::span<const RankIndex> ranks) {
    require(links_ == 0, "aggregates are added before one is asked about");
    const int number = static_cast<int>(aggregates_.size());
    found_[-1 - std::ssize(cores.pools()) - number].push_back({number, 1});
    for (const RankIndex rank : ranks) {
        const int pool = cores.pool_of(rank);
        if (pool < 0) continue;
        LinkWeights& weights = found_[-1 - pool];
        if (weights.empty() || weights.back().aggregate != number) weights.push_back({number, 0});
        weights.back().cost += 1 / static_cast<double>(cores.pools()[at(pool)].cores);
    }
    aggregates_.emplace_back();
    return number;
}

int FlowAggregates::add_filling() {
    require(links_ == 0, "aggregates are added before one is asked about");
    const int number = static_cast<int>(aggregates_.size());
    found_[std::numeric_limits<std::int64_t>::min()].push_back({number, 1});
    aggregates_.emplace_back();
    return number;
}

// Behind those of pools and ranks that compute, which are few.
void FlowAggregates::fill(int aggregate, int number) {
    double most = 0;
    for (const auto& [link, weights] : found_) {
        if (!weights.empty() && weights.back().aggregate == aggregate) most = std::max(most, weights.back().cost);
    }
    found_[std::numeric_limits<std::int64_t>::min() + 1 + number].push_back({aggregate, most});
}

Seconds FlowAggregates::latency(int aggregate, Bytes bytes) const {
    const Aggregate& of = aggregates_[at(aggregate)];
    return of.latency + wiring_.beyond(of.across, bytes, of.alone);
}

void FlowAggregates::reduce() {
    std::vector<LinkWeights> links;
    links.reserve(found_.size());
    for (auto& [link, weights] : found_) links.push_back(std::move(weights));
    found_.clear();
    std::ranges::sort(links);
    links.erase(std::unique(links.begin(), links.end()), links.end());
    links = without_lighter(std::move(links), aggregates_.size());
    links_ = links.size();
    for (std::size_t link = 0; link < links.size(); ++link) {
        for (const Weight& weight : links[link]) {
            Aggregate& of = aggregates_[at(weight.aggregate)];
            of.links.push_back(static_cast<std::int32_t>(link));
            of.weights.push_back(weight.cost);
        }
    }
}

// A link is never full before one on which all its aggregates weigh as much or more.
std::vector<FlowAggregates::LinkWeights> FlowAggregates::without_lighter(std::vector<LinkWeights> links,
                                                                         std::size_t aggregates) {
    std::ranges::stable_sort(links, std::ranges::greater{}, &LinkWeights::size);
    std::vector<std::vector<std::size_t>> kept_of(aggregates);  // by aggregate: indices into kept
    std::vector<LinkWeights> kept;
    for (LinkWeights& weights : links) {
        const auto& others = kept_of[at(weights.front().aggregate)];
        if (std::ranges::any_of(others, [&](std::size_t k) { return covers(kept[k], weights); })) continue;
        for (const Weight& weight : weights) kept_of[at(weight.aggregate)].push_back(kept.size());
        kept.push_back(std::move(weights));
    }
    return kept;
}

std::size_t FlowAggregates::links() {
    if (links_ == 0) reduce();
    return links_;
}

MaxMin::Route FlowAggregates::route(int aggregate) {
    if (links_ == 0) reduce();
    const Aggregate& of = aggregates_[at(aggregate)];
    return {of.links, of.weights};
}

bool FlowAggregates::meet(int a, int b) {
    const std::span<const std::int32_t> one = route(a).links, other = route(b).links;
    return std::ranges::find_first_of(one, other) != one.end();
}

double FlowAggregates::rate_alone(int aggregate) { return 1 / std::ranges::max(route(aggregate).weights); }

}  // namespace rehearse::sim
