// SPDX-License-Identifier: Apache-2.0
// Samples that are read beside a step, or stacked and copied before it, by what can be counted by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "fixture.hpp"
#include "models/models.hpp"
#include "schedule/input.hpp"
#include "schedule/plan.hpp"
#include "sim/host/loader.hpp"
#include "sim/network/storage.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

/// Samples of a step are read while the step before is computed: only what takes longer shows, on every rank alike.
TEST(Input, WaitsOnlyForWhatComputingDoesNotHide) {
    Machine machine = four_device_nodes(4);
    machine.storage = {{"disk", {10.0_GBps, "test"}, true}};
    for (const char* plan : {"data", "pipe=2,data"}) {
        const auto summary = [&](Bytes sample) {
            Schedule schedule =
                schedule::make_schedule(models::load_network("resnet50"), machine, schedule::parse_plan(plan),
                                        {.devices = 16, .batch_per_device = 32});
            if (sample > Bytes{}) schedule::add_input(schedule, {"disk", sample});
            return summarize(simulate(schedule, machine, {.mode = Mode::folded}).timeline);
        };
        const Summary without = summary(0_MB);
        EXPECT_EQ(without.io_wait.value, 0) << plan;
        EXPECT_EQ(summary(100_kB).step, without.step) << plan;
        // Four devices of a node share 10 GB/s, each reads 32 samples; of a pipeline, those of the first stage's nodes.
        const Summary much = summary(1000_MB);
        EXPECT_NEAR(much.step.value, 32 * 1e9 / 2.5e9, 1e-9) << plan;
        EXPECT_GT(much.io_wait.value, 0) << plan;
    }
    const Network network = models::load_network("resnet50");
    EXPECT_EQ(schedule::sample_size(network).value, 3 * 224 * 224 * 4);
}

/// Each rank reads its block of an image, as `run` does (Oyama et al. 2020): all of them together the batch, once.
TEST(Input, OfImagesThatRanksShareIsReadOnce) {
    Machine machine = four_device_nodes(1);
    machine.storage = {{"disk", {10.0_GBps, "test"}, true}};
    for (const char* plan : {"data=4", "data=2,spatial=2", "data=1,spatial=2x2", "data=2,tensor=2"}) {
        Schedule schedule = schedule::make_schedule(models::load_network("cosmoflow"), machine,
                                                    schedule::parse_plan(plan), {.devices = 4, .global_batch = 4});
        schedule::add_input(schedule, {"disk", 1_GB});
        double read = 0;
        for (RankIndex rank{0}; rank < 4; ++rank) {
            for (const Step& step : schedule.classes[static_cast<std::size_t>(class_of(schedule, rank))].steps) {
                if (const auto* load = std::get_if<Load>(&step.action)) read += load->bytes.value;
            }
        }
        EXPECT_EQ(read, 4e9) << plan;
    }
}

/// Each device reads 32 samples of 1 GB from a shared tier, as fast as that is, or one client of it, or its node's NIC
/// of 10 GB/s for four devices, or the tree above its switch.
TEST(Input, OfASharedTierComesThroughTheNicsOfTheNode) {
    const auto step = [](std::int64_t nodes, Bandwidth tier, Bandwidth client, Topology topology, Mode mode) {
        Machine machine = four_device_nodes(4);
        machine.fabric.topology = std::move(topology);
        machine.storage = {{"shared", {tier, "test"}, false}};
        if (client > Bandwidth{}) machine.storage[0].client = {client, "test"};
        Schedule schedule =
            schedule::make_schedule(models::load_network("resnet50"), machine, schedule::parse_plan("data"),
                                    {.devices = 4 * nodes, .batch_per_device = 32});
        schedule::add_input(schedule, {"shared", 1_GB});
        const Prediction prediction = simulate(schedule, machine, {.mode = mode});
        EXPECT_GE(prediction.bounds.wire, 4.0 * static_cast<double>(nodes) * 32.0_GB / tier);
        return summarize(prediction.timeline).step.value;
    };
    const FatTree tapered{{2, 2}, {4, 1}};  // 2 x 10 / 4 GB/s above a switch
    for (const Mode mode : {Mode::folded, Mode::exact}) {
        EXPECT_NEAR(step(1, 1000.0_GBps, {}, Star{}, mode), 4 * 32 / 10.0, 1e-9);
        EXPECT_NEAR(step(4, 1000.0_GBps, {}, Star{}, mode), 4 * 32 / 10.0, 1e-9);
        EXPECT_NEAR(step(4, 1000.0_GBps, 5.0_GBps, Star{}, mode), 4 * 32 / 5.0, 1e-9);
        EXPECT_NEAR(step(4, 16.0_GBps, 5.0_GBps, Star{}, mode), 16 * 32 / 16.0, 1e-9);
        EXPECT_NEAR(step(4, 1000.0_GBps, {}, tapered, mode), 8 * 32 / 5.0, 1e-9);
    }
}

