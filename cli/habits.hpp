// SPDX-License-Identifier: Apache-2.0
// What frameworks do beside the kernels that they call: how often values cross memory, how images lie in it.
#pragma once

#include "cli/replay.hpp"
#include "core/prices.hpp"

namespace rehearse::cli {

/// Values cross memory as often as on `other`, whose framework fuses other operators. InputError without
/// [device.tiles].
Machine with_passes(Machine machine, const Machine& other);

/// What the run's layout and its optimizer's passes make of the price of a problem.
Price with_habits(Price price, const Problem& problem, const DeviceClass& device, const TrainingRun& run);

}  // namespace rehearse::cli
