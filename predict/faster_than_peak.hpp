// SPDX-License-Identifier: Apache-2.0
// Measured kernels that no device could be: their peak is wrong, or they are.
#pragma once

#include <string>
#include <vector>

#include "core/machine.hpp"
#include "core/schedule.hpp"

namespace rehearse::predict {

/// A sample that is faster than its device's peak and memory allow.
struct FasterThanPeak {
    std::string problem, device;  // as in the machine file
    std::string sample, peak;     // their sources
    Seconds measured, least;      // predictions take `least`
};

/// Returns, for the schedule's problems, once each and by name, the samples whose time plus three standard deviations
/// is less than sim::least_time.
std::vector<FasterThanPeak> faster_than_peak(const Schedule& schedule, const Machine& machine);

}  // namespace rehearse::predict
