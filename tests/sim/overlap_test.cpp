// SPDX-License-Identifier: Apache-2.0
// What computation and communication cost each other against sums by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.hpp"
#include "models/models.hpp"
#include "modes.hpp"
#include "prices/tile_model.hpp"
#include "sim/collective/libraries/library_times.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

constexpr std::int64_t elements = 240'000;  // 960 kB: a ring on two sends 480 kB twice

// 2 us from NIC to NIC and 10 GB/s; beside computation each message out and in takes 10 us and its bytes at 1 GB/s of
// the core, and is 50 us late.
Machine pair_that_overlaps() {
    Machine machine = one_device_nodes(2, Star{});
    machine.across = messaging(Seconds{0}, 1, 40.0_GBps);
    machine.across.overlap = {{10_us, "test"}, {1.0_GBps, "test"}, {50_us, "test"}};
    return machine;
}

constexpr double alone = 2 * (2e-6 + 480e3 / 10e9) + 480e3 / 40e9;
constexpr double core = 2 * (10e-6 + 480e3 / 1e9);

class Overlapped : public testing::TestWithParam<Mode> {
protected:
    static const Event& event(const Timeline& timeline, std::string_view step) {
        for (const Event& each : timeline.events) {
            if (each.step == step && each.rank == 0) return each;
        }
        throw std::runtime_error("no such step");
    }
    static double length(const Event& event) { return (event.end - event.start).value; }
};

TEST_P(Overlapped, CommunicationTakesTheCoreFromComputationBesideIt) {
    Machine machine = pair_that_overlaps();
    Step beside = compute_step(machine, "beside", Seconds{20e-3});
    const Schedule schedule =
        data_schedule(2, {std::move(beside), all_reduce_step(0, elements, parse_algorithm("ring"))});
    const Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
    EXPECT_NEAR(length(event(timeline, "bucket0:allreduce")), alone + 2 * 50e-6, 1e-10);
    EXPECT_NEAR(length(event(timeline, "beside")), 20e-3 + core, 1e-10);
}

TEST_P(Overlapped, CommunicationAfterComputationTakesNothing) {
    Machine machine = pair_that_overlaps();
    Step before = compute_step(machine, "before", Seconds{20e-3});
    const Schedule schedule =
        data_schedule(2, {std::move(before), all_reduce_step(0, elements, parse_algorithm("ring"), {0})});
    const Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
    EXPECT_NEAR(length(event(timeline, "bucket0:allreduce")), alone, 1e-10);
    EXPECT_NEAR(length(event(timeline, "before")), 20e-3, 1e-10);
}

// The computation ends while the all-reduce goes on: it gives the part of the core time that lies beside it. Its length
// c is 40 us + c / alone of the toll.
TEST_P(Overlapped, CommunicationThatGoesOnLongerTakesItsShareOfTheCore) {
    Machine machine = pair_that_overlaps();
    machine.across.overlap.core_rate.value = 100.0_GBps;
    machine.across.overlap.delay.value = Seconds{0};
    const double toll = 2 * (10e-6 + 480e3 / 100e9);
    Step beside = compute_step(machine, "beside", Seconds{40e-6});
    const Schedule schedule =
        data_schedule(2, {std::move(beside), all_reduce_step(0, elements, parse_algorithm("ring"))});
    const Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
    EXPECT_NEAR(length(event(timeline, "beside")), 40e-6 / (1 - toll / alone), 0.01 * 40e-6);  // four rounds
    EXPECT_NEAR(length(event(timeline, "bucket0:allreduce")), alone, 1e-10);
}

// A core that loses nothing, and messages that are late.
Machine pair_that_is_late(Seconds delay) {
    Machine machine = pair_that_overlaps();
    machine.across.overlap = {{Seconds{0}, "test"}, {Bandwidth{1e18}, "test"}, {delay, "test"}};
    return machine;
}

// NCCL's kernel on the eight V100 of a DGX-1: its thread blocks hold as many of a device's 80 processors, and
// computation beside it has the others. c + c s + c s s after two rounds, s = blocks / 80.
TEST_P(Overlapped, LibrariesHoldProcessorsBesideComputation) {
    Machine machine = models::load_machine("dgx1-v100");
    const std::int64_t values = 8'000'000;
    const Call call{CollectiveKind::all_reduce, 0, values, DataType::f32, parse_algorithm("nccl")};
    const Wiring wiring{machine};
    const LibraryPrice price = LibraryCalls{wiring}.price(call, Mesh{{{"data", 8}}});
    const double all = machine.classes.front().tiles->processors.value;
    ASSERT_GT(all, 0);
    ASSERT_GT(price.blocks, 0);
    const double share = static_cast<double>(price.blocks) / all, own = price.time.value / 10;
    const Schedule schedule = data_schedule(
        8, {compute_step(machine, "beside", Seconds{own}), all_reduce_step(0, values, parse_algorithm("nccl"))});
    const Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
    EXPECT_NEAR(length(event(timeline, "bucket0:allreduce")), price.time.value, 1e-9);
    EXPECT_NEAR(length(event(timeline, "beside")), own * (1 + share + share * share), 1e-6 * own);
}

