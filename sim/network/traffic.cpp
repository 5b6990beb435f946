// SPDX-License-Identifier: Apache-2.0
#include "sim/network/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace rehearse::sim {

namespace {

using Points = std::vector<std::pair<Seconds, double>>;

// Rates add up where they overlap. What is nearer to 0 than rounding makes it is 0.
template <typename Rates>
Points summed(const Rates& rates) {
    std::vector<std::pair<double, double>> changes;
    double most = 0;
    for (const auto& r : rates) {
        changes.emplace_back(r.start, r.rate);
        changes.emplace_back(r.end, -r.rate);
        most = std::max(most, r.rate);
    }
    std::ranges::sort(changes);
    Points points;
    double sum = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
        sum += changes[i].second;
        if (i + 1 < changes.size() && changes[i + 1].first - changes[i].first <= 1e-12) continue;
        const double value = std::abs(sum) <= 1e-9 * most ? 0 : sum;
        const double before = points.empty() ? 0 : points.back().second;
        if (std::abs(value - before) > 1e-9 * most) points.emplace_back(Seconds{changes[i].first}, value);
    }
    return points;
}

// Means of equal spans.
Points thinned(const Points& points, std::size_t spans) {
    if (points.size() <= spans) return points;
    const double begin = points.front().first.value;
    const double span = (points.back().first.value - begin) / static_cast<double>(spans);
    std::vector<double> means(spans + 1, 0);
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        double at = points[i].first.value;
        const double end = points[i + 1].first.value;
        for (auto bin = static_cast<std::size_t>((at - begin) / span); at < end && bin < spans; ++bin) {
            const double until = std::min(end, begin + span * static_cast<double>(bin + 1));
            means[bin] += points[i].second * std::max(0.0, until - at) / span;
            at = std::max(at, until);
        }
    }
    Points thin;
    for (std::size_t bin = 0; bin <= spans; ++bin) {
        if (!thin.empty() && thin.back().second == means[bin]) continue;
        thin.emplace_back(Seconds{begin + span * static_cast<double>(bin)}, means[bin]);
    }
    return thin;
}

Points repeated(const Points& once, int iterations, double length) {
    Points all;
    for (int i = 0; i < iterations; ++i) {
        for (const auto& [time, value] : once) all.emplace_back(time + Seconds{i * length}, value);
    }
    return all;
}

}  // namespace

int Traffic::aggregate(std::span<const Flow> flows) {
    Aggregate& made = aggregates_.emplace_back();
    made.flows.assign(flows.begin(), flows.end());
    std::map<std::int64_t, double> kinds;
    std::vector<Hop> hops;
    for (const Flow& flow : flows) {
        hops.clear();
        wiring_.route(flow.from, flow.to, hops);
        for (const Hop& hop : hops) kinds[wiring_.alike(hop.link)] += flow.size;
    }
    made.kinds.assign(kinds.begin(), kinds.end());
    return static_cast<int>(aggregates_.size()) - 1;
}

int Traffic::aggregate(const Flow& flow) {
    const auto [entry, fresh] = single_.try_emplace({flow.from, flow.to});
    if (fresh) entry->second = aggregate({&flow, 1});
    return entry->second;
}

void Traffic::add(int aggregate, Bytes of_one, Seconds start, Seconds end) {
    Aggregate& of = aggregates_[static_cast<std::size_t>(aggregate)];
    of.bytes += of_one.value;
    if (end > start) of.rates.push_back({start.value, end.value, (of_one / (end - start)).value});
}

std::vector<double> Traffic::bytes_on_links() const {
    std::vector<double> on_link(static_cast<std::size_t>(wiring_.link_count()), 0);
    std::vector<Hop> hops;
    for (const Aggregate& aggregate : aggregates_) {
        for (const Flow& flow : aggregate.flows) {
            hops.clear();
            wiring_.route(flow.from, flow.to, hops);
            for (const Hop& hop : hops) on_link[static_cast<std::size_t>(hop.link)] += aggregate.bytes * flow.size;
        }
    }
    return on_link;
}

void Traffic::report(Timeline& timeline, int iterations, Seconds length) const {
    const std::vector<double> on_link = bytes_on_links();
    report_kinds(timeline, on_link, iterations, length.value);
    report_links(timeline, on_link, iterations, length.value);
}

