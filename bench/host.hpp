// SPDX-License-Identifier: Apache-2.0
// The roofline of one core while all ranks are busy: peak, memory bandwidth, and what starting a kernel costs.
#pragma once

#include <cstdint>

#include "bench/rounds.hpp"
#include "bench/team.hpp"
#include "calibrate/samples.hpp"

namespace rehearse::bench {

/// Peak: multiply-adds in registers, f32, at the widest SIMD of the CPU (loops.hpp): a roof that no kernel exceeds.
/// Memory bandwidth: the better of copy and triad (McCalpin's STREAM, 1995) over arrays that together are four times
/// the last-level cache; bytes as the program counts them, without the read that a store may cause. Launch: the
/// smallest kernel there is, a ReLU of one element.
calibrate::HostFigures measure_host(const Rounds& rounds, const Team& team);

}  // namespace rehearse::bench
