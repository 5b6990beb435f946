// SPDX-License-Identifier: Apache-2.0
// Whole training steps: what they say of the prices of their parts, and how far predictions of them are off.
#pragma once

#include <string>
#include <vector>

#include "bench/team.hpp"
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
    kernels::Wish wish;
    Seconds budget;
};

/// What each rank computes of each schedule, all ranks at the same time and without communication, gives `samples` the
/// times that their problems take there, stretched to the rank of a class that takes longest in each step; of ranks
/// that share cores, what they would take on a core of their own. `machine` knows what problems take by themselves, and
/// who shares cores.
void price_in_situ(const InSituJob& job, const std::vector<Schedule>& schedules, const Machine& machine,
                   std::vector<calibrate::Sample>& samples);

struct InSituRow {
    std::string model, plan;
    Seconds predicted, measured;
    double noise = 0;  // relative deviation between steps
    int steps = 0;
    double error() const { return predicted / measured - 1; }
};

/// Trains each schedule on all ranks, and predicts it on `machine` (rank 0). On other ranks the rows have no
/// prediction. BackendError without SimGrid.
std::vector<InSituRow> check_in_situ(const InSituJob& job, const std::vector<Schedule>& schedules,
                                     const Machine& machine);

/// The spread of predicted / measured about 1, and the median noise.
InSitu in_situ(const std::vector<InSituRow>& rows, const std::string& host, const std::string& date);

}  // namespace rehearse::cli
