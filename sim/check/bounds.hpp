// SPDX-License-Identifier: Apache-2.0
// What no machine can beat, whatever a simulator says.
#pragma once

#include "core/collectives/collective.hpp"
#include "core/machine.hpp"
#include "core/op.hpp"

namespace rehearse::sim {

/// No kernel takes less: its operations at peak rate (of a convolution with t taps 1 / t of them, which is less than
/// any FFT or Winograd needs), and the bytes that no cache can hold (64 MiB; an A100's L2 has 40 MB) at the memory's
/// bandwidth. That holds for measured kernels, too: one that is faster tells of a wrong peak or a wrong sample
/// (predict/faster_than_peak.hpp says so), and is taken to need this long.
Seconds least_time(const Problem& problem, const DeviceClass& device);

/// Bytes that must cross between `parts` parts of a group of ranks, each of which holds and gets `whole`: a sum needs
/// the bytes of all but one part once to be formed, and once more to be spread (Patarasu and Yuan 2009).
Bytes least_crossing(CollectiveKind kind, std::int64_t parts, Bytes whole);

}  // namespace rehearse::sim
