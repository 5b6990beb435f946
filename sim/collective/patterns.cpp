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
    std::vector<Hop> hops;
    for (std::size_t i = 0; i < flows.size(); ++i) {
        hops.clear();
        wiring.limiting_route(flows[i].from, flows[i].to, hops);
        for (const Hop& hop : hops) {
            const auto [number, fresh] = numbers.try_emplace(hop.link, static_cast<std::int32_t>(numbers.size()));
            if (fresh) moving.add_link(1 / hop.cost.value);
            routes[i].push_back(number->second);
        }
        if (bytes[i] > Bytes{0}) moving.begin({routes[i]}, bytes[i].value, static_cast<std::int64_t>(i));
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
        const auto [from, to] = flows[i];
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
        const auto [from, to] = flows[i];
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
