// SPDX-License-Identifier: Apache-2.0
// Groups of ranks that trade with parameter servers, each at its own pace.
#pragma once

#include "sim/simulate.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

/// So many steps are simulated where only one was asked for: a system without common steps has to settle.
inline constexpr int settling_steps = 24;

/// One actor a group, stage of a pipeline and stream; the ranks of a group are in step, at the pace of its slowest, and
/// their collectives take what folded mode says of all groups at once. What is traded are SimGrid's flows from a
/// trading rank to its server's device and back; a server takes one request after the other, in the order in which they
/// have come, for as long as its work is priced on its device, and does nothing else. A message takes latency + bytes /
/// its share of its links.
Prediction simulate_asynchronous(const Steps& steps, const Wiring& wiring, const Options& options);

}  // namespace rehearse::sim
