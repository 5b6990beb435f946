// SPDX-License-Identifier: Apache-2.0
// The options of `rehearse cluster`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/cluster_run.hpp"
#include "cli/job.hpp"
#include "cli/report.hpp"
#include "cluster/simulate.hpp"

namespace rehearse::cli {

class CommandLine;

struct ClusterOptions {
    Common common;
    JobOptions job;
    std::string machine;  // empty: summit; with --run this host
    std::int64_t devices = 16, most_per_device = 256;
    std::string jobs, workload, speeds, save_speeds, gantt, trace;
    std::vector<std::string> policies{"fifo", "fixed-batch", "elastic"};
    std::string interval = "0s", start, restart, end;  // the middle two empty: as --help says
    ClusterRun run;
    bool drop = false;
    std::uint64_t seed = 1;
};

void add_cluster_options(CommandLine& app, ClusterOptions& options);

/// InputError where options do not go together, or their files cannot be written.
void check(const ClusterOptions& options);

/// What a policy is simulated with; one of options.policies.
cluster::Options simulated(const ClusterOptions& options, const std::string& policy);

/// What --workload help prints.
std::string workload_help();

}  // namespace rehearse::cli
