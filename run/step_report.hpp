// SPDX-License-Identifier: Apache-2.0
// What a step came to, over all ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/executor.hpp"
#include "run/program.hpp"
#include "run/train.hpp"

namespace rehearse::run {

/// Of the step that `executor` has just taken: this rank's loss, seconds, exposed communication, samples, what it has
/// `waited` for them, and its counts of pixels by class, if there are any. As long on every rank.
std::vector<double> figures_of(const Schedule& schedule, RankIndex rank, Program& program, Executor& executor,
                               Seconds waited);

/// Collective: of all ranks' figures.
StepReport reported(const kernels::Communicator& world, const Schedule& schedule, Program& program,
                    const std::vector<double>& own);

/// Of a step of a training whose result has all of them, or the last.
inline void add_step(Result& result, const Options& options, const StepReport& made) {
    if (!options.keep_steps) result.steps.clear();
    result.steps.push_back(made);
}

}  // namespace rehearse::run
