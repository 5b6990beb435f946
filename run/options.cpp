// SPDX-License-Identifier: Apache-2.0
// What options mean to kernels and optimizers.
#include "run/trainer.hpp"

namespace rehearse::run {

KernelSelection selection_of(const Options& options, kernels::Device* device) {
    return {options.backend, options.algorithm, options.scratch_limit, options.tuned, device};
}

Hyperparameters hyperparameters_of(const Options& options) {
    return {.learning_rate = options.learning_rate,
            .momentum = options.momentum,
            .weight_decay = options.weight_decay,
            .second_factor = options.second_factor,
            .epsilon = options.epsilon,
            .loss_scale = options.loss_scale,
            .growth_interval = options.growth_interval};
}

float default_learning_rate(Optimizer optimizer) {
    if (optimizer == Optimizer::adam) return 1e-3F;
    if (optimizer == Optimizer::lamb) return 1e-2F;
    return 0.05F;
}

float default_epsilon(Optimizer optimizer) { return optimizer == Optimizer::lamb ? 1e-6F : 1e-8F; }

}  // namespace rehearse::run
