// SPDX-License-Identifier: Apache-2.0
// `rehearse cluster --run`: the jobs train for real, and what came of it stands beside what was predicted.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/job.hpp"
#include "cli/progress.hpp"
#include "cluster/processes.hpp"

namespace rehearse::cli {

class CommandLine;

struct ClusterRun {
    std::string folder, launcher = "mpirun -n {ranks}", options;
    std::int64_t pilot = 0;  // steps
};
void add_cluster_run(CommandLine& app, ClusterRun& run);

/// InputError where options do not go together.
void check(const ClusterRun& run, bool has_jobs, bool has_speeds);

/// How jobs are started, until `work` is interrupted.
cluster::Launch launch_of(const ClusterRun& run, const JobOptions& job, const LongWork& work);

/// One policy, predicted and run.
struct Ran {
    cluster::Outcome predicted, measured;
    std::vector<cluster::Measured> spans;
};

/// Adds the tables "runs" (a row a policy) and "run_speeds" (a row a model and share) to the report.
void add_runs(Report& report, const std::vector<cluster::Job>& jobs, const std::vector<Ran>& runs);

}  // namespace rehearse::cli
