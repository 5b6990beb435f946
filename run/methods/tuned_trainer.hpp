// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/trainer.hpp"

namespace rehearse::run {

/// Trains in phases of some steps, between which learners are added and removed (run/methods/learner_tuner.hpp): with
/// the schedules of Options::by_learners, of which `schedule` is the first. Collective over `world`.
Result train_tuned(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
                   const Report& report);

}  // namespace rehearse::run
