// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "run/trainer.hpp"

namespace rehearse::run {

/// What a rank's learners know, and their average.
struct WorkerState {
    std::vector<std::vector<float>> learners;
    std::vector<float> average, last;
};

/// The same training step by step, for who decides in between how many learners there are. Collective over `world`;
/// all three outlive it.
class WorkerTraining {
public:
    WorkerTraining(const kernels::Communicator& world, const Schedule& schedule, const Options& options);
    ~WorkerTraining();
    WorkerTraining(const WorkerTraining&) = delete;
    WorkerTraining& operator=(const WorkerTraining&) = delete;

    StepReport train_step(int step);
    /// The weights and gradients of the last learner.
    void finish(Result& result);
    WorkerState state();
    /// Goes on at a sample of the training. Learners that were there are as they were; those that come begin with the
    /// average model, and without momentum.
    void go_on(const WorkerState& state, int step, std::int64_t sample);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Trains where a rank's learners, or threads without locks, work at the same time (run/methods/worker_threads.hpp).
/// Collective over `world`. There is no timeline: their kernels overlap.
Result train_with_threads(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
                          const Report& report);

}  // namespace rehearse::run
