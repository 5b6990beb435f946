// SPDX-License-Identifier: Apache-2.0
// The parts of a band, against sums by hand. 1.645 standard deviations hold nine of ten.
#include "predict/uncertainty.hpp"

#include <gtest/gtest.h>

#include "predict/prediction.hpp"
#include "prices/prices.hpp"
#include "sim/computation_error.hpp"
#include "tests/sim/fixture.hpp"

namespace rehearse::predict {
namespace {

using namespace sim::test;

/// Of a step of that time.
Uncertainty of(const Machine& machine, const Schedule& schedule, Seconds step) {
    Setup setup{.machine = machine, .conditions = {}, .schedule = schedule, .options = {}};
    setup.framework.error = 0;
    sim::Simulator simulator{setup.schedule, setup.machine};
    return uncertainty_of(setup, simulator, step);
}

/// Two measured kernels of 3 and 4 ms, each 10 % off: 0.3 and 0.4 ms, which together are 0.5 ms.
struct TwoKernels {
    Machine machine = one_device_nodes(1, Star{});
    std::vector<Step> steps{compute_step(machine, "a", Seconds{3e-3}), compute_step(machine, "b", Seconds{4e-3})};
    Schedule schedule = data_schedule(1, steps);
    TwoKernels() {
        for (auto& [name, measured] : machine.classes[0].measured) measured.error = 0.1;
    }
};

TEST(Uncertainty, TakesErrorsOfDifferentMeasurementsAsIndependent) {
    const TwoKernels of_two;
    EXPECT_NEAR(sim::longest_computation(of_two.schedule, of_two.machine, of_two.machine).error, 0.5 / 7, 1e-12);
    EXPECT_NEAR(sim::longest_computation(of_two.schedule, of_two.machine, of_two.machine).time.value, 7e-3, 1e-15);
    const Uncertainty uncertainty = of(of_two.machine, of_two.schedule, Seconds{7e-3});
    EXPECT_NEAR(uncertainty.computation, 1 + 1.645 * 0.5 / 7, 1e-9);
    EXPECT_EQ(uncertainty.messages, 1);
    EXPECT_EQ(uncertainty.runs, 1);
    const StepTime step{Seconds{7e-3}, uncertainty};
    EXPECT_NEAR(step.band().high.value, 7e-3 * (1 + 1.645 * 0.5 / 7), 1e-10);
    EXPECT_NEAR(step.band().low.value, 7e-3 / (1 + 1.645 * 0.5 / 7), 1e-10);
}

// The same samples say how much a step differs from the next; a step that was hardly measured says nothing.
TEST(Uncertainty, TellsTheNoiseOfAStepFromItsKernels) {
    TwoKernels of_two;
    EXPECT_NEAR(sim::measured_noise(of_two.schedule, of_two.machine).value(), 0.5 / 7, 1e-12);
    DeviceClass& device = of_two.machine.classes[0];
    device.measured.erase(to_string(*problem_of(of_two.steps[1])));
    device.peak[DataType::f32] = {FlopRate{1e9}, "test"};
    device.memory_bandwidth = {Bandwidth{1e6}, "test"};
    const double b = price(*problem_of(of_two.steps[1]), device).time.value;
    ASSERT_GT(b, 3e-3);
    EXPECT_EQ(sim::measured_noise(of_two.schedule, of_two.machine), std::nullopt);
}

TEST(Uncertainty, AddsTheBiasInSituToComputationAndNoiseToTheWhole) {
    Machine machine = one_device_nodes(1, Star{});
    const Schedule schedule = data_schedule(1, {compute_step(machine, "a", Seconds{5e-3})});
    machine.in_situ = {0.03, 0.04, "test"};
    const Uncertainty uncertainty = of(machine, schedule, Seconds{5e-3});
    EXPECT_NEAR(uncertainty.computation * uncertainty.runs, (1 + 1.645 * 0.03) * (1 + 1.645 * 0.04), 1e-9);
    EXPECT_NEAR(std::max(uncertainty.computation, uncertainty.runs), 1 + 1.645 * 0.04, 1e-9);
}

// Two messages of half of the elements, and nothing else.
TEST(Uncertainty, OfMessagesIsWhatTheStepTakesWithSlowerOnes) {
    Machine machine = one_device_nodes(2, Star{});
    machine.across = messaging(Seconds{0}, 1, 40.0_GBps);
    machine.across.error = 0.1;
    const Schedule schedule = data_schedule(2, {all_reduce_step(0, 240'000, parse_algorithm("ring"))});
    const Seconds step{2 * (2e-6 + 480e3 / 10e9) + 480e3 / 40e9};
    const Uncertainty uncertainty = of(machine, schedule, step);
    EXPECT_NEAR(uncertainty.messages, 1 + 1.645 * 0.1, 1e-6);
    EXPECT_NEAR(uncertainty.computation, 1, 1e-9);
}

// A step of 5 ms on 262,144 ranks, 3 of which are kernels that are 10 % off: the rest waits for messages.
TEST(Uncertainty, OfVeryManyRanksIsMadeOfTheStepsParts) {
    Machine machine = one_device_nodes(1 << 18, Star{});
    machine.across = messaging(Seconds{0}, 1, 40.0_GBps, 0.2);
    std::vector<Step> steps{compute_step(machine, "a", Seconds{3e-3})};
    for (auto& [name, measured] : machine.classes[0].measured) measured.error = 0.1;
    const Uncertainty uncertainty = of(machine, data_schedule(1 << 18, steps), Seconds{5e-3});
    EXPECT_NEAR(uncertainty.computation, 1 + 1.645 * 0.1 * 3 / 5, 1e-9);
    EXPECT_NEAR(uncertainty.messages, 1 + 1.645 * 0.2 * 2 / 5, 1e-9);
}

}  // namespace
}  // namespace rehearse::predict
