// SPDX-License-Identifier: Apache-2.0
// Holds every prediction to what no machine can beat. Bounds follow from the schedule and the machine alone, not from
// anything that a simulator computed on its way, so that its mistakes show.
#pragma once

#include "core/schedule.hpp"
#include "core/timeline.hpp"
#include "sim/network/wiring.hpp"
#include "sim/simulate.hpp"
#include "sim/steps.hpp"

namespace rehearse::sim {

/// Throws logic_error (a bug of ours: exit code 1) that names the step unless in each iteration, on each rank that the
/// timeline shows,
/// - every step of the rank's program is there once, in the order of its stream, after all that it waits for;
/// - kernels take least_time or more, messages their bytes at the rate of the slowest link on their way, loads at what
///   one client gets of their tier and its NICs carry, and those of all ranks of a class at what the tier and all NICs
///   of their nodes do;
/// - a rank's collectives take no less than its own bytes need on all links out of its device together, and those of a
///   class no less than least_crossing needs on all NICs of its nodes together;
/// - what was sent in a collective, where all its ranks are shown, is least_crossing of its ranks or more.
/// With servers every trade takes its way there and back and its server's work, has been served, and a server does one
/// thing at a time.
/// Where links are listed, as many bytes come out of NICs as go in, and no link carries more than it can in that time.
/// Returns what was held against the longest iteration's ranks.
Bounds certify(const Timeline& timeline, const Steps& steps, const Wiring& wiring);

}  // namespace rehearse::sim
