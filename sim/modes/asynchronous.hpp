// SPDX-License-Identifier: Apache-2.0
// Groups of ranks that trade with parameter servers, each at its own pace.
#pragma once

#include "sim/simulate.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

/// So many steps are simulated at least, however few were asked for: a system without common steps has to settle. Where
/// the rates of the two halves of the steps that count (steady() leaves the first quarter out) differ by as much as
/// `settled_drift`, twice as many are, and so on while there are no more of them, and of what happens in them, than
/// this.
inline constexpr int settling_steps = 48, most_settling_steps = 8 * settling_steps;
inline constexpr std::size_t most_settling_events = 2'000'000;

/// One actor a group, stage of a pipeline and stream; the ranks of a group are in step, at the pace of its slowest, and
/// their collectives take what folded mode says of all groups at once. What is traded are SimGrid's flows from a
/// trading rank to its server's device and back; a server takes one request after the other, in the order in which they
/// have come, for as long as its work is priced on its device, and does nothing else. A message takes latency + bytes /
/// its share of its links.
Prediction simulate_asynchronous(const Steps& steps, const Wiring& wiring, const Options& options);

/// No steady step is shorter: in one of all ranks, what they push comes in by the network cards of each server's node.
Seconds least_trading(const Steps& steps, const Wiring& wiring);

}  // namespace rehearse::sim
