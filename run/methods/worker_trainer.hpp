// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/trainer.hpp"

namespace rehearse::run {

/// Trains where a rank's learners, or threads without locks, work at the same time (run/methods/worker_threads.hpp).
/// Collective over `world`. There is no timeline: their kernels overlap.
Result train_with_threads(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
                          const Report& report);

}  // namespace rehearse::run
