// SPDX-License-Identifier: Apache-2.0
// Operators that the calibrated networks lack: a few of each sort, so that networks that have them find kernels like
// theirs among the measured ones (prices/host_model.hpp).
#pragma once

#include <span>
#include <vector>

#include "calibrate/problems.hpp"

namespace rehearse::calibrate {

/// Small problems, milliseconds each, of every sort and pass of which `needed` has none, products of 10 MFLOP
/// and more also where it has none as large; as of a step that touches as many bytes as the widest of these.
std::vector<Needed> probes(std::span<const Needed> needed);

}  // namespace rehearse::calibrate
