// SPDX-License-Identifier: Apache-2.0
// train on any set of ranks, with a look at every step: for train itself and for tests.
#pragma once

#include <functional>

#include "kernels/comm/communicator.hpp"
#include "run/executor.hpp"
#include "run/train.hpp"

namespace rehearse::run {

using Report = std::function<void(int step, const StepReport& report)>;

/// Collective over `world`. `probe` may be empty. `device`: in place of the one that the options name.
Result train_on(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
                const Report& report, const Probe& probe, kernels::Device* device = nullptr);

/// Of ranks whose learners, or threads without locks, train at the same time (run/pool.hpp). No timeline: their kernels
/// overlap.
Result train_pools(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
                   const Report& report);

Wish wish_of(const Options& options, kernels::Device* device);
Hyperparameters hyperparameters_of(const Options& options);

/// time_own_steps of one rank, at the same time as on the other ranks of `all`.
Timeline time_own_steps_on(const kernels::Communicator& all, const Schedule& schedule, std::int64_t rank,
                           const Options& options, Seconds time);

}  // namespace rehearse::run
