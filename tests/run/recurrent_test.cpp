// SPDX-License-Identifier: Apache-2.0
// Recurrent layers and messages along edges on several ranks: the gradients of one rank.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/models.hpp"
#include "run/trainer.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;

std::vector<const char*> plans_of(std::int64_t ranks) {
    if (ranks == 2) return {"data:zero=2:bucket=10kB", "pipe:microbatches=2", "tensor"};
    if (ranks == 4) return {"data:zero=1", "data=2,tensor=2", "pipe=2:microbatches=2,data=2"};
    return {"data:microbatches=1", "data=4,tensor=2", "pipe=2:microbatches=2,data=2,tensor=2"};
}

void expect_one_ranks_gradients(const char* name, const char* data) {
    const Communicator world = Communicator::world();
    for (const char* plan : plans_of(world.size())) {
        SCOPED_TRACE(std::string(name) + ", " + plan);
        const Network network = models::load_network(name);
        const Schedule schedule = test::schedule_of(network, plan, world.size(), 8);
        Options options{.steps = 2, .check_gradients = true};
        options.data = data;
        options.single_rank =
            std::make_shared<const Schedule>(test::schedule_of(network, "data", 1, micro_batch_size(schedule)));
        const Result result = train_on(world, schedule, options, {}, {});
        EXPECT_GT(result.gradient_tolerance, 0);
        EXPECT_LE(result.gradient_error, result.gradient_tolerance);
        EXPECT_LT(result.gradient_tolerance, 1e-3);
    }
}

TEST(Recurrent, LayersGiveTheGradientsOfOneRank) { expect_one_ranks_gradients("gru-keywords@8", "synthetic"); }

TEST(GraphNetworks, GiveTheGradientsOfOneRank) { expect_one_ranks_gradients("gcn-small", "graphs"); }

}  // namespace
}  // namespace rehearse::run
