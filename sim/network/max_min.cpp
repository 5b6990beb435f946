// SPDX-License-Identifier: Apache-2.0
#include "sim/network/max_min.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::sim {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();
// Relative. Rates and times nearer than that to each other are equal.
constexpr double precision = 1e-12;

}  // namespace

void MaxMin::begin(Route route, double bytes, std::int64_t tag) {
    require(!route.links.empty(), "every flow crosses a link");
    if (free_.empty()) {
        free_.push_back(static_cast<std::int32_t>(flows_.size()));
        flows_.emplace_back();
        rates_.emplace_back();
    }
    const std::int32_t flow = free_.back();
    free_.pop_back();
    Moving& moving = flows_[at(flow)];
    moving.route = route;
    moving.left = bytes;
    moving.since = now_;
    moving.rate = 0;
    moving.end = never;
    moving.tag = tag;
    moving.where.clear();
    for (const std::int32_t number : route.links) {
        std::vector<Place>& places = links_[at(number)].places;
        places.push_back({flow, static_cast<std::int32_t>(moving.where.size())});
        moving.where.push_back(static_cast<std::int32_t>(places.size()) - 1);
    }
    touch(flow);
}

// A flow's rate may change when another on one of its full links comes or goes; and so on from there.
void MaxMin::touch(std::int32_t flow) {
    if (std::exchange(flows_[at(flow)].touched, true)) return;
    std::size_t reached = touched_.size();
    touched_.push_back(flow);
    for (; reached < touched_.size(); ++reached) {
        for (const std::int32_t number : flows_[at(touched_[reached])].route.links) {
            Link& link = links_[at(number)];
            if (!std::exchange(link.full, false)) continue;  // nobody needs to come this way again
            for (const Place& place : link.places) {
                if (!std::exchange(flows_[at(place.flow)].touched, true)) touched_.push_back(place.flow);
            }
        }
    }
}

void MaxMin::drop_stale() {
    while (!endings_.empty() && flows_[at(endings_.front().flow)].version != endings_.front().version) {
        std::ranges::pop_heap(endings_, later);
        endings_.pop_back();
    }
}

double MaxMin::next() {
    if (!touched_.empty()) share();
    drop_stale();
    return endings_.empty() ? never : endings_.front().time;
}

bool MaxMin::due(double time) const { return time <= now_ * (1 + precision); }

void MaxMin::pass(double time, std::vector<std::int64_t>& ended) {
    require(time <= next() * (1 + precision), "no flow ends before its time");
    now_ = std::max(now_, time);
    for (; !endings_.empty() && due(endings_.front().time); drop_stale()) {
        touch(endings_.front().flow);
        ++flows_[at(endings_.front().flow)].version;
    }
    std::erase_if(touched_, [&](std::int32_t flow) {
        if (!due(flows_[at(flow)].end)) return false;
        ended.push_back(flows_[at(flow)].tag);
        end(flow);
        return true;
    });
}

void MaxMin::end(std::int32_t flow) {
    Moving& moving = flows_[at(flow)];
    for (std::size_t i = 0; i < moving.route.links.size(); ++i) {
        Link& link = links_[at(moving.route.links[i])];
        const Place last = link.places.back();
        link.places[at(moving.where[i])] = last;
        flows_[at(last.flow)].where[at(last.hop)] = moving.where[i];
        link.places.pop_back();
        link.used = link.places.empty() ? 0 : link.used - moving.rate * moving.weight(i);
    }
    ++moving.version;
    moving.touched = false;
    free_.push_back(flow);
}

// Flows that were not touched keep their rates; when they turn out to be on a link that fills up, they are touched.
void MaxMin::share() {
    for (int tries = 1;; ++tries) {
        open_links();
        work_ += std::ssize(touched_);
        if (fill()) break;
        if (tries == 2) touch_component();
    }
    set_rates();
    announce();
    for (const std::int32_t flow : touched_) flows_[at(flow)].touched = false;
    touched_.clear();
}

// All that are joined by links, full or not.
void MaxMin::touch_component() {
    for (std::size_t i = 0; i < touched_.size(); ++i) {
        for (const std::int32_t number : flows_[at(touched_[i])].route.links) {
            for (const Place& place : links_[at(number)].places) touch(place.flow);
        }
    }
}

