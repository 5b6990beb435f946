// SPDX-License-Identifier: Apache-2.0
// What came of a cluster's jobs.
#pragma once

#include "cluster/simulate.hpp"
#include "core/timeline.hpp"

namespace rehearse::cluster {

struct Figures {
    std::int64_t complete = 0, turned_away = 0, unfinished = 0;
    std::int64_t started = 0;   // that got devices
    Seconds mean_completion;    // from a job's being ready to its end, of complete jobs; means nothing without any
    Seconds p95_completion;     // of these, the least that 95 % do not exceed; likewise
    Seconds mean_wait;          // until the first devices, of jobs that got some; likewise
    Seconds makespan;           // until the last job's end, or the simulation's
    double utilisation = 0;     // device time that trained, of all until the makespan
    std::int64_t restarts = 0;  // of all jobs
};
Figures figures(const Outcome& outcome);

/// A rank a device: what it trained when, `step` the job, `layer` the model, `pass` "train", or "restart" while a job
/// is saved and loaded; `micro_batch` the job's batch.
Timeline timeline(const std::vector<Job>& jobs, const Outcome& outcome);

}  // namespace rehearse::cluster
