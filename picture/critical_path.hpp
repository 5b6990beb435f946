// SPDX-License-Identifier: Apache-2.0
// What the end of a timeline waits for, read backwards from the times alone: a timeline carries no dependencies, but in
// it an event begins when the last thing that it waits for has ended.
#pragma once

#include "picture/lanes.hpp"

namespace rehearse::picture {

struct EventAt {
    std::size_t lane = 0, event = 0;
    auto operator<=>(const EventAt&) const = default;
};

/// The other ends of a message or collective on other ranks: those of the same flow (of another program's trace also on
/// other threads); in timelines that do not number
/// them, the same step of a collective, or the send of a receive, of the same micro-batch and iteration that goes on at
/// the same time. Empty for what is no communication.
std::vector<EventAt> partners(const Lanes& lanes, EventAt of);

/// How long after its end nothing on its rank begins: so much later it could have ended without being missed there.
std::int64_t free_slack(const Lanes& lanes, EventAt of);

struct PathStep {
    EventAt at;
    std::int64_t waited = 0;  // ns between the end of what came before and the start: nothing explains them
};
/// From the first event to the one that ends last. Before a collective comes what its last rank did before it, before
/// anything else what ended last on its rank.
std::vector<PathStep> critical_path(const Lanes& lanes);

}  // namespace rehearse::picture
