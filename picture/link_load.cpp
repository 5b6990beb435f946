// SPDX-License-Identifier: Apache-2.0
#include "picture/link_load.hpp"

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "picture/stairs.hpp"

namespace rehearse::picture {

namespace {

constexpr std::size_t most_series = 8;

Seconds length_of(const Lanes& lanes) { return Seconds{static_cast<double>(lanes.last - lanes.first) * 1e-9}; }

// "mean of links nic:up" of a kind, "link node0:nic0:up" of a link (docs/traces.md).
std::string counter_name(const LinkUse& use) { return (use.name == use.kind ? "mean of links " : "link ") + use.name; }

// "switch0.3:up" of "rail1:switch0.3:cable2:up": what is drawn as one link.
std::string drawn_name(std::string name) {
    if (name.starts_with("rail")) name.erase(0, name.find(':') + 1);
    if (const std::size_t cable = name.find(":cable"); name.starts_with("switch") && cable != std::string::npos)
        name.erase(cable, name.find(':', cable + 1) - cable);
    return name;
}

Series series_of(const LinkLoad& load, const Counter& counter) {
    return {.name = load.use.name,
            .points = stairs_of(counter, std::max(load.use.capacity.value, 1.0)),
            .dots = false,
            .width = 1.5};
}

}  // namespace

std::vector<LinkLoad> link_loads(const Lanes& lanes) {
    std::multimap<std::string, std::size_t> counters;  // kinds of other bandwidths have one name: taken in turn
    for (std::size_t c = 0; c < lanes.counters.size(); ++c) counters.emplace(lanes.counters[c].name, c);
    std::vector<LinkLoad> loads;
    for (const LinkUse& use : lanes.links) {
        LinkLoad& load = loads.emplace_back();
        load.use = use;
        load.mean = load.peak = utilisation(use, length_of(lanes));
        const auto found = counters.find(counter_name(use));
        if (found == counters.end() || !(use.capacity.value > 0)) continue;
        load.counter = found->second;
        counters.erase(found);
        for (const auto& [time, rate] : lanes.counters[load.counter].points)
            load.peak = std::max(load.peak, rate / use.capacity.value);
    }
    return loads;
}

double share_at(const LinkLoad& load, const Lanes& lanes, Seconds at) {
    if (load.counter == SIZE_MAX) return load.mean;
    const auto& points = lanes.counters[load.counter].points;
    const auto after = std::ranges::upper_bound(points, at, {}, &std::pair<Seconds, double>::first);
    return after == points.begin() ? 0 : (after - 1)->second / load.use.capacity.value;
}

LinkShares shares_of(const std::vector<LinkLoad>& loads, const Lanes& lanes, LoadOf of, Seconds at) {
    LinkShares shares;
    std::map<std::string, std::int64_t> listed;  // by kind
    for (const LinkLoad& load : loads) {
        const double share = of == LoadOf::mean   ? load.mean
                             : of == LoadOf::peak ? load.peak
                                                  : share_at(load, lanes, at);
        if (load.is_kind()) {
            LinkShares::OfKind& kind = shares.kinds[load.use.name];
            kind.share = std::max(kind.share, share);
            kind.links += load.use.links;
        } else {
            double& known = shares.single[drawn_name(load.use.name)];
            known = std::max(known, share);
            ++listed[load.use.kind];
        }
    }
    for (auto& [name, kind] : shares.kinds) kind.listed = listed[name] == kind.links;
    return shares;
}

Picture link_loads_picture(const std::vector<LinkLoad>& loads, const Lanes& lanes, Seconds at, Size size, Theme theme) {
    Chart chart;
    chart.title = "Links over time";
    chart.subtitle = "share of what a link can carry; of a kind (nic:up) the mean of all that carry anything";
    chart.x = {"time", Scale::linear, Unit::seconds, {}, {}};
    chart.y = {"of its bandwidth", Scale::linear, Unit::share, {}, {}};
    double most = 0.1;
    for (const LinkLoad& load : loads) {
        if (load.counter == SIZE_MAX || chart.series.size() == most_series) continue;
        chart.series.push_back(series_of(load, lanes.counters[load.counter]));
        most = std::max(most, load.peak);
    }
    if (chart.series.empty())
        throw InputError("none of these links has a curve: predict with --trace and --mode exact");
    chart.series.push_back({.points = {{at.value, 0}, {at.value, most}},
                            .dots = false,
                            .color = palette(theme).text,
                            .width = 1,
                            .dash = {3, 3}});
    return xy_chart(chart, size, theme);
}

}  // namespace rehearse::picture
