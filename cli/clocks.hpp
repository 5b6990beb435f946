// SPDX-License-Identifier: Apache-2.0
// What a device's clocks were when a figure was measured, as documents and messages say it.
#pragma once

#include <string>

#include "cli/json.hpp"
#include "kernels/device.hpp"

namespace rehearse::cli {

/// {"processors_hz", "memory_hz", "celsius", "watts", "held_down_by"}, or {"unknown": why}.
Json clocks_document(const kernels::Clocks& clocks);
/// "1410 MHz (memory 2619 MHz), held down by the power limit", or why the clocks are unknown.
std::string clocks_text(const kernels::Clocks& clocks);

}  // namespace rehearse::cli