void MaxMin::open_links() {
    ++round_;
    met_.clear();
    for (const std::int32_t flow : touched_) {
        Moving& moving = flows_[at(flow)];
        moving.fixed = false;
        moving.round = round_;
        for (std::size_t i = 0; i < moving.route.links.size(); ++i) {
            const std::int32_t number = moving.route.links[i];
            Link& link = links_[at(number)];
            if (std::exchange(link.round, round_) != round_) {
                link.left = link.capacity - link.used;
                link.weight = 0;
                link.members = 0;
                link.full = false;
                met_.push_back(number);
            }
            const double weight = moving.weight(i);
            link.left += moving.rate * weight;
            link.weight += weight;
            link.open = ++link.members;
        }
    }
}

// All rates grow together; where a link is full, those that cross it stop. False when others were on such a link.
bool MaxMin::fill() {
    const auto more = [](const Share& a, const Share& b) { return a.rate > b.rate; };
    const auto share_of = [&](const Link& link) { return std::max(link.left, 0.0) / link.weight; };
    bool alone = true;
    shares_.clear();
    for (const std::int32_t number : met_) shares_.push_back({share_of(links_[at(number)]), number});
    std::ranges::make_heap(shares_, more);
    while (!shares_.empty()) {
        std::ranges::pop_heap(shares_, more);
        const Share first = shares_.back();
        shares_.pop_back();
        Link& link = links_[at(first.link)];
        if (link.open == 0) continue;
        const double rate = share_of(link);
        if (rate > first.rate * (1 + precision)) {  // others on it have stopped at less
            shares_.push_back({rate, first.link});
            std::ranges::push_heap(shares_, more);
        } else {
            if (std::ssize(link.places) > link.members) {
                for (const Place& place : link.places) touch(place.flow);
                alone = false;
            }
            fix_members(link, rate);
        }
    }
    return alone;
}

void MaxMin::fix_members(Link& link, double rate) {
    link.full = true;
    for (const Place& place : link.places) {
        Moving& moving = flows_[at(place.flow)];
        if (moving.round != round_ || std::exchange(moving.fixed, true)) continue;
        rates_[at(place.flow)] = rate;
        for (std::size_t i = 0; i < moving.route.links.size(); ++i) {
            Link& crossed = links_[at(moving.route.links[i])];
            const double weight = moving.weight(i);
            crossed.left -= rate * weight;
            crossed.weight -= weight;
            --crossed.open;
        }
    }
}

void MaxMin::set_rates() {
    for (const std::int32_t flow : touched_) {
        Moving& moving = flows_[at(flow)];
        ++moving.version;
        const double rate = rates_[at(flow)];
        if (std::abs(rate - moving.rate) <= precision * rate) continue;
        for (std::size_t i = 0; i < moving.route.links.size(); ++i) {
            links_[at(moving.route.links[i])].used += (rate - moving.rate) * moving.weight(i);
        }
        moving.left = std::max(0.0, moving.left - moving.rate * (now_ - moving.since));
        moving.since = now_;
        moving.rate = rate;
        moving.end = now_ + moving.left / rate;
    }
}

// Whatever happens to one of a set joined by full links touches all of them.
void MaxMin::announce() {
    for (const std::int32_t first : touched_) {
        if (!std::exchange(flows_[at(first)].fixed, false)) continue;
        component_.assign(1, first);
        std::int32_t soonest = first;
        for (std::size_t i = 0; i < component_.size(); ++i) {
            if (flows_[at(component_[i])].end < flows_[at(soonest)].end) soonest = component_[i];
            for (const std::int32_t number : flows_[at(component_[i])].route.links) {
                Link& link = links_[at(number)];
                if (!link.full || std::exchange(link.open, -1) == -1) continue;
                for (const Place& place : link.places) {
                    if (std::exchange(flows_[at(place.flow)].fixed, false)) component_.push_back(place.flow);
                }
            }
        }
        endings_.push_back({flows_[at(soonest)].end, soonest, flows_[at(soonest)].version});
        std::ranges::push_heap(endings_, later);
    }
}

}  // namespace rehearse::sim
