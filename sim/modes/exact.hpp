// SPDX-License-Identifier: Apache-2.0
// Every message of every rank is a SimGrid flow.
#pragma once

#include "sim/simulate.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

/// One actor a rank and stream works through the stream's steps. A message starts when both its ends have come to its
/// round, and occupies both until a latency after its last byte (and its receiver until it has combined it); a rank
/// goes on to the next round when its own messages of this one are over. A rank's streams start an iteration together.
Prediction simulate_exact(const Steps& steps, const Wiring& wiring, int iterations, bool links = false);

}  // namespace rehearse::sim