// Whoever waits for a message beside computation gets it when that ends, however long the delay is; the next round is
// on time.
TEST_P(Overlapped, DelaysEndWithTheComputation) {
    Machine machine = pair_that_is_late(5_ms);
    Step beside = compute_step(machine, "beside", 1_ms);
    const Schedule schedule =
        data_schedule(2, {std::move(beside), all_reduce_step(0, elements, parse_algorithm("ring"))});
    const Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
    EXPECT_NEAR(length(event(timeline, "bucket0:allreduce")), 1e-3 + alone / 2, 1e-9);
}

// Both ranks wait for the sum, and compute when they have it.
TEST_P(Overlapped, SumsThatAllWaitForAreOnTimeWhereRanksShareACore) {
    Machine machine = pair_that_is_late(5_ms);
    machine.shared_cores = {{1, {0, 1}, "test"}};
    const Schedule schedule = data_schedule(
        2, {compute_step(machine, "before", 1_ms), all_reduce_step(0, elements, parse_algorithm("ring"), {0}),
            compute_step(machine, "behind", 3_ms, {1})});
    const Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
    EXPECT_NEAR(step_time(timeline).value, 2e-3 + alone + 6e-3, 1e-9);
}

TEST_P(Overlapped, RoundsAfterTheComputationAreOnTime) {
    Machine machine = pair_that_is_late(20_us);
    Step beside = compute_step(machine, "beside", Seconds{alone / 2 + 25e-6});  // the first round, and 5 us
    const Schedule schedule =
        data_schedule(2, {std::move(beside), all_reduce_step(0, elements, parse_algorithm("ring"))});
    const Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
    EXPECT_NEAR(length(event(timeline, "bucket0:allreduce")), alone + 20e-6, 1e-10);
}

constexpr double sent = 2e-6 + 480e3 / 10e9;  // 50 us

RankClass stage(std::string name, std::vector<Step> steps) {
    Part part = part_for(steps);
    return {.name = std::move(name), .part = std::move(part), .steps = std::move(steps)};
}
Step send(std::vector<int> after) {
    return {"send", Stream::send_activations, Send{AxisIndex{0}, 1, Bytes{480e3}}, std::move(after)};
}
Step receive() { return {"receive", Stream::receive_activations, Recv{AxisIndex{0}, -1, Bytes{480e3}}, {}}; }

Schedule stages(std::vector<RankClass> classes) {
    Schedule schedule = data_schedule(std::ssize(classes), {});
    schedule.mesh.axes = {{"pipe", std::ssize(classes)}};
    schedule.class_axes = {0};
    schedule.classes = std::move(classes);
    return schedule;
}

double start_of(const Timeline& timeline, std::string_view step) {
    return std::ranges::find(timeline.events, step, &Event::step)->start.value;
}

// The sender goes on to compute: for long, for 80 us, for less than the message takes anyway.
TEST_P(Overlapped, MessagesAreLateAtBothEndsWhileOneOfThemComputes) {
    for (const auto& [goes_on, late] : {std::pair{20e-3, 50e-6}, std::pair{80e-6, 30e-6}, std::pair{20e-6, 0.0}}) {
        Machine machine = pair_that_is_late(50_us);
        const Schedule schedule = stages({stage("first", {compute_step(machine, "f0", 1_ms), send({0}),
                                                          compute_step(machine, "g0", Seconds{goes_on})}),
                                          stage("last", {receive(), compute_step(machine, "f1", 2_ms, {0})})});
        const Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
        EXPECT_NEAR(start_of(timeline, "f1"), 1e-3 + sent + late, 1e-10) << goes_on;
    }
}

// What waits for the message is no reason for it to be late.
TEST_P(Overlapped, MessagesAreOnTimeWhereOnlyWhatWaitsForThemFollows) {
    Machine machine = pair_that_is_late(50_us);
    const Schedule schedule = stages({stage("first", {compute_step(machine, "f0", 1_ms), send({0})}),
                                      stage("last", {compute_step(machine, "e1", Seconds{1e-3 + sent}), receive(),
                                                     compute_step(machine, "f1", 2_ms, {1})})});
    const Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
    EXPECT_NEAR(start_of(timeline, "f1"), 1e-3 + sent, 1e-10);
}

// Another rank computes on the receiver's core.
TEST_P(Overlapped, MessagesAreLateBesideARankOnTheSameCore) {
    Machine machine = pair_that_is_late(50_us);
    machine.nodes[0].count = 3;
    machine.shared_cores = {{1, {1, 2}, "test"}};
    const Schedule schedule = stages({stage("first", {compute_step(machine, "f0", 1_ms), send({0})}),
                                      stage("middle", {receive(), compute_step(machine, "f1", 2_ms, {0})}),
                                      stage("other", {compute_step(machine, "e2", 20_ms)})});
    const Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
    EXPECT_NEAR(start_of(timeline, "f1"), 1e-3 + sent + 50e-6, 1e-10);
    EXPECT_NEAR(step_time(timeline).value, 22e-3, 1e-10);  // the core is never idle
}

INSTANTIATE_TEST_SUITE_P(Modes, Overlapped, testing::ValuesIn(both_modes), testing::PrintToStringParamName());

}  // namespace
}  // namespace rehearse::sim