/// A process that makes its own batches does nothing else meanwhile, so that a step takes as much longer.
TEST(Input, OfALoaderInTheTrainingProcessIsNotHidden) {
    const Machine machine = four_device_nodes(4);  // gpu0 to gpu3, each with a link to its processor
    const double batch = 32.0 * 3 * 224 * 224 * 4;
    const auto summary = [&](const char* plan, const Loader* loader, Mode mode, Bytes read) {
        Machine with = machine;
        with.storage = {{"disk", {10.0_GBps, "test"}, true}};
        Schedule schedule = schedule::make_schedule(models::load_network("resnet50"), with, schedule::parse_plan(plan),
                                                    {.devices = 16, .batch_per_device = 32});
        if (loader != nullptr) {
            const schedule::InputData input{read > Bytes{} ? "disk" : "", read};
            schedule::add_inline_input(schedule, input, loader_tiers(with, *loader, 16));
            with = with_loader(with, *loader, schedule);
        }
        return summarize(simulate(schedule, with, {.mode = mode}).timeline);
    };
    const Loader off{.stack = 4.0_GBps, .copy = Bandwidth{0}}, both{.stack = 4.0_GBps, .copy = 8.0_GBps};
    for (const Mode mode : {Mode::folded, Mode::exact}) {
        const Seconds without = summary("data", nullptr, mode, {}).step;
        // Each of a node's four processes has a core of its own, whatever the others do.
        EXPECT_NEAR((summary("data", &off, mode, {}).step - without).value, batch / 4e9, 1e-9);
        const Summary copied = summary("data", &both, mode, {});
        EXPECT_NEAR((copied.step - without).value, batch / 4e9 + batch / 8e9, 1e-9);
        EXPECT_NEAR(copied.io_wait.value, batch / 4e9 + batch / 8e9, 1e-9);
        // Reading comes on top: a quarter of the disk each.
        EXPECT_NEAR((summary("data", &off, mode, 100_kB).step - without).value, batch / 4e9 + 3.2e6 / 2.5e9, 1e-9);
    }
    // Of a pipeline, only the first stage has samples; what it waits for all others do.
    const Seconds alone = summary("pipe=4,data", nullptr, Mode::exact, {}).step;
    EXPECT_NEAR((summary("pipe=4,data", &off, Mode::exact, {}).step - alone).value, batch / 4e9, 1e-9);
}

/// Without a rate: what pageable memory reaches of the narrowest link to the processor, or an even share of one.
TEST(Input, IsCopiedOverTheLinksOfTheDevice) {
    Machine machine;
    machine.name = "switched";
    machine.classes.emplace_back();
    NodeKind node{.name = "server", .count = 2, .vertices = {}, .links = {}};
    for (int i = 0; i < 4; ++i) node.vertices.push_back({fmt::format("gpu{}", i), VertexKind::device, 0});
    node.vertices.push_back({"a", VertexKind::bridge, -1, BridgeKind::nvlink});
    node.vertices.push_back({"b", VertexKind::bridge, -1, BridgeKind::pcie});
    node.vertices.push_back({"c", VertexKind::bridge, -1, BridgeKind::processor});
    for (int i = 0; i < 4; ++i) {
        node.links.push_back(node_link(i, 4, 150.0_GBps, 0_s));
        node.links.push_back(node_link(i, 5, 16.0_GBps, 0_s));
    }
    node.links.push_back(node_link(5, 6, 16.0_GBps, 0_s));
    machine.nodes.push_back(node);
    Schedule schedule;
    schedule.classes.emplace_back();
    schedule.classes[0].steps = {{"load", Stream::io, Load{std::string{stacking}, 1_MB}, {}},
                                 {"copy", Stream::io, Load{std::string{to_device}, 1_MB}, {0}}};
    const auto rate_of_each = [&](std::int64_t devices) {
        schedule.mesh.axes = {{"data", devices}};
        const Machine with = with_loader(machine, {}, schedule);
        const auto sharing = static_cast<double>(std::min<std::int64_t>(devices, 4));
        EXPECT_DOUBLE_EQ(storage_tier(with, std::string{stacking}).read.value.value, 6e9 * sharing);
        return storage_tier(with, std::string{to_device}).read.value.value / sharing;
    };
    EXPECT_DOUBLE_EQ(rate_of_each(1), pageable * 16e9);
    EXPECT_DOUBLE_EQ(rate_of_each(3), pageable * 16e9);  // three thirds of the switch's link
    EXPECT_DOUBLE_EQ(rate_of_each(8), 4e9);              // both nodes: four on a link of 16
    EXPECT_THAT(loader_tiers(machine, {}, 8), testing::ElementsAre("stacking", "to-device"));
    machine.classes[0].host = true;
    EXPECT_THAT(loader_tiers(machine, {}, 8), testing::ElementsAre("stacking"));  // it computes where the batch lies
}

// Of a p4d over the PCIe switch that two GPUs share, not over the NVSwitches; of a Grace Hopper over NVLink-C2C.
TEST(Input, OfShippedMachinesIsCopiedOverTheLinksOfTheirHosts) {
    const auto rate = [](const char* name, std::int64_t devices) {
        Schedule schedule;
        schedule.mesh.axes = {{"data", devices}};
        schedule.classes.emplace_back();
        schedule.classes[0].steps = {{"copy", Stream::io, Load{std::string{to_device}, 1_MB}, {}}};
        const Machine with = with_loader(models::load_machine(name), {}, schedule);
        return storage_tier(with, std::string{to_device}).read.value.value / static_cast<double>(devices);
    };
    EXPECT_DOUBLE_EQ(rate("aws-p4d", 2), pageable * 31.5e9);
    EXPECT_DOUBLE_EQ(rate("alps", 4), pageable * 450e9);
    EXPECT_DOUBLE_EQ(rate("vista", 1), pageable * 450e9);
}

}  // namespace
}  // namespace rehearse::sim
