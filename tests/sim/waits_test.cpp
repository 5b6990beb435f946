// SPDX-License-Identifier: Apache-2.0
// Where the time of a step goes: computing, waiting for communication, for another stage, for samples.
#include "core/waits.hpp"

#include <gtest/gtest.h>

#include <string>

#include "fixture.hpp"
#include "schedule/input.hpp"
#include "schedule/plan.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

constexpr std::array both_modes{Mode::exact, Mode::folded};

/// A pipeline made by hand: each stage takes 1 ms forward and 2 ms backward for a micro-batch, and sends 10 MB on after
/// each. 1F1B: stage s goes p - 1 - s micro-batches ahead.
Schedule pipeline(Machine& machine, int stages, int micro_batches) {
    Schedule schedule;
    schedule.plan = "pipe";
    schedule.mesh.axes = {{"pipe", stages}};
    schedule.network.name = "by-hand";
    schedule.class_axes = {0};
    schedule.micro_batches = micro_batches;
    for (int s = 0; s < stages; ++s) {
        std::vector<Step> steps;
        const auto add = [&](Step step) {
            steps.push_back(std::move(step));
            return static_cast<int>(steps.size()) - 1;
        };
        const auto forward = [&](int m) {
            std::vector<int> after;
            if (s > 0) {
                after = {add({fmt::format("f{}:receive", m),
                              Stream::receive_activations,
                              Recv{AxisIndex{0}, -1, 10_MB, LayerIndex{}, m},
                              {}})};
            }
            const int done = add(compute_step(machine, fmt::format("f{}", m), 1_ms, after));
            if (s + 1 < stages) {
                add({fmt::format("f{}:send", m),
                     Stream::send_activations,
                     Send{AxisIndex{0}, 1, 10_MB, LayerIndex{}, m},
                     {done}});
            }
        };
        const auto backward = [&](int m) {
            std::vector<int> after;
            if (s + 1 < stages) {
                after = {add({fmt::format("b{}:receive", m),
                              Stream::receive_gradients,
                              Recv{AxisIndex{0}, 1, 10_MB, LayerIndex{}, m},
                              {}})};
            }
            const int done = add(compute_step(machine, fmt::format("b{}", m), 2_ms, after));
            if (s > 0)
                add({fmt::format("b{}:send", m),
                     Stream::send_gradients,
                     Send{AxisIndex{0}, -1, 10_MB, LayerIndex{}, m},
                     {done}});
        };
        const int ahead = std::min(stages - 1 - s, micro_batches);
        for (int m = 0; m < ahead; ++m) forward(m);
        for (int m = 0; m < micro_batches; ++m) {
            if (ahead + m < micro_batches) forward(ahead + m);
            backward(m);
        }
        schedule.classes.push_back({.name = fmt::format("stage{}", s), .part = part_for(steps), .steps = steps});
    }
    return schedule;
}

Machine free_messages() {
    Machine machine = one_device_nodes(16, Star{});
    machine.fabric.link.value = Bandwidth{1e18};
    machine.fabric.latency.value = machine.fabric.hop_latency.value = 0_s;
    machine.nodes[0].links = {node_link(0, 1, Bandwidth{1e18})};
    return machine;
}

double sum_of(const Summary& s) { return (s.compute + s.exposed_comm + s.bubble + s.io_wait + s.rest).value; }

// (p - 1) micro-batches of the step's m + p - 1 (Narayanan et al. 2021), when messages cost nothing.
TEST(Bubble, IsWhatTheOrderForces) {
    for (const int p : {2, 3, 4, 8}) {
        for (const int m : {1, 2, 5, 8}) {
            for (const Mode mode : both_modes) {
                Machine machine = free_messages();
                const Schedule schedule = pipeline(machine, p, m);
                const Summary s = summarize(schedule, simulate(schedule, machine, {.mode = mode}).timeline);
                EXPECT_NEAR(s.step.value, 3e-3 * (m + p - 1), 1e-9);
                EXPECT_NEAR(s.bubble / s.step, (p - 1.0) / (m + p - 1), 1e-6) << p << " " << m;
                EXPECT_NEAR(s.exposed_comm.value, 0, 1e-9) << p << " " << m;
                EXPECT_NEAR(s.rest.value, 0, 1e-9);
            }
        }
    }
}

