// SPDX-License-Identifier: Apache-2.0
// Trainings held to what their method means, written out for one rank (run/reference).
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <memory>
#include <string_view>
#include <vector>

#include "run/trainer.hpp"
#include "tests/kernels/comm/mpi_main.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {

using kernels::Communicator;

inline Result train_checked(const Network& network, std::string_view plan, std::int64_t batch, int steps,
                            Optimizer optimizer = Optimizer::sgd, Options options = {}) {
    const Communicator world = Communicator::world();
    const Schedule schedule = test::schedule_of(network, plan, world.size(), batch, optimizer);
    options.steps = steps;
    options.check_gradients = true;
    if (options.learning_rate == Options{}.learning_rate) options.learning_rate = default_learning_rate(optimizer);
    options.single_rank =
        std::make_shared<const Schedule>(test::schedule_of(network, "data", 1, micro_batch_size(schedule), optimizer));
    return train_on(world, schedule, options, {}, {});
}

// Adam's first steps are as long where a gradient is rounding as where it is one: what is allowed then is more.
inline void expect_as_written_out(const std::vector<const char*>& plans, Optimizer optimizer = Optimizer::sgd,
                                  const std::vector<Network>& networks = {test::branches(), test::dropping()}) {
    const double most = optimizer == Optimizer::adam ? 0.05 : 1e-3;
    for (const Network& network : networks) {
        for (const char* plan : plans) {
            SCOPED_TRACE(network.name + ", " + plan);
            const Result result = train_checked(network, plan, 6, 3, optimizer);
            EXPECT_LE(result.gradient_error, result.gradient_tolerance);
            EXPECT_LT(result.gradient_tolerance, most);
        }
    }
}

inline std::int64_t ranks() { return Communicator::world().size(); }

}  // namespace rehearse::run
