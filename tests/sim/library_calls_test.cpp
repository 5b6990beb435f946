// SPDX-License-Identifier: Apache-2.0
// Schedules whose collectives are a library's: both modes agree, the certificate holds, and who lacks it is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/error.hpp"
#include "fixture.hpp"
#include "models/models.hpp"
#include "schedule/plan.hpp"
#include "sim/collective/price.hpp"
#include "sim/simulate.hpp"
#include "tests/sim/times_of_library.hpp"

namespace rehearse::sim {
namespace {

// A schedule's collective is the same, by counting and by messages, however many ask.
TEST(NcclCalls, AreOneStepInBothModes) {
    const Machine machine = models::load_machine("polaris");
    const Mesh mesh{{{"data", 32}}};
    const Call call{.elements = 1 << 24, .algorithm = parse_algorithm("nccl")};
    const Seconds folded = collective_time(call, mesh, machine, Mode::folded);
    EXPECT_EQ(collective_time(call, mesh, machine, Mode::exact), folded);
    const Seconds alone = times("polaris", 8, 4).price(CollectiveKind::all_reduce, Bytes{4.0 * (1 << 24)}).time;
    EXPECT_NEAR(folded / alone, 1, 0.1);
}

TEST(NcclCalls, OfASchedulePassTheCertificateAndAreRefusedBeforeTheyBegin) {
    const Schedule schedule = test::data_schedule(16, {test::all_reduce_step(0, 1 << 22, parse_algorithm("nccl"))});
    for (const char* name : {"polaris", "selene", "eos", "dgx-a100"}) {
        const Machine machine = models::load_machine(name);
        const Timeline exact = simulate(schedule, machine, {.mode = Mode::exact, .links = true}).timeline;
        const Timeline folded = simulate(schedule, machine, {.mode = Mode::folded, .links = true}).timeline;
        EXPECT_NEAR(test::step_time(exact) / test::step_time(folded), 1, 1e-9) << name;
    }
    for (const Mode mode : {Mode::exact, Mode::folded}) {
        EXPECT_THROW(simulate(schedule, models::load_machine("cori-knl"), {.mode = mode}), InputError);
        EXPECT_THROW(simulate(schedule, test::one_device_nodes(16, Star{}), {.mode = mode}), InputError);
    }
}

// What ZeRO sends is the library's, too: each reduce-scatter and all-gather is one step in both modes.
TEST(NcclCalls, OfPiecesPassTheCertificate) {
    const Machine machine = models::load_machine("selene");
    for (const char* plan : {"data:zero=1:allreduce=nccl", "data:zero=2:allreduce=nccl", "data:zero=3:allreduce=nccl",
                             "data:zero=3:allreduce=nccl:algo=tree"}) {
        const Schedule schedule =
            schedule::make_schedule(models::load_network("gpt-h1024-a16-l2-v8192@512"), machine,
                                    schedule::parse_plan(plan), {.devices = 16, .batch_per_device = 1});
        const Timeline exact = simulate(schedule, machine, {.mode = Mode::exact, .links = true}).timeline;
        const Timeline folded = simulate(schedule, machine, {.mode = Mode::folded, .links = true}).timeline;
        EXPECT_NEAR(test::step_time(exact) / test::step_time(folded), 1, 1e-3) << plan;
    }
}

// Of several classes of ranks, whose collectives share links with each other's messages.
TEST(NcclCalls, OfPipelinesPassTheCertificate) {
    const Machine machine = models::load_machine("selene");
    const Schedule schedule =
        schedule::make_schedule(models::load_network("gpt-h1024-a16-l4-v8192@512"), machine,
                                schedule::parse_plan("pipe=2:microbatches=4,data=2:allreduce=nccl,tensor=8"),
                                {.devices = 32, .batch_per_device = 4});
    const Timeline exact = simulate(schedule, machine, {.mode = Mode::exact}).timeline;
    const Timeline folded = simulate(schedule, machine, {.mode = Mode::folded}).timeline;
    // Exact mode's does not meet the messages of others.
    EXPECT_NEAR(test::step_time(exact) / test::step_time(folded), 1, 0.05);
}

// Both ends of the band keep to what links carry there, and lie around the nominal time.
TEST(NcclCalls, PassTheCertificateAtBothEndsOfTheBand) {
    for (const auto& [name, ranks] :
         {std::pair{"abci@chainermn", 4}, {"abci@chainermn", 16}, {"eos", 8}, {"selene", 32}}) {
        const Machine machine = models::load_machine(name);
        const Schedule schedule =
            test::data_schedule(ranks, {test::all_reduce_step(0, 25'000'000, parse_algorithm("nccl"))});
        for (const Mode mode : {Mode::exact, Mode::folded}) {
            const auto step = [&](ZScore z_score) {
                return test::step_time(simulate(schedule, machine, {.mode = mode, .z_score = z_score}).timeline);
            };
            EXPECT_LE(step(low), step(nominal)) << name;
            EXPECT_GT(step(high), step(nominal) * 1.1) << name;
        }
    }
}

// Eight ranks in two stages on nodes of six: those of the first stage share a node, of the others two are on each of
// two nodes, as devices 4 and 5 and as 0 and 1.
TEST(NcclCalls, OfEachStageArePricedAsItsRanksLie) {
    const Machine machine = models::load_machine("summit");
    const Wiring wiring{machine};
    const Mesh mesh{{{"pipe", 2}, {"data", 4}}};
    const Call call{.axis = 1, .elements = 100'000'000, .algorithm = parse_algorithm("nccl")};
    const auto alone = [&](std::int64_t nodes, const std::vector<int>& devices) {
        return LibraryTimes{machine, machine.collectives, 0, nodes, devices}
            .price(call.kind, 4.0 * Bytes{100'000'000})
            .time;
    };
    LibraryCalls of_stages{wiring, [](RankIndex rank) { return rank < 4 ? 0 : 1; }};
    const Seconds first = of_stages.price(call, mesh, RankIndex{0}).time;
    const Seconds second = of_stages.price(call, mesh, RankIndex{5}).time;
    EXPECT_EQ(first, alone(1, {0, 1, 2, 3}));
    EXPECT_GE(second, std::max(alone(2, {4, 5}), alone(2, {0, 1})));
    EXPECT_GT(second, 2.0 * first);
    EXPECT_EQ(LibraryCalls{wiring}.price(call, mesh).time, second) << "all at once: as the slowest";
}

TEST(NcclCalls, AreRefusedWhereAnyOfTheirGroupsLiesUnevenly) {
    const Schedule schedule = schedule::make_schedule(
        models::load_network("alexnet"), models::load_machine("eos"),
        schedule::parse_plan("pipe=2:microbatches=2,data=6:allreduce=nccl"), {.devices = 12, .batch_per_device = 2});
    for (const Mode mode : {Mode::exact, Mode::folded}) {
        EXPECT_THAT([&] { simulate(schedule, models::load_machine("eos"), {.mode = mode}); },
                    testing::ThrowsMessage<InputError>(
                        testing::HasSubstr("along axis 'data' from rank 6 on, 2 are on one node and 4 on another")));
    }
}

// Six ranks on nodes of four: of three groups of two one shares a node, and the others' bytes cross.
TEST(NcclCalls, OfGroupsThatLieUnlikePassTheCertificate) {
    const Machine machine = models::load_machine("perlmutter");
    for (const char* plan : {"data=2:allreduce=nccl:zero=2,tensor=3", "data=2:allreduce=nccl:overlap=off,tensor=3"}) {
        const Schedule schedule =
            schedule::make_schedule(models::load_network("alexnet"), machine, schedule::parse_plan(plan),
                                    {.devices = 6, .batch_per_device = 12, .precision = Precision::mixed});
        const Timeline exact = simulate(schedule, machine, {.mode = Mode::exact}).timeline;
        const Timeline folded = simulate(schedule, machine, {.mode = Mode::folded}).timeline;
        EXPECT_NEAR(test::step_time(exact) / test::step_time(folded), 1, 0.05) << plan;
    }
}

// Gradients of positions are summed along data, all others along data and context: each communicator's kernels would
// have all links of a device.
TEST(NcclCalls, OfTwoCommunicatorsOfADeviceGoOneAfterTheOther) {
    const Machine machine = models::load_machine("perlmutter");
    for (const char* plan : {"data=2:allreduce=nccl:overlap=off,context=2", "data=2:allreduce=nccl:zero=1,context=2",
                             "pipe=2:microbatches=2,data=2:allreduce=nccl:overlap=off,context=2"}) {
        const schedule::Plan read = schedule::parse_plan(plan);
        const Schedule schedule = schedule::make_schedule(models::load_network("bert-large"), machine, read,
                                                          {.devices = axis_index(read.mesh, "pipe") < 0 ? 4 : 8,
                                                           .batch_per_device = 4,
                                                           .precision = Precision::mixed});
        const Timeline exact = simulate(schedule, machine, {.mode = Mode::exact}).timeline;
        const Timeline folded = simulate(schedule, machine, {.mode = Mode::folded}).timeline;
        EXPECT_NEAR(test::step_time(exact) / test::step_time(folded), 1, 0.03) << plan;
    }
}

// Gathers of weights beside the keys that travel round a ring on the same links: the library has what these leave.
TEST(NcclCalls, BesideMessagesOfADeviceHaveWhatTheseLeave) {
    const Machine machine = models::load_machine("perlmutter");
    for (const char* plan : {"data=1:allreduce=nccl:zero=3:microbatches=2:recompute=blocks,context=4:ring=on",
                             "data=1:allreduce=nccl:zero=3,context=4:ring=on"}) {
        const Schedule schedule = schedule::make_schedule(
            models::load_network("gpt-h1600-a25-l8-v4096@1024"), machine, schedule::parse_plan(plan),
            {.devices = 4, .global_batch = 8, .precision = Precision::mixed});
        const Timeline exact = simulate(schedule, machine, {.mode = Mode::exact}).timeline;
        const Timeline folded = simulate(schedule, machine, {.mode = Mode::folded}).timeline;
        EXPECT_NEAR(test::step_time(exact) / test::step_time(folded), 1, 0.05) << plan;
    }
}

TEST(NcclCalls, OfGroupsThatShareNetworkCardsTakeLonger) {
    const Machine machine = models::load_machine("perlmutter");
    const Mesh together{{{"data", 8}, {"tensor", 4}}}, alone{{{"data", 32}}};
    const Call call{.elements = 1 << 26, .algorithm = parse_algorithm("nccl")};
    EXPECT_GT(collective_time(call, together, machine, Mode::folded),
              collective_time(call, alone, machine, Mode::folded) * 3.0);
}

// Of three ranks on nodes of four the second group lies on two nodes, of two none does.
TEST(NcclCalls, PostMessagesTogetherWhereAllGroupsStayInANode) {
    const Machine machine = models::load_machine("perlmutter");
    const Wiring wiring{machine};
    const Algorithm by_pairs = parse_algorithm("pairwise", CollectiveKind::all_to_all);
    EXPECT_TRUE(groups_along({{{"data", 4}, {"expert", 2}}}, 1, by_pairs, wiring).posts_together);
    EXPECT_FALSE(groups_along({{{"data", 2}, {"expert", 3}}}, 1, by_pairs, wiring).posts_together);
}

// A machine by another transport has another name, and the same library.
TEST(NcclCalls, AreOfMachinesByEveryTransport) {
    const Machine machine = models::load_machine("abci@chainermn");
    const Call call{.elements = 1 << 20, .algorithm = parse_algorithm("nccl")};
    EXPECT_GT(collective_time(call, Mesh{{{"data", 8}}}, machine, Mode::folded), Seconds{0});
}

}  // namespace
}  // namespace rehearse::sim