// A message of 10 MB over 10 GB/s and 2 us takes 1.002 ms. Four stages, one micro-batch: there and back 3 stages
// compute for 3 ms each, and 6 messages go; the first stage waits for all of it.
TEST(Bubble, LeavesTheMessagesToCommunication) {
    for (const Mode mode : both_modes) {
        Machine machine = one_device_nodes(4, Star{});
        const Schedule schedule = pipeline(machine, 4, 1);
        const Summary s = summarize(schedule, simulate(schedule, machine, {.mode = mode}).timeline);
        EXPECT_NEAR(s.compute.value, 3e-3, 1e-9);
        EXPECT_NEAR(s.bubble.value, 9e-3, 1e-9) << to_string(mode);
        EXPECT_NEAR(s.exposed_comm.value, 6 * 1.002e-3, 1e-8) << to_string(mode);
        EXPECT_NEAR(sum_of(s), s.step.value, 1e-12);
    }
}

Network tower() {
    Network network{.name = "tower", .layers = {{"input", Input{{512}}, {}, {512}}}};
    for (int i = 0; i < 8; ++i) {
        network.layers.push_back(
            {fmt::format("dense{}", i), MatMul{.m = 1, .n = 512, .k = 512, .bias = false}, {i}, {512}});
    }
    network.layers.push_back({"loss", SoftmaxLoss{512}, {8}, {1}});
    return network;
}

Summary summary_of(const Machine& machine, const std::string& plan, Mode mode, int iterations = 1) {
    const Schedule schedule =
        make_schedule(tower(), machine, schedule::parse_plan(plan), {.devices = 16, .batch_per_device = 16});
    return summarize(schedule, simulate(schedule, machine, {.mode = mode, .iterations = iterations}).timeline);
}

TEST(Bubble, OfOneStageIsNoneHoweverSlowItsLinks) {
    Machine machine = four_device_nodes(4);
    machine.fabric.link.value = 0.1_GBps;
    for (const char* plan : {"data", "data:overlap=off", "data:zero=3", "data=4,tensor=4", "tensor=16"}) {
        for (const Mode mode : both_modes) {
            const Summary s = summary_of(machine, plan, mode);
            EXPECT_EQ(s.bubble.value, 0) << plan;
            EXPECT_GT(s.exposed_comm, 0.5 * s.step) << plan;
        }
    }
}

TEST(Parts, OfAStepAddUpToIt) {
    const Machine machine = four_device_nodes(4);
    for (const char* first : {"", "pipe=2:microbatches=4,", "pipe=4:schedule=gpipe:microbatches=8,",
                              "pipe=2:schedule=interleaved:microbatches=4,"}) {
        for (const char* second :
             {"data", "data:overlap=off", "data:zero=1", "data:zero=2", "data:zero=3", "data:lag=1"}) {
            for (const char* third : {"", ",tensor=2"}) {
                for (const Mode mode : both_modes) {
                    const std::string plan = fmt::format("{}{}{}", first, second, third);
                    const Summary s = summary_of(machine, plan, mode);
                    EXPECT_NEAR(sum_of(s) / s.step.value, 1, 1e-9) << plan;
                    EXPECT_NEAR(s.rest / s.step, 0, 1e-9) << plan << " " << to_string(mode);
                    EXPECT_GE(std::min({s.compute, s.exposed_comm, s.bubble, s.io_wait}).value, 0) << plan;
                    if (std::string_view{first}.empty()) {
                        EXPECT_EQ(s.bubble.value, 0) << plan;
                    }
                    // A rank that ended the step before later than others begins later: that is the rest.
                    const Summary third_step = summary_of(machine, plan, mode, 3);
                    EXPECT_NEAR(sum_of(third_step) / third_step.step.value, 1, 1e-9) << plan;
                }
            }
        }
    }
}

// The first stage loads while it waits for the last one anyway: that is no waiting for samples.
TEST(Parts, WaitForSamplesOnlyWhereNothingElseIsWaitedFor) {
    Machine machine = free_messages();
    machine.storage = {{"disk", {1.0_GBps, "test"}, true}};
    for (const double megabytes : {1.0, 100.0}) {
        Schedule schedule = pipeline(machine, 2, 1);
        schedule.classes[0].steps.push_back({"load:disk", Stream::io, Load{"disk", Bytes{megabytes * 1e6}}, {}});
        const Summary s = summarize(schedule, simulate(schedule, machine, {}).timeline);
        // 1 ms forward, 3 ms of the other stage, 2 ms backward; 100 MB at 1 GB/s take 100 ms from the beginning on.
        EXPECT_NEAR(s.io_wait.value, megabytes > 10 ? 94e-3 : 0, 1e-9);
        EXPECT_NEAR(s.bubble.value, 3e-3, 1e-9);
    }
}

}  // namespace
}  // namespace rehearse::sim
