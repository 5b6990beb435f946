// SPDX-License-Identifier: Apache-2.0
// What computation and communication cost each other, and the band of a prediction, against sums by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "fixture.hpp"
#include "sim/band.hpp"
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

// The computation ends while the all-reduce goes on: only the part before counts, s = computation / communication with
// computation = 40 us + s core and communication = alone + s 100 us.
TEST_P(Overlapped, CommunicationThatGoesOnLongerTakesItsShare) {
    Machine machine = pair_that_overlaps();
    machine.across.overlap.core_rate.value = 100.0_GBps;
    const double toll = 2 * (10e-6 + 480e3 / 100e9);
    Step beside = compute_step(machine, "beside", Seconds{40e-6});
    const Schedule schedule =
        data_schedule(2, {std::move(beside), all_reduce_step(0, elements, parse_algorithm("ring"))});
    const Timeline timeline = simulate(schedule, machine, {.mode = GetParam()}).timeline;
    // 100e-6 s^2 + (alone - toll) s - 40e-6 = 0
    const double b = alone - toll, s = (-b + std::sqrt(b * b + 4 * 100e-6 * 40e-6)) / (2 * 100e-6);
    EXPECT_NEAR(length(event(timeline, "beside")), 40e-6 + s * toll, 0.01 * 40e-6);  // it stops after four rounds
    EXPECT_NEAR(length(event(timeline, "bucket0:allreduce")), alone + s * 100e-6, 0.01 * alone);
}

INSTANTIATE_TEST_SUITE_P(Modes, Overlapped, testing::Values(Mode::exact, Mode::folded),
                         [](const auto& mode) { return std::string{to_string(mode.param)}; });

TEST(Band, TakesErrorsOfDifferentMeasurementsAsIndependent) {
    Machine machine = one_device_nodes(1, Star{});
    std::vector<Step> steps{compute_step(machine, "a", Seconds{3e-3}), compute_step(machine, "b", Seconds{4e-3})};
    for (auto& [name, measured] : machine.classes[0].measured) measured.error = 0.1;
    const Schedule schedule = data_schedule(1, steps);
    EXPECT_NEAR(computation_error(schedule, machine), 0.5 / 7, 1e-12);  // 0.3 and 0.4 ms: 0.5 ms
    const Band measured = band(schedule, machine, {}, Seconds{7e-3});
    EXPECT_NEAR(measured.high.value, 7e-3 * (1 + 1.645 * 0.5 / 7), 1e-10);
    EXPECT_NEAR(measured.low.value, 7e-3 / (1 + 1.645 * 0.5 / 7), 1e-10);
}

TEST(Band, AddsTheBiasInSituToComputationAndNoiseToTheWhole) {
    Machine machine = one_device_nodes(1, Star{});
    const Schedule schedule = data_schedule(1, {compute_step(machine, "a", Seconds{5e-3})});
    machine.in_situ = {0.03, 0.04, "test"};
    const Band wide = band(schedule, machine, {}, Seconds{5e-3});
    EXPECT_NEAR(wide.high.value, 5e-3 * (1 + 1.645 * 0.05), 1e-10);
}

TEST(Band, OfMessagesIsWhatTheStepTakesWithSlowerOnes) {
    Machine machine = pair_that_overlaps();
    machine.across.overlap = {};
    machine.across.error = 0.1;
    const Schedule schedule = data_schedule(2, {all_reduce_step(0, elements, parse_algorithm("ring"))});
    const Band messages = band(schedule, machine, {}, Seconds{alone});
    EXPECT_NEAR(messages.high.value, alone * (1 + 1.645 * 0.1), 1e-9);
}

}  // namespace
}  // namespace rehearse::sim
