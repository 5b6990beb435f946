// SPDX-License-Identifier: Apache-2.0
// The batch script that would run a plan.
#pragma once

#include <cstdint>
#include <string>

#include "core/units.hpp"

namespace rehearse::search {

enum class Scheduler { slurm, lsf };

struct BatchJob {
    std::string name;     // of the job
    std::string command;  // what every rank runs
    std::int64_t ranks = 1, nodes = 1, ranks_per_node = 1;
    bool gpus = false;  // a GPU for each rank
    Seconds limit;      // wall time asked for, rounded up to minutes
};

/// Slurm: srun, one task a rank, consecutive ranks on a node (--distribution=block), as predicted. LSF: jsrun, one
/// resource set a rank. What only the user knows (account, queue) stands there as a comment to fill in.
std::string batch_script(Scheduler scheduler, const BatchJob& job);

}  // namespace rehearse::search
