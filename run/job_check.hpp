// SPDX-License-Identifier: Apache-2.0
// What every rank refuses alike, before any of them waits for another.
#pragma once

#include <string_view>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/train.hpp"

namespace rehearse::run {

/// InputError where a device ("cpu": none) cannot train the schedule, since something of it is kept or turned on the
/// host.
void check_on_device(const Schedule& schedule, std::string_view device);

/// InputError where this job, or this version, cannot train the schedule with these options.
void check_job(const kernels::Communicator& world, const Schedule& schedule, const Options& options);

}  // namespace rehearse::run
