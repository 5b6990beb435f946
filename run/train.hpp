// SPDX-License-Identifier: Apache-2.0
// (Schedule, kernels) in, trained weights and measured Timeline out. Every MPI rank calls train with the same Schedule.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/schedule.hpp"
#include "core/timeline.hpp"

namespace rehearse::run {

/// MPI from its start to its end; the one object that main holds. Without mpirun it is a job of one rank.
class Session {
public:
    Session(int& argc, char**& argv);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    std::int64_t rank() const;
    std::int64_t size() const;
    /// Ends the whole job: what a rank calls when it cannot go on, so that the others do not wait for it.
    [[noreturn]] void abort(int exit_code) const;
};

struct Options {
    int steps = 5;
    std::string backend;            // empty: the best of each layer
    std::uint64_t seed = 1;
    float learning_rate = 0.05F, momentum = 0.9F, weight_decay = 0;
    bool check_gradients = false;   // compare with the same global batch on one rank; the result's gradient_error
    bool record = true;             // events into the timeline
};

struct StepReport {
    double loss = 0;  // mean over the global batch
    Seconds seconds, exposed_comm;
    double samples_per_s = 0;
};

struct Result {
    Timeline timeline;                // on rank 0: of all ranks, clocks aligned; elsewhere: of this rank
    std::vector<StepReport> steps;
    std::vector<float> weights;       // of all buckets, one after the other
    std::vector<float> gradients;     // of the last step, likewise
    double gradient_error = -1;       // relative; -1: not asked for
    double gradient_tolerance = -1;   // derived from the depth and batch; an error above it is a failed check
};

/// Trains on the synthetic task of run/data.hpp. `report` is called on rank 0 after each step.
Result train(const Schedule& schedule, const Options& options,
             const std::function<void(int step, const StepReport&)>& report = {});

}  // namespace rehearse::run
