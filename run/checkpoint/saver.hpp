// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a training that goes on: where it begins, and what it leaves behind after its steps.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/executor.hpp"
#include "run/train.hpp"

namespace rehearse::run {

/// Does nothing unless the options ask for checkpoints. What it is given outlives it.
class Saver {
public:
    Saver(const kernels::Communicator& world, const Schedule& schedule, const Options& options, Program& program,
          Executor& executor)
        : world_(world), schedule_(schedule), options_(options), program_(program), executor_(executor) {}

    /// Collective: the step to begin with. InputError where checkpoints cannot be written, where others are there that
    /// nobody asked to go on from, or where they are of another training.
    int begin();
    /// Collective, between two steps: when it returns, the step will not be lost.
    void after(int step);

private:
    const kernels::Communicator& world_;
    const Schedule& schedule_;
    const Options& options_;
    Program& program_;
    Executor& executor_;
};

/// Whether ranks have states of their own, so that only the same plan goes on from them.
bool goes_its_own_way(const Schedule& schedule);

/// A rank's numbers, one span after the other: what is saved of them, and put there again.
using VisitState = std::function<void(const std::function<void(std::span<float>)>& use)>;

/// The same of ranks that go their own ways: of each rank of the job, servers included, what `visit` shows.
class RankSaver {
public:
    /// Collective over `job`, like what follows.
    RankSaver(const kernels::Communicator& job, const Schedule& schedule, const Options& options, VisitState visit)
        : job_(job), schedule_(schedule), options_(options), visit_(std::move(visit)) {}

    int begin();
    void after(int step);
    /// How many steps there are until after() is to be called again, from `step` on: those that a server serves at
    /// once.
    int steps_from(int step) const;

private:
    RankStates empty() const;
    std::vector<float> own() const;

    const kernels::Communicator& job_;
    const Schedule& schedule_;
    const Options& options_;
    VisitState visit_;
};

}  // namespace rehearse::run
