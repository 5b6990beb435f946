// SPDX-License-Identifier: Apache-2.0
// Whole training steps, predicted and measured: how far prices that hold for each step by itself are from their sum.
#pragma once

#include <string>
#include <vector>

#include "cli/report.hpp"
#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "kernels/choices.hpp"
#include "run/train.hpp"

namespace rehearse::cli {

struct InSituRow {
    std::string model, plan;
    Seconds predicted, measured;
    double noise = 0;  // relative deviation between steps
    double error() const { return predicted / measured - 1; }
};

/// Trains each schedule for `steps` steps on all ranks, and predicts it on `machine` (rank 0). On other ranks the rows
/// have no prediction. BackendError without SimGrid.
std::vector<InSituRow> check_in_situ(const run::Session& session, const std::vector<Schedule>& schedules,
                                     const Machine& machine, const kernels::Choices& tuned, Bytes scratch_limit,
                                     int steps);

/// The spread of predicted / measured about 1, and the median noise.
InSitu in_situ(const std::vector<InSituRow>& rows, const std::string& host, const std::string& date, int steps);

}  // namespace rehearse::cli
