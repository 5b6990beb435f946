// SPDX-License-Identifier: Apache-2.0
// Collectives and messages that are under way, which slow each other down where they meet.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/modes/aggregates.hpp"

namespace rehearse::sim {

/// One after the other in a collective: the bytes of an aggregate (of a flow of FlowAggregates::size), and how long the
/// ranks are busy after the last of them has left.
struct FlowPhase {
    int aggregate = 0;
    double bytes = 0;
    Seconds afterwards;
    bool beside = false;  // it begins with the phase before it, not after it
};

/// A collective, a message or a computation on shared cores. What it is for stands with whoever sets it out.
struct ActiveCollective {
    int rank_class = 0, step = 0;
    int to_class = -1, recv = -1;       // of a message
    int together = -1;                  // of a collective of several classes: which, with whoever sets it out
    std::span<const FlowPhase> phases;  // in storage of whoever sets it out
    double begun = 0;                   // the whole
    double start = 0;                   // the phases that move now
};

/// All that is under way in folded mode. Flow aggregates share links max-min.
class ActiveCollectives {
public:
    explicit ActiveCollectives(FlowAggregates& aggregates) : aggregates_(aggregates) {}

    void set_out(const ActiveCollective& active, double start);
    /// Goes on to the next time at which a phase begins or ends; false when there is none. `left` is told of each phase
    /// that ended, and when; `arrived` of each whole, and when its last rank is free. What they set out begins no
    /// earlier, so that time only goes forward.
    bool next(const std::function<void(const ActiveCollective&, const FlowPhase&, double)>& left,
              const std::function<void(const ActiveCollective&, double)>& arrived);

private:
    struct Slot {
        ActiveCollective active;
        std::size_t next = 0;      // phase that has not begun
        std::int32_t pending = 0;  // phases that move
        double until = 0;          // when the ranks are free of those that have ended
    };
    struct Waiting {
        double start = 0;
        std::int64_t number = 0;  // first come, first served
        std::int32_t slot = 0;
        auto operator<=>(const Waiting&) const = default;
    };
    void wait(std::int32_t slot, double start);
    void begin_those_due();
    void begin_phases(std::int32_t slot);

    FlowAggregates& aggregates_;
    MaxMin flows_;
    double now_ = 0;
    std::int64_t count_ = 0;
    std::vector<Slot> slots_;
    std::vector<std::int32_t> free_;   // slots
    std::vector<Waiting> waiting_;     // a heap
    std::vector<std::int64_t> ended_;  // scratch: tags of slots and phases
};

}  // namespace rehearse::sim
