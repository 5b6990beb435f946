// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/index.hpp"
#include "sim/network/adaptive.hpp"
#include "sim/network/switches.hpp"

namespace rehearse::sim {

AdaptiveSwitches::AdaptiveSwitches(std::int64_t groups, std::int64_t routers, std::int64_t nodes)
    : groups_(groups), routers_(routers), nodes_(nodes) {}

AdaptiveSwitches::AdaptiveSwitches(const Dragonfly& dragonfly, double scale)
    : AdaptiveSwitches(dragonfly.groups, dragonfly.routers, dragonfly.nodes) {
    global_ = dragonfly.global.value * scale;
    local_ = dragonfly.local.value * scale;
    router_ = local_ * static_cast<double>(routers_ - 1);
    number();
}

AdaptiveSwitches::AdaptiveSwitches(const DragonflyPlus& dragonfly, double scale)
    : AdaptiveSwitches(dragonfly.groups, dragonfly.leaves, dragonfly.nodes) {
    adaptive_ = dragonfly.routing == FabricRouting::adaptive;
    all_to_all_ = false;
    global_ = dragonfly.global.value * scale;
    router_ = dragonfly.up.value * scale;
    number();
}

void AdaptiveSwitches::number() {
    group_ = global_ * static_cast<double>(groups_ - 1);
    pair_ = adaptive_ ? group_ : global_;
    routers_pair_ = router_;
    out_of_group_ = groups_ * groups_;
    out_of_router_ = out_of_group_ + 2 * groups_;
    router_pairs_ = out_of_router_ + 2 * groups_ * routers_;
    single_group_ = router_pairs_ + (all_to_all_ ? groups_ * routers_ * routers_ : 0);
    single_router_ = single_group_ + groups_ * groups_;
}

Link AdaptiveSwitches::link(std::int64_t id) const {
    const std::string_view router = all_to_all_ ? "router" : "leaf";
    const auto one_way = [](std::int64_t number) { return number % 2 == 0 ? "out" : "in"; };
    const auto of_router = [&](std::int64_t number, std::string_view last) {
        const std::int64_t pair = number % (routers_ * routers_);
        return fmt::format("group{}:router{}>router{}{}", number / (routers_ * routers_), pair / routers_,
                           pair % routers_, last);
    };
    if (id < out_of_group_) return {fmt::format("group{}>group{}", id / groups_, id % groups_), "group>group", pair_};
    if (id < out_of_router_) {
        const std::int64_t number = id - out_of_group_;
        return {fmt::format("group{}:{}", number / 2, one_way(number)), fmt::format("group:{}", one_way(number)),
                group_};
    }
    if (id < router_pairs_) {
        const std::int64_t number = id - out_of_router_, one = number / 2;
        return {fmt::format("group{}:{}{}:{}", one / routers_, router, one % routers_, one_way(number)),
                fmt::format("{}:{}", router, one_way(number)), router_};
    }
    if (id < single_group_) return {of_router(id - router_pairs_, ""), "router>router", routers_pair_};
    if (id < single_router_) {
        const std::int64_t pair = id - single_group_;
        return {fmt::format("group{}>group{}:cables", pair / groups_, pair % groups_), "group>group:cables", global_};
    }
    return {of_router(id - single_router_, ":cables"), "router>router:cables", local_};
}

std::int64_t AdaptiveSwitches::alike(std::int64_t id) const {
    if (id < out_of_group_) return 0;
    if (id < out_of_router_) return out_of_group_ + (id - out_of_group_) % 2;
    if (id < router_pairs_) return out_of_router_ + (id - out_of_router_) % 2;
    if (id < single_group_) return router_pairs_;
    return id < single_router_ ? single_group_ : single_router_;
}

int AdaptiveSwitches::route(End from, End to, std::vector<Hop>& hops) const {
    const std::int64_t a = from.node / nodes_, b = to.node / nodes_;
    if (a == b) return 1;
    const std::int64_t here = a / routers_, there = b / routers_;
    const bool routers = router_.value > 0;
    if (routers) hops.push_back({out_of_router_ + 2 * a, inverse(router_)});
    if (here != there) {
        hops.push_back({here * groups_ + there, inverse(pair_)});
        if (adaptive_) {
            hops.push_back({out_of_group_ + 2 * here, inverse(group_)});
            hops.push_back({out_of_group_ + 2 * there + 1, inverse(group_)});
        }
    } else if (all_to_all_) {
        hops.push_back({router_pairs_ + a * routers_ + b % routers_, inverse(routers_pair_)});
    }
    if (routers) hops.push_back({out_of_router_ + 2 * b + 1, inverse(router_)});
    return passed(from, to);
}

// Of a dragonfly a router of each group that has the cable lies between, of a dragonfly+ a spine.
int AdaptiveSwitches::passed(End from, End to) const {
    const std::int64_t a = from.node / nodes_, b = to.node / nodes_;
    if (a == b) return 1;
    if (a / routers_ == b / routers_) return all_to_all_ ? 2 : 3;
    return all_to_all_ && routers_ == 1 ? 2 : 4;
}

void AdaptiveSwitches::spread(std::span<Hop> hops, std::int64_t first, std::span<const double> weights) const {
    if (!adaptive_) return;
    spread_groups(hops, first, weights);
    if (all_to_all_ && routers_ > 1) spread_routers(hops, first, weights);
}

namespace {

// Of pairs among `size` places that are joined, by number from * size + to: how many times as long a message takes of
// all links of a place together as one that has them to itself.
std::map<std::int64_t, double> times_of(std::int64_t size, const std::map<std::int64_t, double>& sums,
                                        std::span<const double> out = {}, std::span<const double> in = {}) {
    std::vector<PairDemand> demands;
    for (const auto& [pair, sum] : sums) {
        if (sum > 0) demands.push_back({pair / size, pair % size, sum});
    }
    const std::vector<double> busiest = busiest_links(size, demands, out, in);
    std::map<std::int64_t, double> times;
    for (std::size_t d = 0; d < demands.size(); ++d) {
        times[demands[d].from * size + demands[d].to] = busiest[d] / demands[d].amount * static_cast<double>(size - 1);
    }
    return times;
}

}  // namespace

void AdaptiveSwitches::spread_groups(std::span<Hop> hops, std::int64_t first, std::span<const double> weights) const {
    std::map<std::int64_t, double> sums;  // by pair
    for (std::size_t i = 0; i < hops.size(); ++i) {
        const std::int64_t pair = hops[i].link - first;
        if (pair >= 0 && pair < out_of_group_) sums[pair] += weights.empty() ? 1 : weights[i];
    }
    const std::map<std::int64_t, double> times = times_of(groups_, sums);
    for (Hop& hop : hops) {
        const std::int64_t pair = hop.link - first;
        if (pair < 0 || pair >= out_of_group_) continue;
        const auto found = times.find(pair);
        if (found != times.end()) hop.cost = hop.cost * found->second;
    }
}

void AdaptiveSwitches::spread_routers(std::span<Hop> hops, std::int64_t first, std::span<const double> weights) const {
    const std::int64_t pairs = routers_ * routers_;
    std::map<std::int64_t, std::map<std::int64_t, double>> sums;  // by group, by pair of its routers
    // What every link of a router carries of messages to and from other groups.
    std::vector<double> out(at(groups_ * routers_)), in(at(groups_ * routers_));
    for (std::size_t i = 0; i < hops.size(); ++i) {
        const std::int64_t id = hops[i].link - first;
        const double weight = weights.empty() ? 1 : weights[i], share = weight / static_cast<double>(routers_);
        if (id >= out_of_router_ && id < router_pairs_) {
            const std::int64_t number = id - out_of_router_;
            (number % 2 == 0 ? out : in)[at(number / 2)] += share;
        } else if (id >= router_pairs_ && id < single_group_) {
            const std::int64_t group = (id - router_pairs_) / pairs, pair = (id - router_pairs_) % pairs;
            sums[group][pair] += weight;
            out[at(group * routers_ + pair / routers_)] -= share;
            in[at(group * routers_ + pair % routers_)] -= share;
        }
    }
    std::map<std::int64_t, std::map<std::int64_t, double>> times;
    for (const auto& [group, of_group] : sums) {
        const std::size_t begin = at(group * routers_);
        times[group] = times_of(routers_, of_group, std::span{out}.subspan(begin, at(routers_)),
                                std::span{in}.subspan(begin, at(routers_)));
    }
    for (Hop& hop : hops) {
        const std::int64_t id = hop.link - first - router_pairs_;
        if (id < 0 || id >= single_group_ - router_pairs_) continue;
        const std::map<std::int64_t, double>& of_group = times.at(id / pairs);
        const auto found = of_group.find(id % pairs);
        if (found != of_group.end()) hop.cost = hop.cost * found->second;
    }
}

AdaptiveSwitches::Ways AdaptiveSwitches::ways(std::int64_t from, std::int64_t to) const {
    const std::int64_t a = from / nodes_, b = to / nodes_;
    Ways ways;
    if (a == b) return ways;
    const std::int64_t here = a / routers_, there = b / routers_;
    const auto routers_of = [&](std::int64_t group) { return single_router_ + group * routers_ * routers_; };
    if (!all_to_all_) {
        ways.hops = {{out_of_router_ + 2 * a, inverse(router_)}, {out_of_router_ + 2 * b + 1, inverse(router_)}};
    } else if (here == there) {
        ways.choices.push_back({routers_of(here), routers_, a % routers_, b % routers_});
    } else if (routers_ > 1) {
        ways.choices.push_back({routers_of(here), routers_, a % routers_, -1});
        ways.choices.push_back({routers_of(there), routers_, -1, b % routers_});
    }
    if (here != there) ways.choices.push_back({single_group_, groups_, here, there});
    return ways;
}

}  // namespace rehearse::sim
