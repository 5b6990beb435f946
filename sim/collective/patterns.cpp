// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/patterns.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/index.hpp"
#include "sim/network/max_min.hpp"

namespace rehearse::sim {

namespace {

std::uint64_t hash_of(std::span<const Flow> flows) {  // FNV-1a, a pair at a time
    std::uint64_t hash = 14695981039346656037U;
    for (const Flow& flow : flows) {
        hash = (hash ^ static_cast<std::uint64_t>(flow.from << 32 ^ flow.to)) * 1099511628211U;
        hash ^= hash >> 29;
    }
    return hash;
}

// When each flow's last byte leaves, without its latency, when all start at once.
std::vector<Seconds> leave(const Wiring& wiring, std::span<const Flow> flows, std::span<const Bytes> bytes) {
    MaxMin moving;
    std::unordered_map<std::int64_t, std::int32_t> numbers;
    std::vector<std::vector<std::int32_t>> routes(flows.size());
    std::vector<std::vector<double>> shares(flows.size());  // of a byte, on these links
    std::vector<Hop> hops;
    std::vector<double> weights;
    std::vector<std::size_t> last_hops;
    for (std::size_t i = 0; i < flows.size(); ++i) {
        wiring.limiting_route(flows[i].from, flows[i].to, hops);
        weights.resize(hops.size(), bytes[i].value);
        last_hops.push_back(hops.size());
    }
    const bool spread = wiring.spread(hops, weights);
    std::vector<double> capacities;
    for (std::size_t i = 0; i < flows.size(); ++i) {
        for (std::size_t h = i == 0 ? 0 : last_hops[i - 1]; h < last_hops[i]; ++h) {
            const auto [number, fresh] = numbers.try_emplace(hops[h].link, static_cast<std::int32_t>(numbers.size()));
            if (fresh) {
                capacities.push_back(1 / hops[h].cost.value);
                moving.add_link(capacities.back());
            }
            routes[i].push_back(number->second);
            if (spread) shares[i].push_back(hops[h].cost.value * capacities[at(number->second)]);
        }
        if (bytes[i] > Bytes{0}) moving.begin({routes[i], shares[i]}, bytes[i].value, static_cast<std::int64_t>(i));
    }
    std::vector<Seconds> ends(flows.size());
    std::vector<std::int64_t> ended;
    for (double time = moving.next(); time < std::numeric_limits<double>::infinity(); time = moving.next()) {
        ended.clear();
        moving.pass(time, ended);
        for (const std::int64_t flow : ended) ends[at(flow)] = Seconds{time};
    }
    return ends;
}

}  // namespace

std::shared_ptr<const Pattern> Patterns::of_equal(std::span<const Flow> flows) {
    const std::uint64_t hash = hash_of(flows);
    const auto same = [](const PatternMessage& m, const Flow& f) { return m.from == f.from && m.to == f.to; };
    for (auto [it, end] = known_.equal_range(hash); it != end; ++it) {
        if (std::ranges::equal(it->second->messages, flows, same)) return it->second;
    }
    return known_.emplace(hash, std::make_shared<const Pattern>(count(flows)))->second;
}

std::shared_ptr<const Pattern> Patterns::weighed(const std::shared_ptr<const Pattern>& elsewhere) {
    std::shared_ptr<const Pattern>& here = weighed_[elsewhere];
    if (here != nullptr) return here;
    std::vector<Flow> flows;
    flows.reserve(elsewhere->messages.size());
    for (const PatternMessage& m : elsewhere->messages) flows.push_back({m.from, m.to});
    return here = std::make_shared<const Pattern>(count(flows));
}

Pattern Patterns::count(std::span<const Flow> flows) {
    RoundCosts counted = counter_.count(flows);
    Pattern pattern;
    pattern.meetings = std::move(counted.meetings);
    pattern.members = std::move(counted.members);
    // Every link then carries all its messages at the rates of their own slowest links.
    pattern.apart =
        std::ranges::all_of(counted.flows, [](const FlowCost& f) { return f.shared <= f.alone * (1 + 1e-12); });
    pattern.messages.reserve(flows.size());
    std::map<MessageCost, std::int32_t> numbers;
    std::array<std::optional<PerByte>, 2> combine;  // inside nodes, across them
    for (std::size_t i = 0; i < flows.size(); ++i) {
        const std::int64_t from = flows[i].from, to = flows[i].to;
        const bool across = wiring_.across(from, to);
        std::optional<PerByte>& adding = combine[across ? 1 : 0];
        if (!adding) adding = wiring_.combine(from, to);
        const MessageCost cost{counted.flows[i].latency, counted.flows[i].alone, *adding, across};
        std::int32_t number = i == 0 ? -1 : pattern.messages.back().cost;
        if (number < 0 || pattern.costs[static_cast<std::size_t>(number)] != cost) {
            const auto [entry, fresh] = numbers.try_emplace(cost, static_cast<std::int32_t>(pattern.costs.size()));
            if (fresh) pattern.costs.push_back(cost);
            number = entry->second;
        }
        pattern.messages.push_back({static_cast<std::int32_t>(from), static_cast<std::int32_t>(to), number});
    }
    return pattern;
}

std::shared_ptr<const Pattern> Patterns::of_unequal(std::span<const Flow> flows, std::span<const Bytes> bytes) const {
    const std::vector<Seconds> left = leave(wiring_, flows, bytes);
    Bytes mean;
    for (const Bytes& one : bytes) mean += one / static_cast<double>(bytes.size());
    auto pattern = std::make_shared<Pattern>();
    std::vector<Hop> hops;
    for (std::size_t i = 0; i < flows.size(); ++i) {
        const std::int64_t from = flows[i].from, to = flows[i].to;
        hops.clear();
        const Seconds latency = wiring_.route(from, to, hops);
        pattern->costs.push_back(
            {latency, left[i] / mean, wiring_.combine(from, to) * (bytes[i] / mean), wiring_.across(from, to)});
        pattern->messages.push_back(
            {static_cast<std::int32_t>(from), static_cast<std::int32_t>(to), static_cast<std::int32_t>(i)});
        pattern->sizes.push_back(bytes[i] / mean);
    }
    return pattern;
}

}  // namespace rehearse::sim
