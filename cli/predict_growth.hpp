// SPDX-License-Identifier: Apache-2.0
// How long a training takes whose network grows.
#pragma once

#include <vector>

#include "cli/growth.hpp"
#include "cli/report.hpp"
#include "predict/predict.hpp"

namespace rehearse::cli {

/// One network of the training: what a step of it takes, on each number of devices.
struct PredictedPhase {
    GrowthPhase phase;
    int steps = 0;
    std::int64_t parameters = 0;
    predict::Prediction prediction;
};

/// Adds to the report of the last network a row a network and number of devices, and a row a number of devices of all
/// of them: the steps' time, with the sum of the ends of their bands, and what it would be of the last one alone.
void add_growth(Report& report, const std::vector<PredictedPhase>& phases);

}  // namespace rehearse::cli
