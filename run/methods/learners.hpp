// SPDX-License-Identifier: Apache-2.0
// Several learners on one device, a stream each (Koliousis et al. 2019, Crossbow): a small batch leaves most of a GPU
// idle, which another learner's kernels fill. Each has weights of its own; gradients are summed on the device at the
// end of the step, so that they learn what as many ranks with a device each would.
#pragma once

#include "run/trainer.hpp"

namespace rehearse::run {

/// InputError for a schedule that does anything but compute, sum gradients and update, and for an option that goes by
/// ranks or by what is left of them (checkpoints, saved weights, check_gradients, a loss to come to, loss scaling).
void check_learners(const Schedule& schedule, const Options& options);

/// `schedule` is one of data parallelism for as many ranks as there are learners; all of them are played here. The
/// timeline of the result is empty: kernels of several streams overlap. InputError as check_learners.
Result train_learners(const Schedule& schedule, const Options& options, const Report& report, kernels::Device& device);

}  // namespace rehearse::run
