// SPDX-License-Identifier: Apache-2.0
// What the messages of one round cost when they all start at once.
//
// Messages of equal size need no solver: a flow's max-min share is never less than bandwidth / flows on the worst of
// its own links, so it ends by latency + bytes x max over its links (flows / bandwidth); the flows of the busiest link
// of all get no more than that, and end exactly then. So the round's end is exact, the end of a flow that meets less
// traffic an upper bound.
#pragma once

#include <span>
#include <vector>

#include "sim/wiring.hpp"

namespace rehearse::sim {

/// A message between two devices.
struct Flow {
    std::int64_t from = 0, to = 0;
};

struct FlowCost {
    Seconds latency;
    PerByte wire;  // of the worst of its links, shared with the round's other flows
};

/// Counts flows on links; keeps its counters between rounds.
class RoundCounter {
public:
    explicit RoundCounter(const Wiring& wiring);

    /// What each of these flows costs when all start at once.
    std::vector<FlowCost> count(std::span<const Flow> flows);

private:
    const Wiring& wiring_;
    std::vector<std::uint32_t> load_;  // flows on a link; all 0 between calls
    std::vector<Hop> hops_;            // of all flows, one after the other
    std::vector<std::size_t> ends_;
};

/// When the last message of a round of equal ones ends.
Seconds round_time(std::span<const FlowCost> costs, Bytes bytes);

}  // namespace rehearse::sim
