// SPDX-License-Identifier: Apache-2.0
// Collectives and messages that are under way, which slow each other down where they meet.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/modes/aggregates.hpp"

namespace rehearse::sim {

/// One after the other in a collective: the bytes that every flow of an aggregate carries, and how long the ranks are
/// busy after the last of them has left.
struct FlowPhase {
    int aggregate = 0;
    double bytes = 0;
    Seconds afterwards;
};

/// A collective, a message or a computation on shared cores. What it is for stands with whoever sets it out.
struct ActiveCollective {
    int rank_class = 0, step = 0;
    int to_class = -1, recv = -1;       // of a message
    int together = -1;                  // of a collective of several classes: which, with whoever sets it out
    std::span<const FlowPhase> phases;  // in storage of whoever sets it out
    std::size_t phase = 0;
    double begun = 0;  // the whole
    double start = 0;  // this phase

    const FlowPhase& current() const { return phases[phase]; }
};

/// All that is under way in folded mode. Flow aggregates share links max-min.
class ActiveCollectives {
public:
    explicit ActiveCollectives(FlowAggregates& aggregates) : aggregates_(aggregates) {}

    void set_out(ActiveCollective active, double start);
    /// Goes on to the next time at which a phase begins or ends; false when there is none. `left` is told of each phase
    /// that ended, and when; `arrived` of each whole, and when its last rank is free. What they set out begins no
    /// earlier, so that time only goes forward.
    bool next(const std::function<void(const ActiveCollective&, double)>& left,
              const std::function<void(const ActiveCollective&, double)>& arrived);

private:
    struct Waiting {
        ActiveCollective active;
        std::int64_t number = 0;  // first come, first served
    };
    static bool later(const Waiting& a, const Waiting& b);
    void wait(const ActiveCollective& active);
    void begin_those_due();

    FlowAggregates& aggregates_;
    MaxMin flows_;
    double now_ = 0;
    std::int64_t count_ = 0;
    std::vector<Waiting> waiting_;          // a heap
    std::vector<ActiveCollective> moving_;  // by tag in flows_
    std::vector<std::int64_t> free_;        // tags
    std::vector<std::int64_t> ended_;       // scratch: tags
};

}  // namespace rehearse::sim
