// SPDX-License-Identifier: Apache-2.0
// What every rank refuses alike, before any of them waits for another.
#pragma once

#include <string_view>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/limits.hpp"

namespace rehearse::run {

/// InputError where a rank's program of the schedule cannot be made.
void check_program(const Schedule& schedule);

/// InputError where a limit holds of what is asked.
void check_limits(const Asked& asked);

/// InputError where this job, or this version, cannot train the schedule with these options.
void check_job(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
               std::string_view device);

}  // namespace rehearse::run
