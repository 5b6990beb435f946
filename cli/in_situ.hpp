// SPDX-License-Identifier: Apache-2.0
// Whole training steps: what they say of the prices of their parts, and how far predictions of them are off.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/team.hpp"
#include "calibrate/checked_steps.hpp"
#include "calibrate/in_situ.hpp"
#include "calibrate/samples.hpp"
#include "cli/report.hpp"
#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "kernels/choices.hpp"
#include "run/train.hpp"

namespace rehearse::cli {

/// Where training steps are measured, and for how long all of them together.
struct InSituJob {
    const run::Session& session;
    bench::Team team;
    kernels::KernelSelection selection;
    Seconds budget;
    /// Whether the work ends with what it has; asked on all ranks at the same place, and the same on all.
    std::function<bool()> ends;
};

/// What each rank computes of each schedule, all ranks at the same time and without communication, gives `samples` the
/// times that their problems take there, stretched to the rank of a class that takes longest in each step; of ranks
/// that share cores, what they would take on a core of their own. `machine` knows what problems take by themselves, and
/// who shares cores. Says how much longer each schedule's kernels take there, the same on all ranks.
std::vector<calibrate::InSituStretch> price_in_situ(const InSituJob& job, const std::vector<Schedule>& schedules,
                                                    const Machine& machine, std::vector<calibrate::Sample>& samples);

/// Trains each schedule on all ranks, and predicts it on `machine` (rank 0). On other ranks the rows have no
/// prediction. BackendError without SimGrid.
std::vector<calibrate::CheckedStep> check_in_situ(const InSituJob& job, const std::vector<Schedule>& schedules,
                                                  const Machine& machine);

}  // namespace rehearse::cli
