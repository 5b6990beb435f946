// SPDX-License-Identifier: Apache-2.0
// What counting cannot price, SimGrid simulates.
#pragma once

#include <span>
#include <vector>

#include "sim/collective/exchanges.hpp"
#include "sim/collective/rounds.hpp"

namespace rehearse::sim {

/// When each flow's last byte leaves, without its latency, when all start at once, shared max-min. One size a flow.
std::vector<Seconds> solve(const Wiring& wiring, std::span<const Flow> flows, std::span<const Bytes> bytes);

/// Follows collectives, one after the other on each rank, message by message: from when each rank is ready to when it
/// has ended them all.
std::vector<double> follow(const Mesh& mesh, std::span<const Begun> row, const Wiring& wiring,
                           std::vector<double> ready);

}  // namespace rehearse::sim
