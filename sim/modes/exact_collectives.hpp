// SPDX-License-Identifier: Apache-2.0
// Collectives by themselves, every message a SimGrid flow.
#pragma once

#include <span>
#include <vector>

#include "sim/collective/exchanges.hpp"

namespace rehearse::sim {

/// Follows collectives, one after the other on each rank, message by message: from when each rank is ready to when it
/// has ended them all, in seconds.
std::vector<double> follow(const Mesh& mesh, std::span<const Begun> row, const Wiring& wiring,
                           std::vector<double> ready);

}  // namespace rehearse::sim
