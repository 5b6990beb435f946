// SPDX-License-Identifier: Apache-2.0
// Measured kernels that the device cannot have run as their problem says.
#pragma once

#include <span>
#include <string>

#include "core/machine.hpp"
#include "prices/price_model.hpp"

namespace rehearse::calibrate {

/// Says how many of the kernels took less time than their operations take at the device's peak of their type, and which
/// by the most; empty where none did. A kernel of another type, of Winograd's or of another device does.
std::string beyond_peak(std::span<const KernelSample> kernels, const DeviceClass& device);

}  // namespace rehearse::calibrate
