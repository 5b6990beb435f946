// SPDX-License-Identifier: Apache-2.0
// Which ranks of a class folded mode tells apart, and what that is for: it agrees with exact mode where replicas of a
// pipeline have other ways, and where ranks leave a collective at other times.
#include "sim/modes/kinds.hpp"

#include <gmock/gmock.h>

#include "fixture.hpp"
#include "schedule/plan.hpp"
#include "sim/simulate.hpp"
#include "tests/schedule/random_plans.hpp"

namespace rehearse::sim {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::IsEmpty;

Schedule planned(const Network& network, const Machine& machine, const char* plan, std::int64_t devices,
                 std::int64_t batch) {
    return schedule::make_schedule(network, machine, schedule::parse_plan(plan),
                                   {.devices = devices, .batch_per_device = batch});
}

Schedule planned(const Machine& machine, const char* plan, std::int64_t devices) {
    return planned(rehearse::test::eight_dense(), machine, plan, devices, 4);
}

Kinds kinds(const Machine& machine, const char* plan, std::int64_t devices) {
    const Schedule schedule = planned(machine, plan, devices);
    const Wiring wiring{machine, nominal};
    return kinds_of(Steps{schedule, wiring, nominal}, wiring);
}

double folded_to_exact(const Schedule& schedule, const Machine& machine) {
    const auto step = [&](Mode mode) { return step_time(simulate(schedule, machine, {.mode = mode}).timeline).value; };
    return step(Mode::folded) / step(Mode::exact);
}

TEST(Kinds, AreReplicasThatCrossNodesBetweenTheSameStages) {
    // Nodes of four: replicas 0 to 2, 3 | 4 5, 6 7 | 8, and 9 to 11, which is as the first.
    const Kinds of = kinds(four_device_nodes(3), "data=4,pipe=3:microbatches=4", 12);
    EXPECT_THAT(of.rank_class, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 2));
    ASSERT_EQ(of.ranks.size(), 9U);
    EXPECT_THAT(of.ranks[0], ElementsAre(RankIndex{0}, RankIndex{9}));
    EXPECT_THAT(of.ranks[1], ElementsAre(RankIndex{3}));
    EXPECT_THAT(of.ranks[5], ElementsAre(RankIndex{7}));
    EXPECT_THAT(of.ranks[6], ElementsAre(RankIndex{2}, RankIndex{11}));
    EXPECT_THAT(of.of_rank, ElementsAre(0, 3, 6, 1, 4, 7, 2, 5, 8, 0, 3, 6));
}

TEST(Kinds, AreNoMoreWhereTheJobIsLarger) {
    EXPECT_EQ(kinds(four_device_nodes(96), "data=128,pipe=3:microbatches=4", 384).rank_class.size(), 9U);
}

TEST(Kinds, AreClassesWhereAllReplicasAreAlike) {
    const Machine machine = four_device_nodes(4);
    for (const char* plan : {"data=4,pipe=4:microbatches=4", "pipe=4:microbatches=4,data=4", "data"}) {
        const Kinds of = kinds(machine, plan, 16);
        EXPECT_EQ(of.rank_class.size(), planned(machine, plan, 16).classes.size()) << plan;
        EXPECT_THAT(of.ranks, IsEmpty()) << plan;
    }
}

// A way that crosses nodes costs 0.3 us of a step of some milliseconds more than one that does not.
TEST(Kinds, AreClassesWhereMessagesAreSmallBesideComputation) {
    Machine machine = four_device_nodes(3);
    machine.classes[0].launch.value = 1_ms;
    EXPECT_THAT(kinds(machine, "data=4,pipe=3:microbatches=4", 12).ranks, IsEmpty());
}

Network tower(std::int64_t width) {
    Network network{.name = "tower", .layers = {{"input", Input{{width}}, {}, {width}}}};
    for (int i = 0; i < 8; ++i) {
        const MatMul dense{.m = 1, .n = width, .k = width, .bias = false};
        network.layers.push_back({fmt::format("dense{}", i), dense, {i}, {width}});
    }
    network.layers.push_back({"loss", SoftmaxLoss{width}, {8}, {1}});
    return network;
}

struct UnlikeReplicas {
    const char* plan;
    std::int64_t devices;
    double apart;  // of layers of 1,024
};

TEST(Kinds, OfReplicasWithOtherWaysMakeFoldedModeAgree) {
    const Machine machine = four_device_nodes(6);
    // Long sums of the second's stages meet on network cards in rounds, which folded mode takes for one flow.
    for (const auto& [plan, devices, apart] : {UnlikeReplicas{"data=3,pipe=3:microbatches=3", 9, 0.005},
                                               {"pipe=4:microbatches=4,data=3", 12, 0.015},
                                               {"data=3,pipe=4:schedule=interleaved:microbatches=4", 12, 0.005},
                                               {"data=3,pipe=2:microbatches=4,tensor=2", 12, 0.005}}) {
        const double narrow = folded_to_exact(planned(tower(16), machine, plan, devices, 12), machine);
        const double wide = folded_to_exact(planned(tower(1024), machine, plan, devices, 12), machine);
        EXPECT_NEAR(narrow, 1, 0.005) << plan;
        EXPECT_NEAR(wide, 1, apart) << plan;
    }
}

// Recursive doubling over three ranks ends on the last of them two rounds after the others, which begin their next sum,
// along the other axis, before it.
TEST(OneKind, IsFollowedRankByRankFromOneAxisToAnother) {
    const Network network = rehearse::test::tiny_transformer(models::TransformerKind::decoder);
    const Machine machine = four_device_nodes(6);
    const Schedule schedule = planned(network, machine, "data=2,tensor=3:allreduce=doubling", 6, 1);
    EXPECT_NEAR(folded_to_exact(schedule, machine), 1, 0.005);
}

}  // namespace
}  // namespace rehearse::sim
