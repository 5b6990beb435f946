// SPDX-License-Identifier: Apache-2.0
// Puts what was measured into the machine that it was measured on.
#pragma once

#include "calibrate/samples.hpp"
#include "core/machine.hpp"

namespace rehearse::calibrate {

/// `host` with measured prices, peak, memory bandwidth, launch cost, efficiency rows and messaging inside the node,
/// each with its source and error. Prices of problems that `samples` does not hold are kept. InputError when the host
/// has no device class, or several (which one was measured?).
Machine apply(Machine host, const Samples& samples);

}  // namespace rehearse::calibrate
