// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a training that goes on: where it begins, and what it leaves behind after its steps.
#pragma once

#include <filesystem>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/checkpoint.hpp"
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
    Checkpoint checked(Checkpoint state, const std::filesystem::path& file) const;

    const kernels::Communicator& world_;
    const Schedule& schedule_;
    const Options& options_;
    Program& program_;
    Executor& executor_;
};

}  // namespace rehearse::run