void Traffic::report_kinds(Timeline& timeline, const std::vector<double>& on_link, int iterations,
                           double length) const {
    struct Kind {
        LinkUse use;
        std::vector<Rate> rates;
    };
    using Name = std::pair<std::string, double>;
    std::map<std::int64_t, Name> names;  // by Wiring::alike: places in a node with one name are of one kind
    std::map<Name, Kind> kinds;
    const auto kind_of = [&](std::int64_t alike) -> Kind& {
        const auto [entry, fresh] = names.try_emplace(alike);
        if (fresh) {
            const Link link = wiring_.sound_link(alike);
            entry->second = {link.kind, link.bandwidth.value};
            const LinkUse unused{link.kind, link.kind, 0, link.bandwidth, Bytes{0}, Bytes{0}, link.crossing};
            kinds.try_emplace(entry->second, Kind{unused, {}});
        }
        return kinds[entry->second];
    };
    for (std::size_t id = 0; id < on_link.size(); ++id) {
        if (on_link[id] == 0) continue;
        LinkUse& use = kind_of(wiring_.alike(static_cast<std::int64_t>(id))).use;
        const Bytes bytes{on_link[id] * iterations};
        ++use.links;
        use.bytes += bytes;
        use.most = std::max(use.most, bytes);
    }
    for (const Aggregate& aggregate : aggregates_) {
        for (const auto& [alike, sizes] : aggregate.kinds) {
            std::vector<Rate>& rates = kind_of(alike).rates;
            for (const Rate& r : aggregate.rates) {
                rates.push_back({r.start, r.end, r.rate * sizes});
            }
        }
    }
    for (auto& [name, kind] : kinds) {
        for (Rate& r : kind.rates) r.rate /= static_cast<double>(std::max<std::int64_t>(kind.use.links, 1));
        timeline.counters.push_back({fmt::format("mean of links {}", kind.use.kind), "B/s",
                                     repeated(thinned(summed(kind.rates), points), iterations, length)});
        timeline.links.push_back(std::move(kind.use));
    }
}

// Used links by the time that they need at full rate, most first.
std::vector<std::int64_t> Traffic::busiest(const std::vector<double>& on_link) const {
    std::vector<std::pair<double, std::int64_t>> used;
    std::map<std::int64_t, double> bandwidths;
    for (std::size_t id = 0; id < on_link.size(); ++id) {
        if (on_link[id] == 0) continue;
        const auto [entry, fresh] = bandwidths.try_emplace(wiring_.alike(static_cast<std::int64_t>(id)));
        if (fresh) entry->second = wiring_.sound_link(entry->first).bandwidth.value;
        used.emplace_back(-on_link[id] / entry->second, static_cast<std::int64_t>(id));
    }
    const std::size_t count = std::min(listed, used.size());
    std::partial_sort(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(count), used.end());
    std::vector<std::int64_t> links;
    for (std::size_t i = 0; i < count; ++i) links.push_back(used[i].second);
    return links;
}

// Rates of single links, where every aggregate is one message.
std::unordered_map<std::int64_t, std::vector<Traffic::Rate>> Traffic::rates_on(
    std::span<const std::int64_t> links) const {
    std::unordered_map<std::int64_t, std::vector<Rate>> rates;
    if (std::ranges::any_of(aggregates_, [](const Aggregate& b) { return b.flows.size() > 1; })) return rates;
    for (const std::int64_t link : links) rates[link];
    std::vector<Hop> hops;
    for (const Aggregate& aggregate : aggregates_) {
        hops.clear();
        for (const Flow& flow : aggregate.flows) wiring_.route(flow.from, flow.to, hops);
        for (const Hop& hop : hops) {
            const auto found = rates.find(hop.link);
            if (found == rates.end()) continue;
            found->second.insert(found->second.end(), aggregate.rates.begin(), aggregate.rates.end());
        }
    }
    return rates;
}

void Traffic::report_links(Timeline& timeline, const std::vector<double>& on_link, int iterations,
                           double length) const {
    const std::vector<std::int64_t> links = busiest(on_link);
    const auto rates = rates_on(std::span{links}.first(std::min(links.size(), drawn)));
    for (const std::int64_t id : links) {
        const Link link = wiring_.link(id);
        const Bytes bytes{on_link[static_cast<std::size_t>(id)] * iterations};
        timeline.links.push_back({link.name, link.kind, 1, link.bandwidth, bytes, bytes});
        const auto found = rates.find(id);
        if (found == rates.end()) continue;
        timeline.counters.push_back({fmt::format("link {}", link.name), "B/s",
                                     repeated(thinned(summed(found->second), points), iterations, length)});
    }
}

}  // namespace rehearse::sim
