// SPDX-License-Identifier: Apache-2.0
// One program a rank class, or a kind of its ranks; collectives priced by their rounds.
#pragma once

#include "sim/collective/collectives.hpp"
#include "sim/modes/kinds.hpp"
#include "sim/simulate.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

/// Each class's program runs once for each kind of its ranks, at the pace of the slowest; only inside and between
/// collectives do ranks drift apart. All iterations are alike. Its events are those of the first rank of each kind, a
/// collective's lasting until the last rank has ended it. `collectives` are of the same mesh and wiring, where there
/// are `links` of ranks followed one by one. InputError for what is not there yet: messages between classes.
Prediction simulate_folded(const KindSteps& steps, const Wiring& wiring, Collectives& collectives, int iterations,
                           bool links);
Prediction simulate_folded(const Steps& steps, const Wiring& wiring, int iterations,
                           std::int64_t followed_messages = Collectives::few);
/// Returns how long one iteration takes, without writing it down as a timeline.
Seconds folded_step(const KindSteps& steps, const Wiring& wiring, Collectives& collectives);

}  // namespace rehearse::sim
