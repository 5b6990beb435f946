// SPDX-License-Identifier: Apache-2.0
// Trains a network by a plan on all ranks, with its gradients and weights held to those of one rank.
#pragma once

#include <memory>
#include <string_view>

#include "run/trainer.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::test {

inline run::Result train_checked(const Network& network, std::string_view plan, std::int64_t batch, int steps,
                                 Precision precision = Precision::fp32, float loss_scale = 1024) {
    const kernels::Communicator world = kernels::Communicator::world();
    const Schedule schedule = schedule_of(network, plan, world.size(), batch, Optimizer::sgd, precision);
    run::Options options{.steps = steps, .loss_scale = loss_scale, .growth_interval = 2, .check_gradients = true};
    options.single_rank = std::make_shared<const Schedule>(schedule_of(network, "data", 1, micro_batch_size(schedule)));
    return run::train_on(world, schedule, options, {}, {});
}

}  // namespace rehearse::test
