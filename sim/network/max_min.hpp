// SPDX-License-Identifier: Apache-2.0
// Flows that come and go on links that they share max-min: what SimGrid's network model says, many times faster.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace rehearse::sim {

/// Max-min sharing by progressive filling (Bertsekas and Gallager 1992, section 6.5), solved anew only for the flows
/// that a change can reach: those joined to it by links that are full. Time is in seconds and only goes forward.
class MaxMin {
public:
    /// What a flow crosses, in storage of whoever begins it: each link's number once, and how much of the link each of
    /// the flow's bytes takes. No weights: one byte each. A flow of weight 3 stands for three equal ones.
    struct Route {
        std::span<const std::int32_t> links;
        std::span<const double> weights{};
    };

    /// Adds a link of this many bytes a second. Links are numbered as they come.
    void add_link(double capacity) { links_.emplace_back().capacity = capacity; }
    std::size_t links() const { return links_.size(); }

    /// Begins a flow now, over one link or more. `tag` is what pass() calls it.
    void begin(Route route, double bytes, std::int64_t tag);
    /// When the next flow ends if none begins before; infinity when there is none.
    double next();
    /// Goes on to `time`, which is at most next(), and appends the tags of the flows that end then.
    void pass(double time, std::vector<std::int64_t>& ended);
    /// How often a flow's rate was worked out: what all of it has cost.
    std::int64_t work() const { return work_; }

private:
    struct Place {
        std::int32_t flow = 0, hop = 0;  // where on its route
    };
    struct Link {
        double capacity = 0;
        double used = 0;                     // bytes a second
        bool full = false;                   // some flow is held up here
        int round = 0;                       // of filling, in which it was last met
        double left = 0;                     // while filling: of its capacity, for flows whose rate is not known yet
        double weight = 0;                   // of these flows
        std::int32_t open = 0, members = 0;  // of these flows: those whose rate is not known yet, all
        std::vector<Place> places;           // of all flows on it
    };
    struct Moving {
        Route route;
        double left = 0;  // bytes at `since`
        double since = 0, rate = 0, end = 0;
        std::int64_t tag = 0;
        std::uint32_t version = 0;  // of its rate
        bool touched = false, fixed = false;
        int round = 0;                      // of filling, in which it last took part
        std::vector<std::int32_t> where{};  // by hop: its index in its link's places

        double weight(std::size_t hop) const { return route.weights.empty() ? 1 : route.weights[hop]; }
    };
    struct Ending {
        double time = 0;
        std::int32_t flow = 0;
        std::uint32_t version = 0;
    };
    static bool later(const Ending& a, const Ending& b) { return a.time > b.time; }

    bool due(double time) const;
    void drop_stale();
    void touch(std::int32_t flow);
    void touch_component();
    void end(std::int32_t flow);
    void share();
    void open_links();
    bool fill();
    void fix_members(Link& link, double rate);
    void set_rates();
    void announce();

    std::vector<Link> links_;
    std::vector<Moving> flows_;
    std::vector<std::int32_t> free_;  // places in flows_
    std::vector<Ending> endings_;     // a heap; of each set of flows joined by full links the first
    std::vector<std::int32_t> touched_;
    double now_ = 0;
    int round_ = 0;
    std::int64_t work_ = 0;
    std::vector<std::int32_t> met_;  // scratch: links
    struct Share {
        double rate = 0;
        std::int32_t link = 0;
    };
    std::vector<Share> shares_;            // scratch, a heap
    std::vector<double> rates_;            // scratch, by flow
    std::vector<std::int32_t> component_;  // scratch: flows joined by full links
};

}  // namespace rehearse::sim
