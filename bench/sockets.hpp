// SPDX-License-Identifier: Apache-2.0
// Messages between ranks that a framework sends through TCP sockets, as PyTorch does by gloo on processors.
#pragma once

#include "bench/rounds.hpp"
#include "bench/socket_ring.hpp"
#include "bench/team.hpp"
#include "calibrate/samples.hpp"

namespace rehearse::bench {

/// All-reduces of a SocketRing, 2 (n - 1) messages one after the other with the sums in them, of 64 B to 8 MiB each: by
/// themselves, and beside a thread that computes on each rank, with what they take from its core. Collective; at least
/// two ranks.
calibrate::Messages measure_sockets(const Team& team, const SocketRing::Exchange& exchange, const Rounds& rounds);

}  // namespace rehearse::bench
