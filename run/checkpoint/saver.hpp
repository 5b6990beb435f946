// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a training that goes on: where it begins, and what it leaves behind after its steps.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/held_folder.hpp"
#include "run/executor.hpp"
#include "run/train.hpp"

namespace rehearse::run {

/// Where a training begins.
struct Beginning {
    std::int64_t step = 0;                           // the first that it makes
    std::int64_t samples = 0;                        // that those before it were made of
    std::shared_ptr<const Checkpoint> checkpoint{};  // that it goes on from, where a reference has to
};

/// Does nothing unless the options ask for checkpoints.
class Saver {
public:
    Saver() = default;
    Saver(const Saver&) = delete;
    Saver& operator=(const Saver&) = delete;
    virtual ~Saver() = default;
    /// Collective: where to begin. InputError where checkpoints cannot be written, where others are there that
    /// nobody asked to go on from, or where they are of another training.
    virtual Beginning begin() = 0;
    /// Collective, between two steps: when it returns, the step will not be lost. `last`: no other one follows.
    virtual void after(int step, bool last) = 0;
};

/// Saves one network's state, whatever the plan is that goes on from it. What it is given outlives it.
class NetworkSaver : public Saver {
public:
    NetworkSaver(const kernels::Communicator& world, const Schedule& schedule, const Options& options, Program& program,
                 Executor& executor)
        : world_(world), schedule_(schedule), options_(options), program_(program), executor_(executor) {}

    Beginning begin() override;
    void after(int step, bool last) override;

private:
    const kernels::Communicator& world_;
    const Schedule& schedule_;
    const Options& options_;
    Program& program_;
    Executor& executor_;
    std::optional<HeldFolder> folder_{};  // of rank 0
    Beginning beginning_;
};

using VisitState = std::function<void(const UseNumbers& use)>;

/// Saves the state of each rank of the job, servers included, as `visit` shows it: only the same plan goes on from it.
class RankSaver : public Saver {
public:
    /// Collective over `job`, like what follows.
    RankSaver(const kernels::Communicator& job, const Schedule& schedule, const Options& options, VisitState visit)
        : job_(job), schedule_(schedule), options_(options), visit_(std::move(visit)) {}

    Beginning begin() override;
    void after(int step, bool last) override;
    /// How many steps there are until after() is to be called again, from `step` on: those that a server serves at
    /// once.
    int steps_from(int step) const;

private:
    RankStates empty() const;
    std::vector<float> own() const;

    const kernels::Communicator& job_;
    const Schedule& schedule_;
    const Options& options_;
    std::optional<HeldFolder> folder_{};  // of the job's rank 0
    VisitState visit_;
};

}  // namespace rehearse::run
