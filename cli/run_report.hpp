// SPDX-License-Identifier: Apache-2.0
// What `rehearse run` was asked for, and what it tells of a training: step by step, and at its end.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "cli/command.hpp"
#include "cli/growth.hpp"
#include "cli/job.hpp"
#include "cli/tuned.hpp"
#include "run/train.hpp"

namespace rehearse::cli {

/// What `rehearse run` was asked for.
struct RunOptions {
    Common common;
    JobOptions job;
    run::Options run;
    std::optional<float> learning_rate;  // absent: what the optimizer usually takes
    std::optional<float> epsilon;        // likewise
    std::string order = "shuffled";      // of the samples of files
    std::string trace, machine, weights;
    Tune tune = Tune::on;
    int most_learners = 0;  // of the auto-tuner; 0: none
    std::string gain = "5%", patience;
    std::vector<std::string> growth;
    bool copy_layers = false;
};

/// What came of one network of a training that has grown.
struct GrownPhase {
    GrowthPhase phase;
    int steps = 0;
    run::Grown grown;
    Seconds seconds;  // of all its steps
    std::int64_t parameters = 0;
};

/// A training, as `tell` tells of it.
struct Trained {
    Schedule schedule;
    run::Result result;  // with all steps unless they are printed as they end
    std::int64_t steps = 0;
    Seconds seconds{};                                 // of all of them
    std::optional<std::pair<int, double>> diverged{};  // the first step whose loss is no number, and that loss
};

/// Whether steps are printed as they end.
bool speaks_live(const RunOptions& options);
/// `head`: with the line above the first of them.
void print_step(int step, const run::StepReport& report, bool head);
/// What came of it, on one of the ranks, and the timeline's file; the exit code. `grown`: empty where it is of one
/// network; else what is not of steps is of the last one.
int tell(const RunOptions& options, const Trained& trained, const std::vector<GrownPhase>& grown = {});

}  // namespace rehearse::cli
