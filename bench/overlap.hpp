// SPDX-License-Identifier: Apache-2.0
// What computation and communication of one rank cost each other, when its communication thread shares its core.
#pragma once

#include <vector>

#include "bench/rounds.hpp"
#include "calibrate/samples.hpp"
#include "kernels/comm/communicator.hpp"

namespace rehearse::bench {

/// Messages beside a loop that computes on what an L2 cache holds, as training does: on a thread of their own that naps
/// between two looks. What the core loses: by rounds of a ring, again and again. What a message takes: by one there and
/// one back, now and then. All ranks at once. Sizes from 1 KiB to 1 MiB; `rounds` as in time(). Collective; at least
/// two ranks.
std::vector<calibrate::OverlapSample> measure_overlap(kernels::Communicator& communicator, const Rounds& rounds);

}  // namespace rehearse::bench
