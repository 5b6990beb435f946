// SPDX-License-Identifier: Apache-2.0
#include "sim/network/processor_sharing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "fixture.hpp"
#include "modes.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

TEST(SharedLink, LetsFlowsThatStartTogetherGoTogether) {
    // Three flows of 2 s each on one link: a third each, so all end after 6 s.
    const std::array<std::int32_t, 3> members{0, 1, 2};
    const std::array<double, 3> start{1, 1, 1};
    std::array<double, 3> end{};
    double drained = 0;
    SharedLink{}.pass(members, start, 2, drained, end);
    EXPECT_EQ(end, (std::array<double, 3>{7, 7, 7}));
    EXPECT_EQ(drained, 7);
}

TEST(SharedLink, SharesFromEachFlowsOwnStartOn) {
    // 2 s each; b starts first at 0, a at 1. Until 1, b has half. From then both at half speed: b's other second takes
    // two, so b leaves at 3, when a has 1 of its 2 s; alone it needs one more: 4.
    const std::array<std::int32_t, 2> members{0, 1};
    const std::array<double, 2> start{1, 0};
    std::array<double, 2> end{};
    double drained = 0;
    SharedLink{}.pass(members, start, 2, drained, end);
    EXPECT_EQ(end, (std::array<double, 2>{4, 3}));
    EXPECT_EQ(drained, 4);
}

TEST(SharedLink, RestsBetweenFlowsThatDoNotMeet) {
    const std::array<std::int32_t, 2> members{0, 1};
    const std::array<double, 2> start{0, 5};
    std::array<double, 2> end{};
    double drained = 0;
    SharedLink{}.pass(members, start, 2, drained, end);
    EXPECT_EQ(end, (std::array<double, 2>{2, 7}));
}

TEST(SharedLink, StartsNothingBeforeItIsDrained) {
    const std::array<std::int32_t, 1> members{0};
    const std::array<double, 1> start{0};
    std::array<double, 1> end{};
    double drained = 3;
    SharedLink{}.pass(members, start, 2, drained, end);
    EXPECT_EQ(end[0], 5);
    EXPECT_EQ(drained, 5);
}

TEST(SharedLink, NeverLowersAnEnd) {
    const std::array<std::int32_t, 1> members{0};
    const std::array<double, 1> start{0};
    std::array<double, 1> end{9};
    double drained = 0;
    SharedLink{}.pass(members, start, 2, drained, end);
    EXPECT_EQ(end[0], 9);
    EXPECT_EQ(drained, 2);
}

using namespace test;

class RanksOnCores : public testing::TestWithParam<Mode> {
protected:
    static Timeline simulated(const Schedule& schedule, const Machine& machine) {
        return simulate(schedule, machine, {.mode = GetParam()}).timeline;
    }
    static Machine sharing(std::int64_t nodes, std::vector<SharedCores> shared) {
        Machine machine = one_device_nodes(nodes, Star{});
        machine.shared_cores = std::move(shared);
        return machine;
    }
    static double length(const Timeline& timeline, std::string_view step) {
        const auto event = std::ranges::find(timeline.events, step, &Event::step);
        return (event->end - event->start).value;
    }
};

TEST_P(RanksOnCores, TwoRanksOnOneTakeTwiceAsLong) {
    Machine machine = sharing(2, {{1, {0, 1}, "test"}});
    const Schedule schedule = data_schedule(2, {compute_step(machine, "a", 3_ms)});
    EXPECT_NEAR(step_time(simulated(schedule, machine)).value, 6e-3, 1e-12);
}

TEST_P(RanksOnCores, ThreeRanksOnTwoTakeHalfAsLongAgain) {
    Machine machine = sharing(3, {{2, {0, 1, 2}, "test"}});
    const Schedule schedule = data_schedule(3, {compute_step(machine, "a", 4_ms)});
    EXPECT_NEAR(step_time(simulated(schedule, machine)).value, 6e-3, 1e-12);
}

TEST_P(RanksOnCores, OfRanksOutsideTheJobAreLeftToTheOthers) {
    Machine machine = sharing(4, {{1, {0, 2}, "test"}, {1, {1, 3}, "test"}});
    const Schedule schedule = data_schedule(2, {compute_step(machine, "a", 3_ms)});
    EXPECT_NEAR(step_time(simulated(schedule, machine)).value, 3e-3, 1e-12);
}

// Stages send 1 MB at 10 GB/s, after 2 us. The first one computes 1 ms, sends, and goes on for `more`; the second one
// computes 2 ms when it has received.
Schedule two_stages(Machine& machine, Seconds more) {
    Schedule schedule = data_schedule(2, {});
    schedule.mesh.axes = {{"pipe", 2}};
    schedule.class_axes = {0};
    const auto stage = [&](std::vector<Step> steps) {
        Part part = part_for(steps);
        return RankClass{.name = "stage", .part = std::move(part), .steps = std::move(steps)};
    };
    schedule.classes = {stage({compute_step(machine, "f0", 1_ms),
                               {"send", Stream::send_activations, Send{AxisIndex{0}, 1, 1_MB}, {0}},
                               compute_step(machine, "g0", more)}),
                        stage({{"receive", Stream::receive_activations, Recv{AxisIndex{0}, -1, 1_MB}, {}},
                               compute_step(machine, "f1", 2_ms, {0})})};
    return schedule;
}
constexpr double message = 2e-6 + 1e6 / 10e9;

TEST_P(RanksOnCores, StagesThatComputeInTurnAreNotSlowed) {
    Machine machine = sharing(2, {{1, {0, 1}, "test"}});
    const Timeline timeline = simulated(two_stages(machine, Seconds{message}), machine);
    EXPECT_NEAR(step_time(timeline).value, 1e-3 + message + 2e-3, 1e-12);
}

// From the message's arrival on both compute, each at half the rate, until f1 has ended 4 ms later; g0 then has done
// the message's time and 2 ms. The core is never idle.
TEST_P(RanksOnCores, AreSharedWhileSeveralCompute) {
    Machine machine = sharing(2, {{1, {0, 1}, "test"}});
    const Timeline timeline = simulated(two_stages(machine, 4_ms), machine);
    EXPECT_NEAR(length(timeline, "f0"), 1e-3, 1e-12);
    EXPECT_NEAR(length(timeline, "f1"), 4e-3, 1e-12);
    EXPECT_NEAR(step_time(timeline).value, 7e-3, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Modes, RanksOnCores, testing::ValuesIn(both_modes), testing::PrintToStringParamName());

}  // namespace
}  // namespace rehearse::sim
