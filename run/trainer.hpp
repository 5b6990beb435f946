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

KernelSelection selection_of(const Options& options, kernels::Device* device);
Hyperparameters hyperparameters_of(const Options& options);

/// time_compute_only of one rank, at the same time as on the other ranks of `all`.
Timeline time_compute_only_on(const kernels::Communicator& all, const Schedule& schedule, RankIndex rank,
                              const Options& options, Seconds time);

}  // namespace rehearse::run
