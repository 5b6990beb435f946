// SPDX-License-Identifier: Apache-2.0
// Collectives of different groups of ranks go at the same time, each on its communicator's stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/index.hpp"
#include "fixture.hpp"
#include "models/models.hpp"
#include "schedule/plan.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

constexpr std::array both_modes{Mode::exact, Mode::folded};

/// Two nodes of four devices: along `tensor` the devices of a node, along `data` those at the same place of both. A
/// rank sends `inside` numbers to its node's others and `across` numbers to the other node, at the same time.
Schedule two_sums(std::int64_t inside, std::int64_t across) {
    Schedule schedule;
    schedule.plan = "data=2,tensor=4";
    schedule.mesh.axes = {{"data", 2}, {"tensor", 4}};
    schedule.network.name = "by-hand";
    std::vector<Step> steps{all_reduce_step(0, inside, {"ring"}), all_reduce_step(1, across, {"ring"})};
    for (const int bucket : {0, 1}) {
        const int axis = 1 - bucket;
        std::get<Communicate>(steps[rehearse::at(static_cast<std::int64_t>(bucket))].action).axis = AxisIndex{axis};
        steps[rehearse::at(static_cast<std::int64_t>(bucket))].stream = communicator_stream(schedule.mesh, axis);
    }
    Part part = part_for(steps);
    schedule.classes.push_back({.name = "all", .part = std::move(part), .steps = std::move(steps)});
    return schedule;
}

Seconds end_of(const Timeline& timeline, const std::string& step) {
    Seconds end;
    for (const Event& event : timeline.events) end = event.step == step ? std::max(end, event.end) : end;
    return end;
}

// A ring of four devices and one of two nodes meet on the devices' links to the node's switch. Inside: 6
// rounds of 100 MB over 50 GB/s, 12 ms. Across: 2 rounds in which four devices send 50 MB each through one NIC of 10
// GB/s, 20 ms a round, 2.5 GB/s for each. Side by side the inner ring has what the outer one leaves of a device's link,
// 47.5 GB/s: 12 ms * 50 / 47.5 = 12.632 ms.
TEST(Communicators, ShareTheLinksThatTheyBothUse) {
    Machine machine = four_device_nodes(2);
    machine.inside = machine.across = messaging(0_s);
    for (NodeLink& link : machine.nodes[0].links) link.latency.value = 0_s;
    machine.fabric.latency.value = machine.fabric.hop_latency.value = 0_s;
    const Schedule schedule = two_sums(100'000'000, 25'000'000);
    for (const Mode mode : both_modes) {
        const Timeline timeline = simulate(schedule, machine, {.mode = mode}).timeline;
        EXPECT_NEAR(end_of(timeline, "bucket0:allreduce").value, 12e-3 * 50 / 47.5, 1e-7) << to_string(mode);
        EXPECT_NEAR(end_of(timeline, "bucket1:allreduce").value, 40e-3, 1e-7) << to_string(mode);
    }
}

struct Case {
    std::string plan;
    std::int64_t devices = 16;
};

/// Pipelines, copies, shares of layers, and how each is scheduled and kept.
std::vector<Case> plans_to_try() {
    std::vector<Case> cases;
    for (const int pipe : {1, 2, 4}) {
        for (const int tensor : {1, 2, 4}) {
            for (const int zero : {0, 1, 2}) {
                for (const char* schedule : {"1f1b", "gpipe", "interleaved"}) {
                    const int data = 16 / pipe / tensor;
                    if (data == 1 || (pipe == 1 && schedule != std::string_view{"1f1b"})) continue;
                    std::string plan;
                    if (pipe > 1) plan = fmt::format("pipe={}:schedule={}:microbatches=4,", pipe, schedule);
                    plan += fmt::format("data={}:zero={}{{}}", data, zero);
                    if (tensor > 1) plan += fmt::format(",tensor={}", tensor);
                    cases.push_back({plan});
                }
            }
        }
    }
    return cases;
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

// Sums of gradients that begin earlier are in the way of other messages on links that both use, and nowhere else. With
// one device a node a rank's messages share its NIC, which has as much to carry either way. Where the devices of a node
// share a NIC, the sums of one stage may slow down what another stage waits for: that costs less than half a percent.
TEST(Communicators, OverlapIsNoSlowerThanNoneBeyondWhatSharedLinksTake) {
    const Network network = tower();
    for (const bool shared : {true, false}) {
        const Machine machine = shared ? four_device_nodes(4) : one_device_nodes(16, Star{});
        for (const Case& each : plans_to_try()) {
            for (const std::int64_t batch : {16, 256}) {
                for (const Mode mode : both_modes) {
                    const auto simulated = [&](const char* word) {
                        const Schedule schedule = make_schedule(
                            network, machine, schedule::parse_plan(fmt::format(fmt::runtime(each.plan), word)),
                            {.devices = each.devices, .batch_per_device = batch});
                        return step_time(simulate(schedule, machine, {.mode = mode}).timeline);
                    };
                    const double longer = simulated(":overlap=on") / simulated(":overlap=off") - 1;
                    EXPECT_LE(longer, shared ? 0.005 : 1e-9)
                        << each.plan << " batch " << batch << " " << to_string(mode);
                }
            }
        }
    }
}

// The largest of Megatron's runs, whose sums of gradients once stood in the way of the sums of its layers.
TEST(Communicators, LetGpt3OverlapItsSums) {
    const Machine machine = models::load_machine("selene");
    const Network network = models::load_network("gpt3-175b");
    const auto simulated = [&](const char* word) {
        const std::string plan =
            fmt::format("pipe=16:schedule=interleaved:microbatches=96,data=8:overlap={},tensor=8:sequence=on", word);
        const Schedule schedule = make_schedule(
            network, machine, schedule::parse_plan(plan),
            {.devices = 1024, .batch_per_device = 96, .precision = Precision::mixed, .optimizer = Optimizer::adam});
        return step_time(simulate(schedule, machine, {.mode = Mode::folded}).timeline);
    };
    EXPECT_LE(simulated("on"), simulated("off"));
}

}  // namespace
}  // namespace rehearse::sim
