// SPDX-License-Identifier: Apache-2.0
// Ranks that do not simply sum their gradients: models of their own, few bits, servers.
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "schedule/draw.hpp"
#include "schedule/servers.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

// Stich 2019: two updates of each rank's own model, then the mean of all models.
TEST(DataParallel, LocalModelsAreAveragedAfterTheirUpdates) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "data:local=2:first=1B:bucket=1B", 2)),
              "compute: a:forward#0 relu:forward#0 b:forward#0 loss:forward#0"
              " loss:backward_data#0 b:backward_weights#0 b:backward_data#0 relu:backward_data#0 a:backward_weights#0"
              " bucket0:update#0 bucket1:update#0"
              " a:forward#1 relu:forward#1 b:forward#1 loss:forward#1"
              " loss:backward_data#1 b:backward_weights#1 b:backward_data#1 relu:backward_data#1 a:backward_weights#1"
              " bucket0:update#1 bucket1:update#1\n"
              "communication: bucket0:allreduce#1<bucket1:update#1 bucket1:allreduce#1<bucket1:update#1\n");
}

// Zhang et al. 2015: differences as they are before the step, beside it, applied with its first update.
TEST(DataParallel, ElasticDifferencesTravelBesideTheStep) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "data:local=1:elastic=0.5:first=1B:bucket=1B", 2)),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights"
              " bucket0:update<bucket0:allreduce bucket1:update<bucket1:allreduce\n"
              "communication: bucket0:allreduce bucket1:allreduce\n");
}

TEST(DataParallel, CompressedGradientsAreGathered) {
    const Schedule schedule = schedule_of(two_dense(), "data:compress=top(0.25):bucket=1TB:first=1TB", 4);
    for (const Step& step : schedule.classes[0].steps) {
        const auto* gather = std::get_if<Communicate>(&step.action);
        if (gather == nullptr) continue;
        EXPECT_EQ(gather->kind, CollectiveKind::all_gather);
        const auto kept = static_cast<std::int64_t>(std::ceil(0.25 * static_cast<double>(parameters(two_dense()))));
        EXPECT_EQ(gather->elements, 4 * 2 * kept) << "indices and values of four ranks";
    }
}

// Nobody updates but the servers; buckets are shared out by size.
TEST(Servers, GetGradientsAsSoonAsTheyAreThere) {
    const Schedule schedule = schedule_of(two_dense(), "server=2,data=2:first=1B:bucket=1B", 4);
    EXPECT_EQ(draw(schedule),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights\n"
              "send_gradients: bucket0:trade<b:backward_weights bucket1:trade<a:backward_weights\n");
    EXPECT_EQ(ranks(schedule.mesh), 2);
    EXPECT_EQ(all_ranks(schedule), 4);
    EXPECT_EQ(servers_of({{{0}, 5}, {{1}, 9}, {{2}, 3}, {{3}, 4}}, 2), (std::vector<int>{1, 0, 0, 1}));
}

// Kurth et al. 2017: sums in the group, its first rank trades, and hands the weights on.
TEST(Servers, GroupsSumFirst) {
    EXPECT_EQ(draw(schedule_of(two_dense(), "server=1,groups=2,data=3:first=1B:bucket=1B", 7)),
              "compute: a:forward relu:forward b:forward loss:forward"
              " loss:backward_data b:backward_weights b:backward_data relu:backward_data a:backward_weights\n"
              "communication: bucket0:allreduce<b:backward_weights bucket1:allreduce<a:backward_weights"
              " bucket0:broadcast<bucket0:trade bucket1:broadcast<bucket1:trade\n"
              "send_gradients: bucket0:trade<b:backward_weights<bucket0:allreduce"
              " bucket1:trade<a:backward_weights<bucket1:allreduce\n");
}

// Chilimbi et al. 2014: K (M + N) instead of M N.
TEST(Servers, GetVectorsOfDenseLayersWhereTheseAreFewer) {
    Network network = two_dense();
    for (Layer& layer : network.layers) {
        if (auto* dense = std::get_if<MatMul>(&layer.op)) dense->bias = false;
    }
    const auto& wide = std::get<MatMul>(network.layers[1].op);
    const std::int64_t limit = wide.n * wide.k / (wide.n + wide.k);
    EXPECT_TRUE(sends_vectors(wide, limit - 1));
    EXPECT_FALSE(sends_vectors(wide, limit + 1));
    const Schedule schedule = schedule_of(network, "server=1:dense=vectors,data=2", 3, 1);
    int vectors = 0;
    for (const Step& step : schedule.classes[0].steps) {
        if (const auto* compute = std::get_if<Compute>(&step.action)) {
            const bool by_server = sends_vectors(network.layers[static_cast<std::size_t>(compute->layer)].op, 1);
            EXPECT_FALSE(by_server && compute->problem.pass == Pass::backward_weights) << "that is the server's work";
        }
        const auto* trade = std::get_if<Trade>(&step.action);
        if (trade == nullptr || trade->work.size() == 1) continue;
        ++vectors;
        EXPECT_LT(trade->sent, trade->received);
        EXPECT_EQ(trade->work.front().pass, Pass::backward_weights);
    }
    EXPECT_GT(vectors, 0);
}

}  // namespace
}  // namespace rehearse::schedule
