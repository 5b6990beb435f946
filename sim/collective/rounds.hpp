// SPDX-License-Identifier: Apache-2.0
// What the messages of one round cost when they all start at once, and on which links they meet.
//
// Messages of equal size need no solver: a flow's max-min share is never less than bandwidth / flows on the worst of
// its own links, so it ends by latency + bytes x max over its links (flows / bandwidth); the flows of the busiest link
// of all get no more than that, and end exactly then. So the round's end is exact, the end of a flow that meets less
// traffic an upper bound.
#pragma once

#include <span>
#include <vector>

#include "sim/network/wiring.hpp"

namespace rehearse::sim {

/// A message between two devices. Its size is relative to another's, which whoever makes the round chooses.
struct Flow {
    std::int64_t from = 0, to = 0;
    double size = 1;
    bool operator==(const Flow&) const = default;
};

struct FlowCost {
    Seconds latency;
    PerByte alone;   // of its slowest link
    PerByte shared;  // of the worst of its links, shared with the round's other flows
};

/// A link that holds at least one of its flows up most, with all its flows of the round: one or more.
struct Meeting {
    std::int64_t link = 0;
    PerByte cost;                      // of a flow that has the link for itself
    std::int32_t first = 0, last = 0;  // its flows: RoundCosts::members[first .. last)
};

/// Messages of a round that cost the same when all start together, by byte of the round's mean message.
struct MessageKind {
    Seconds latency;
    PerByte alone, shared;  // as FlowCost
    PerByte combine;        // of what is added to a buffer
    bool across = false;    // from node to node
    bool operator==(const MessageKind&) const = default;
};

struct RoundCosts {
    std::vector<FlowCost> flows;
    std::vector<Meeting> meetings;  // of links that the same flows share, only the slowest
    std::vector<std::int32_t> members;
};

/// Counts flows on links; keeps its counters between rounds.
class RoundCounter {
public:
    explicit RoundCounter(const Wiring& wiring);
    /// Of messages of one size, whatever it is.
    RoundCosts count(std::span<const Flow> flows);
    /// The different kinds among messages whose sizes are relative to their mean. Among unequal ones the busiest link
    /// is as exact, what else ends before it is not told.
    std::vector<MessageKind> kinds(std::span<const Flow> flows);

private:
    void walk(std::span<const Flow> flows, RoundCosts& costs);
    void weigh(RoundCosts& costs);
    void collect(RoundCosts& costs);

    const Wiring& wiring_;
    std::vector<std::int32_t> load_;     // flows on a link; all 0 between calls
    std::vector<std::int32_t> meeting_;  // number of the link's meeting; all none between calls
    std::vector<double> sizes_;          // of all flows on a link; all 0 between calls
    std::vector<Hop> hops_;              // of all flows, one after the other
    std::vector<std::size_t> ends_;
};

/// When the last message of a round of equal ones ends.
Seconds round_time(std::span<const FlowCost> costs, Bytes bytes);

}  // namespace rehearse::sim
