// SPDX-License-Identifier: Apache-2.0
#include "picture/critical_path.hpp"

#include <algorithm>

namespace rehearse::picture {

namespace {

constexpr std::int64_t tolerance = 2;  // ns: starts and ends are rounded for themselves
constexpr std::size_t longest = 100'000;

// "layer2.norm" of "layer2.norm.send" and of "layer2.norm.receive".
std::string_view stem(std::string_view layer) {
    for (const std::string_view ending : {".send", ".receive"}) {
        if (layer.ends_with(ending)) layer.remove_suffix(ending.size());
    }
    return layer;
}

bool same_matter(const What& a, const What& b) {
    if (!communicates(a.activity) || a.activity != b.activity || a.micro_batch != b.micro_batch) return false;
    if (a.activity == Activity::collective) return a.step == b.step;
    return a.pass != b.pass && stem(a.layer) == stem(b.layer);  // send and recv
}

std::int64_t start(const Lanes& lanes, EventAt e) { return lanes.lanes[e.lane].start(e.event); }
std::int64_t end(const Lanes& lanes, EventAt e) { return lanes.lanes[e.lane].end(e.event); }

// Lanes of each rank stand together.
std::pair<std::size_t, std::size_t> lanes_of_rank(const Lanes& lanes, std::int64_t rank) {
    const auto range = std::ranges::equal_range(lanes.lanes, rank, {}, &Lane::rank);
    return {static_cast<std::size_t>(range.begin() - lanes.lanes.begin()),
            static_cast<std::size_t>(range.end() - lanes.lanes.begin())};
}

// What ended last on the event's rank before it began.
std::optional<EventAt> before(const Lanes& lanes, EventAt of) {
    const auto [first, last] = lanes_of_rank(lanes, lanes.lanes[of.lane].rank);
    const std::int64_t now = start(lanes, of);
    std::optional<EventAt> best;
    for (std::size_t l = first; l < last; ++l) {
        const Lane& lane = lanes.lanes[l];
        std::size_t i = l == of.lane ? of.event : lane.first_after(now + tolerance);
        while (i > 0 && lane.start(i - 1) >= now && l != of.lane) --i;  // of no duration, at the same moment
        if (i == 0) continue;
        const EventAt candidate{l, i - 1};
        if (!best || end(lanes, candidate) > end(lanes, *best)) best = candidate;
    }
    return best;
}

// By flow: what critical_path looks up again and again.
using Flows = std::vector<std::pair<std::uint32_t, EventAt>>;

Flows flows_of(const Lanes& lanes) {
    Flows flows;
    for (std::size_t l = 0; l < lanes.lanes.size(); ++l) {
        const auto of_lane = lanes.lanes[l].flows();
        for (std::size_t i = 0; i < of_lane.size(); ++i) {
            if (of_lane[i] != 0) flows.emplace_back(of_lane[i], EventAt{l, i});
        }
    }
    std::ranges::sort(flows);
    return flows;
}

std::vector<EventAt> others(const Flows& flows, const Lanes& lanes, EventAt of) {
    std::vector<EventAt> found;
    const auto range =
        std::ranges::equal_range(flows, lanes.lanes[of.lane].flow(of.event), {}, &Flows::value_type::first);
    for (const auto& [flow, at] : range) {
        if (lanes.lanes[at.lane].rank != lanes.lanes[of.lane].rank) found.push_back(at);
    }
    return found;
}

std::vector<EventAt> of_flow(const Lanes& lanes, EventAt of) {
    const Lane& own = lanes.lanes[of.lane];
    std::vector<EventAt> found;
    for (std::size_t l = 0; l < lanes.lanes.size(); ++l) {
        const auto flows = lanes.lanes[l].flows();
        const bool same_rank = lanes.lanes[l].rank == own.rank;
        if (same_rank && lanes.rank_names.empty()) continue;  // flows of other programs also go between threads
        for (auto at = std::ranges::find(flows, own.flow(of.event)); at != flows.end();
             at = std::find(at + 1, flows.end(), own.flow(of.event))) {
            const EventAt other{l, static_cast<std::size_t>(at - flows.begin())};
            if (other != of) found.push_back(other);
        }
    }
    return found;
}

}  // namespace

std::vector<EventAt> partners(const Lanes& lanes, EventAt of) {
    const Lane& own = lanes.lanes[of.lane];
    if (own.flow(of.event) != 0) return of_flow(lanes, of);
    const What& what = lanes.whats[own.what(of.event)];
    std::vector<EventAt> found;
    if (!communicates(what.activity)) return found;
    for (std::size_t l = 0; l < lanes.lanes.size(); ++l) {
        const Lane& lane = lanes.lanes[l];
        if (lane.rank == own.rank) continue;
        for (std::size_t i = lane.first_after(own.start(of.event) - 1);
             i < lane.size() && lane.start(i) <= own.end(of.event); ++i) {
            if (lane.iteration(i) == own.iteration(of.event) && same_matter(what, lanes.whats[lane.what(i)])) {
                found.push_back({l, i});
            }
        }
    }
    return found;
}

std::int64_t free_slack(const Lanes& lanes, EventAt of) {
    const auto [first, last] = lanes_of_rank(lanes, lanes.lanes[of.lane].rank);
    const std::int64_t from = end(lanes, of);
    std::int64_t next = lanes.last;
    for (std::size_t l = first; l < last; ++l) {
        const Lane& lane = lanes.lanes[l];
        std::size_t i = l == of.lane ? of.event + 1 : lane.first_after(from - 1);
        while (i < lane.size() && lane.start(i) < from - tolerance) ++i;
        if (i < lane.size()) next = std::min(next, lane.start(i));
    }
    return std::max<std::int64_t>(next - from, 0);
}

std::vector<PathStep> critical_path(const Lanes& lanes) {
    std::optional<EventAt> now;
    for (std::size_t l = 0; l < lanes.lanes.size(); ++l) {
        const EventAt last{l, lanes.lanes[l].size() - 1};
        if (!now || end(lanes, last) > end(lanes, *now)) now = last;
    }
    const Flows flows = flows_of(lanes);
    std::vector<PathStep> path;
    while (now && path.size() < longest) {
        const EventAt here = *now;
        EventAt from = here;  // on the rank that came last; of those that begin together, on the one that was held up
        now = before(lanes, here);
        const bool known = lanes.lanes[here.lane].flow(here.event) != 0;
        for (const EventAt& partner : known ? others(flows, lanes, here) : partners(lanes, here)) {
            // What began after the end of this held nothing up: a message that is received later than it arrives.
            const std::int64_t later = start(lanes, partner) - start(lanes, from);
            if (later < -tolerance || start(lanes, partner) >= end(lanes, here)) continue;
            const auto held_up_by = before(lanes, partner);
            const bool is_last = held_up_by && (!now || end(lanes, *held_up_by) > end(lanes, *now) + tolerance);
            if (later <= tolerance && !is_last) continue;
            from = partner;
            now = held_up_by;
        }
        path.push_back({here, 0});
        if (from != here) path.push_back({from, 0});
        if (now) path.back().waited = std::max<std::int64_t>(start(lanes, from) - end(lanes, *now), 0);
    }
    std::ranges::reverse(path);
    return path;
}

}  // namespace rehearse::picture
