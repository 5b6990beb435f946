// SPDX-License-Identifier: Apache-2.0
// Bundles of messages under way, which slow each other down where they meet.
#pragma once

#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "sim/modes/bundles.hpp"

namespace rehearse::sim {

/// Bytes that every flow of a bundle carries, and how long the ranks are busy after the last of them has left.
struct Leg {
    int bundle = 0;
    double bytes = 0;
    Seconds afterwards;
};

/// Legs, one after the other. What it is for stands with whoever sets it out.
struct Transit {
    int rank_class = 0, step = 0;
    int to_class = -1, recv = -1;  // of a message
    int together = -1;             // of a collective of several classes: which, with whoever sets it out
    std::span<const Leg> legs;     // in storage of whoever sets it out
    std::size_t leg = 0;
    double begun = 0;  // the whole
    double start = 0;  // this leg

    int bundle() const { return legs[leg].bundle; }
};

/// Bundles that meet, directly or through others that are under way, are one company; a company's rates change only
/// when one of it comes or goes, and are the same whenever the same bundles are together.
class Transits {
public:
    explicit Transits(Bundles& bundles) : bundles_(bundles) {}

    void set_out(Transit transit, double start);
    /// Goes on to the next time at which a leg begins or ends; false when there is none. `left` is told of each leg
    /// that ended, and when; `arrived` of each whole, and when its last rank is free. What they set out begins no
    /// earlier, so that time only goes forward.
    bool next(const std::function<void(const Transit&, double)>& left,
              const std::function<void(const Transit&, double)>& arrived);

private:
    struct Moving {
        Transit transit;
        double left = 0;  // of the leg's bytes, at `since`
        double since = 0;
        double rate = 0;
        double end = std::numeric_limits<double>::infinity();
    };
    struct Waiting {
        Transit transit;
        std::int64_t number = 0;  // first come, first served
    };
    static bool later(const Waiting& a, const Waiting& b);
    void begin_those_due();
    void share(std::vector<int> touched);
    void regroup(const std::vector<std::size_t>& company);

    Bundles& bundles_;
    double now_ = 0;
    std::int64_t count_ = 0;
    std::vector<Waiting> waiting_;  // a heap
    std::vector<Moving> moving_;
    std::vector<int> touched_;  // bundles that came or went since rates were last shared out
    std::vector<bool> seen_;    // scratch
};

}  // namespace rehearse::sim
