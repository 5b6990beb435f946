// SPDX-License-Identifier: Apache-2.0
// The two times that a kernel cannot be faster than by a device's data sheet (Williams, Waterman and Patterson 2009).
#pragma once

#include <optional>

#include "core/machine.hpp"
#include "core/op.hpp"

namespace rehearse {

/// Seconds at the device's peak rate for the problem's type, and at its memory bandwidth with each byte moved once;
/// nothing of what the device does not have.
struct RooflineTimes {
    std::optional<Seconds> compute, memory;
};
RooflineTimes roofline_times(const Problem& problem, const DeviceClass& device);

}  // namespace rehearse
