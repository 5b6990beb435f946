// SPDX-License-Identifier: Apache-2.0
// Speeds of a network by simulation of its steps.
#pragma once

#include <set>

#include "cluster/speeds.hpp"
#include "core/machine.hpp"
#include "core/network.hpp"
#include "schedule/plan.hpp"

namespace rehearse::cluster {

/// On 1, 2, 4, ... and `most_devices` devices, and on those `wanted` (packed: as few nodes as hold them), with 1, 2, 4,
/// ... samples each to `most_per_device` or what the memory holds. `plan` is cut into the devices as predict does;
/// precision and optimizer are `job`'s. InputError as make_schedule; InfeasibleError when not even one sample fits a
/// device.
std::vector<SpeedPoint> predicted_points(const Network& network, const Machine& machine, const schedule::Plan& plan,
                                         const schedule::Job& job, std::int64_t most_devices,
                                         std::int64_t most_per_device, const std::set<std::int64_t>& wanted = {});

}  // namespace rehearse::cluster
