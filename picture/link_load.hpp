// SPDX-License-Identifier: Apache-2.0
// How busy links are in a timeline, as shares of what they could carry: at a moment, on average, at the fullest moment.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "picture/chart.hpp"
#include "picture/lanes.hpp"

namespace rehearse::picture {

/// A share of each link's bandwidth, by LinkUse::name: of single links ("node0:nic0:up") or the mean of a kind
/// ("nic:up").
struct LinkShares {
    struct OfKind {
        double share = 0;
        std::int64_t links = 0;  // that carried something, of which it is the mean
        bool listed = false;     // all of them are in `single`: what is not there carried nothing
        bool operator==(const OfKind&) const = default;
    };
    std::map<std::string, double> single;  // a switch's rails and cables by one name, "switch0.3:up": the busiest
    std::map<std::string, OfKind> kinds;
    bool empty() const { return kinds.empty() && single.empty(); }
    bool operator==(const LinkShares&) const = default;
};

struct LinkLoad {
    LinkUse use;
    std::size_t counter = SIZE_MAX;  // in Lanes::counters; SIZE_MAX: only the sum is known
    double mean = 0, peak = 0;       // shares; without a counter the peak is the mean
    bool is_kind() const { return use.name == use.kind; }
};

/// Kinds first, as in the timeline; empty where a timeline has no links.
std::vector<LinkLoad> link_loads(const Lanes& lanes);

enum class LoadOf { mean, peak, moment };
/// `at`: of LoadOf::moment; a link without a counter then has its mean. Of kinds with one name the busiest counts.
LinkShares shares_of(const std::vector<LinkLoad>& loads, const Lanes& lanes, LoadOf of, Seconds at = {});
double share_at(const LinkLoad& load, const Lanes& lanes, Seconds at);

/// The shares over time of these links (at most eight have a colour), and a line at `at`. InputError when none of them
/// has a counter.
Picture link_loads_picture(const std::vector<LinkLoad>& loads, const Lanes& lanes, Seconds at, Size size, Theme theme);

}  // namespace rehearse::picture
