// SPDX-License-Identifier: Apache-2.0
// What stages hand on, what that takes, and that the default cut counts it.
#include "schedule/axes/hand_overs.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "schedule/axes/pipe_time.hpp"
#include "schedule/axes/tensor.hpp"
#include "schedule/ways.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

using testing::ElementsAre;

//   input 2x3x3 -> bn -> c -> sum -> flatten -> drop -> f -> loss
//                   `---------^
TEST(HandOvers, AreAllThatIsReadBehindACut) {
    const auto both = [](std::int64_t messages, std::int64_t elements) {
        return HandOver{messages, elements, messages, elements};
    };
    EXPECT_THAT(hand_overs(whole(residual()), {}),
                ElementsAre(HandOver{}, HandOver{1, 18, 0, 0}, both(1, 18), both(2, 36), both(1, 18), both(1, 18),
                            both(1, 18), both(1, 3), HandOver{}));
}

TEST(HandOvers, AreShortestWhereRanksShareThem) {
    EXPECT_EQ(hand_overs(whole(residual()), {"tensor", 2})[3], (HandOver{2, 18, 2, 18}));
}

const PipelineStrategy& strategy_called(std::string_view name) {
    return *std::ranges::find(pipeline_strategies(), name, &PipelineStrategy::name);
}

// m + p - 1 rounds of a forward and a backward pass (Huang et al. 2019).
TEST(PipelineTime, WithoutMessagesIsThatOfTheRounds) {
    for (const char* name : {"gpipe", "1f1b"}) {
        const std::vector<PieceTimes> pieces(3, {.forward = 1, .backward = 2});
        EXPECT_EQ(pipeline_time(strategy_called(name), {.stages = 3, .micro_batches = 5}, pieces), 7 * 3) << name;
    }
}

// Four messages of 3 follow each other while the stages compute for 1 each: the last arrives at 1 + 12, and is computed
// until 14; gradients of 15, 16, ... arrive at 18, 21, 24, 27.
TEST(PipelineTime, GoesAtThePaceOfSlowMessages) {
    const std::vector<PieceTimes> pieces{{1, 1, 3, 3}, {1, 1, 0, 0}};
    EXPECT_EQ(pipeline_time(strategy_called("gpipe"), {.stages = 2, .micro_batches = 4}, pieces), 28);
}

/// Nodes of two devices on a link of 100 GB/s, with a network card of 10 GB/s that the first reaches at 40 GB/s.
Machine pairs() {
    Machine machine;
    NodeKind node = node_of(2, 2);
    node.links = {{0, 1, {Bandwidth{100e9}, "test"}, {Seconds{1e-6}, "test"}},
                  {0, 2, {Bandwidth{40e9}, "test"}, {Seconds{1e-6}, "test"}},
                  {1, 2, {Bandwidth{5e9}, "test"}, {Seconds{1e-6}, "test"}}};
    machine.nodes = {node};
    machine.inside.fraction.value = 1;
    machine.across.fraction.value = 0.5;
    machine.fabric.link.value = Bandwidth{10e9};
    machine.fabric.latency.value = Seconds{3e-6};
    return machine;
}

TEST(Ways, AreAsSlowAsTheirSlowestLink) {
    const Machine machine = pairs();
    const std::vector<Way> ways = ways_of({{{"pipe", 4}}}, {}, false, machine);
    ASSERT_EQ(ways.size(), 4);
    EXPECT_DOUBLE_EQ(ways[0].s_per_byte, 1 / 100e9);
    EXPECT_DOUBLE_EQ(ways[0].start_s, 1e-6);
    EXPECT_DOUBLE_EQ(ways[1].s_per_byte, 1 / 5e9);
    EXPECT_DOUBLE_EQ(ways[1].start_s, 1e-6 + 3e-6 + 1e-6);
    EXPECT_EQ(ways[3].messaging, nullptr) << "the last stage hands nothing on";
}

// Both devices of a node send over its one card: each has half of 5 GB/s.
TEST(Ways, ShareTheNetworkCard) {
    const Machine machine = pairs();
    EXPECT_DOUBLE_EQ(ways_of({{{"pipe", 2}, {"data", 2}}}, {}, false, machine)[0].s_per_byte, 2 / 5e9);
}

// Six products of 4 x 1000 and 1000 x 4 by turns cost as much each, so that three on each stage would be even. But
// then stages hand on a thousand numbers, where behind any other product it is four.
TEST(Cut, IsNotWhereMuchIsHandedOn) {
    Network n{.name = "wide", .layers = {}};
    int at = add(n, "input", Input{{4}}, {});
    for (int i = 0; i < 3; ++i) {
        at = add(n, fmt::format("up{}", i), MatMul{.m = 1, .n = 1000, .k = 4}, {at});
        at = add(n, fmt::format("down{}", i), MatMul{.m = 1, .n = 4, .k = 1000}, {at});
    }
    add(n, "loss", SoftmaxLoss{4}, {at});
    const Schedule schedule = schedule_of(n, "pipe=2:microbatches=4", 2, 4);
    std::string last;
    for (const Layer& layer : schedule.classes[0].part.network.layers) {
        if (!std::holds_alternative<Communication>(layer.op)) last = layer.name;
    }
    EXPECT_THAT(last, testing::StartsWith("down"));
}

}  // namespace
}  // namespace rehearse::schedule
