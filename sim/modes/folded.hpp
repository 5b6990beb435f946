// SPDX-License-Identifier: Apache-2.0
// One program a rank class, collectives priced by their rounds.
#pragma once

#include "sim/collective/collectives.hpp"
#include "sim/simulate.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

/// Each class's program runs once, at the pace of its slowest rank; only inside and between collectives do ranks drift
/// apart. All iterations are alike. Its events are those of the first rank of each class, a collective's lasting until
/// the last rank has ended it. `collectives` are of the same mesh and wiring, where there are `links` of ranks followed
/// one by one. InputError for what is not there yet: messages between classes.
Prediction simulate_folded(const Steps& steps, const Wiring& wiring, Collectives& collectives, int iterations,
                           bool links);
Prediction simulate_folded(const Steps& steps, const Wiring& wiring, int iterations,
                           std::int64_t followed_messages = Collectives::few);
/// Returns how long one iteration takes, without writing it down as a timeline.
Seconds folded_step(const Steps& steps, const Wiring& wiring, Collectives& collectives);

}  // namespace rehearse::sim
