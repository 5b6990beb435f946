// SPDX-License-Identifier: Apache-2.0
// Noise, slow nodes, quorums and degraded links: order statistics worked out elsewhere, and both modes alike.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "fixture.hpp"
#include "models/models.hpp"
#include "schedule/plan.hpp"
#include "sim/host/learners.hpp"
#include "sim/host/pace.hpp"
#include "sim/host/staging.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;
using testing::HasSubstr;

// The mean of the largest of n log-normal variables: the integral of 1 - F(x)^n over x > 0, by trapezia.
double mean_of_largest(std::int64_t n, double sigma) {
    const double step = 1e-5;
    double sum = 0;
    for (double x = step; x < 4; x += step) {
        const double z = (std::log(x) + sigma * sigma / 2) / sigma;
        sum += step * (1 - std::pow(0.5 * std::erfc(-z / std::sqrt(2.0)), static_cast<double>(n)));
    }
    return sum;
}

// The largest of 16 normal variables has a standard deviation of 0.55, of more a smaller one (Tippett 1925); the mean
// of 400 of them 0.0275, a tenth more where they are log-normal. Four of these.
TEST(Paces, LargestIsThatOfOrderStatistics) {
    const double sigma = 0.05;
    for (const std::int64_t n : {16, 64, 1024}) {
        double sum = 0;
        for (int sample = 0; sample < 400; ++sample)
            sum += pace_of(paces(n, summit_like(200), {}, {sigma, 7}, sample), n);
        EXPECT_NEAR(sum / 400, mean_of_largest(n, sigma), 4 * 0.03 * sigma) << n;
    }
}

TEST(Paces, AreOneOnAverageRepeatableAndSlowWhereTheNodeIs) {
    const Machine machine = summit_like(4);
    const std::vector<double> many = paces(20'000, summit_like(4000), {}, {0.1, 3});
    EXPECT_NEAR(std::reduce(many.begin(), many.end()) / 20'000, 1, 4 * 0.1 / std::sqrt(20'000));
    EXPECT_EQ(paces(24, machine, {}, {0.1, 3}, 2), paces(24, machine, {}, {0.1, 3}, 2));
    EXPECT_NE(paces(24, machine, {}, {0.1, 3}, 2), paces(24, machine, {}, {0.1, 3}, 1));
    const SlowNode slow{2, 1.5};
    const std::vector<double> one_slow = paces(24, machine, {&slow, 1});
    for (std::size_t r = 0; r < 24; ++r) EXPECT_EQ(one_slow[r], r / 6 == 2 ? 1.5 : 1) << r;
    EXPECT_EQ(pace_of(one_slow, 18), 1);  // 18 of 24 are not slow
    EXPECT_EQ(pace_of(one_slow, 19), 1.5);
}

Schedule training(Machine& machine, std::int64_t ranks) {
    return data_schedule(ranks, {compute_step(machine, "backward", 10_ms),
                                 all_reduce_step(0, 2'400'000, parse_algorithm("hierarchical(ring,halving)"), {0}),
                                 compute_step(machine, "update", 1_ms, {1})});
}

// Every rank waits for the slowest: folded mode runs at its pace. In exact mode the slowest of the backward pass need
// not be in the all-reduce's last message, and in the update each rank goes at its own pace, the slowest last.
TEST(Noise, IsAlikeInBothModes) {
    Machine machine = summit_like(4);
    const Schedule schedule = training(machine, 24);
    double exact = 0, folded = 0;
    for (int sample = 0; sample < 20; ++sample) {
        const std::vector<double> pace = paces(24, machine, {}, {0.1, 11}, sample);
        const double e = step_time(simulate(schedule, machine, {.mode = Mode::exact, .pace = pace}).timeline).value;
        const double f = step_time(simulate(schedule, machine, {.mode = Mode::folded, .pace = pace}).timeline).value;
        EXPECT_NEAR(f / e, 1, 0.02) << sample;
        exact += e;
        folded += f;
    }
    EXPECT_NEAR(folded / exact, 1, 0.005);
}

TEST(Noise, OfAQuorumLeavesTheSlowestOut) {
    Machine machine = one_device_nodes(8, Star{});
    const Schedule schedule = data_schedule(8, {compute_step(machine, "backward", 10_ms)});
    std::vector<double> pace{1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7};
    const auto step = [&](double quorum) {
        return step_time(simulate(schedule, machine, {.mode = Mode::folded, .pace = pace, .quorum = quorum}).timeline)
            .value;
    };
    EXPECT_DOUBLE_EQ(step(1), 17e-3);
    EXPECT_DOUBLE_EQ(step(0.75), 15e-3);  // the sixth of eight
    EXPECT_DOUBLE_EQ(step(0.7), 15e-3);   // 5.6, so six
    const auto refusal = [&](Options options) -> std::string {
        try {
            simulate(schedule, machine, options);
        } catch (const InputError& error) {
            return error.what();
        }
        return "nothing";
    };
    EXPECT_THAT(refusal({.mode = Mode::exact, .pace = pace, .quorum = 0.5}), HasSubstr("folded"));
    EXPECT_THAT(refusal({.quorum = 0}), HasSubstr("above 0"));
}

// Four ranks, ring of 40 MB in rounds of 10 MB at 10 GB/s; one NIC at a quarter: its round takes 4 ms.
TEST(DegradedLinks, SlowDownWhatCrossesThem) {
    const Machine machine = one_device_nodes(4, Star{});
    const Schedule schedule = data_schedule(4, {all_reduce_step(0, 10'000'000, {})});
    const std::vector<Degraded> degraded{{"node2:nic0:up", 0.25}};
    for (const Mode mode : {Mode::exact, Mode::folded}) {
        const double time = step_time(simulate(schedule, machine, {.mode = mode, .degraded = degraded}).timeline).value;
        EXPECT_NEAR(time / (6 * (4e-3 + 2e-6)), 1, 1e-6) << to_string(mode);
    }
    const std::vector<Degraded> all{{"node*:nic0:*", 0.5}};
    EXPECT_NEAR(step_time(simulate(schedule, machine, {.degraded = all}).timeline).value / (6 * (2e-3 + 2e-6)), 1,
                1e-6);
    const auto refusal = [&](const Degraded& one) -> std::string {
        try {
            simulate(schedule, machine, {.degraded = {one}});
        } catch (const InputError& error) {
            return error.what();
        }
        return "nothing";
    };
    EXPECT_THAT(refusal({"node9:nic0:up", 0.5}), HasSubstr("no link"));
    EXPECT_THAT(refusal({"node1:nic0:up", -0.1}), HasSubstr("from 0 (it has failed) to 1"));
    EXPECT_THAT(refusal({"node1:nic0:up", 0}), HasSubstr("node1 without what has failed: node 'node': no path of links "
                                                         "from dev0 to any NIC"));
}

// The last of two that name a link says what is left of it. Rounds of 10 MB at 10 GB/s, as above.
TEST(DegradedLinks, AreThoseOfTheLastThatNamesThem) {
    const Machine machine = one_device_nodes(4, Star{});
    const Schedule schedule = data_schedule(4, {all_reduce_step(0, 10'000'000, {})});
    const auto slower_by = [&](const std::vector<Degraded>& degraded) {
        const double time = step_time(simulate(schedule, machine, {.degraded = degraded}).timeline).value;
        return (time / 6 - 2e-6) / 1e-3;
    };
    const Degraded all{"*nic*", 0.5}, one{"node1:nic0:up", 0.25};
    EXPECT_NEAR(slower_by({all, one}), 4, 1e-6);
    EXPECT_NEAR(slower_by({one, all}), 2, 1e-6);
    EXPECT_NEAR(slower_by({one, one}), 4, 1e-6);
}

// Four of sixteen nodes, as far apart as can be: 0, 4, 8 and 12. Every node of the machine has links of its own.
TEST(DegradedLinks, OfNodesThatTheJobIsNotOnSlowNothing) {
    const Machine machine = one_device_nodes(16, Star{});
    const Schedule schedule = data_schedule(4, {all_reduce_step(0, 10'000'000, {})});
    const auto time = [&](const char* link) {
        const Options options{.degraded = {{link, 0.5}}, .nodes = {0, 4, 8, 12}};
        return step_time(simulate(schedule, machine, options).timeline).value;
    };
    EXPECT_NEAR(time("node1:nic0:up"), 6 * (1e-3 + 2e-6), 1e-9);
    EXPECT_NEAR(time("node4:nic0:up"), 6 * (2e-3 + 2e-6), 1e-9);
}

// Three of a node's six GPUs lose the NIC next to them and share the other one.
TEST(DegradedLinks, ThatHaveFailedAreGoneAround) {
    const Machine machine = summit_like(4);
    const Schedule schedule = data_schedule(24, {all_reduce_step(0, 10'000'000, parse_algorithm("halving"))});
    const auto time = [&](Mode mode, const std::vector<Degraded>& degraded) {
        return step_time(simulate(schedule, machine, {.mode = mode, .degraded = degraded}).timeline).value;
    };
    const std::vector<Degraded> failed{{"node2:nic1:up", 0}};
    EXPECT_GT(time(Mode::exact, failed), 1.2 * time(Mode::exact, {}));
    EXPECT_NEAR(time(Mode::folded, failed) / time(Mode::exact, failed), 1, 5e-3);
}

// A layer of 1,000 x 999 and a bias: a million parameters, with one moment of each 8 MB.
TEST(Checkpoint, IsWrittenByTheNodesOfTheFirstCopy) {
    Machine machine = summit_like(4);
    machine.storage = {{"nvme", {4.0_GBps, "test"}, true, {2.0_GBps, "test"}},
                       {"gpfs", {80.0_GBps, "test"}, false, {40.0_GBps, "test"}},
                       {"slow", {80.0_GBps, "test"}, false, {16.0_GBps, "test"}},
                       {"cd", {1.0_GBps, "test"}, false, {}}};
    Network network{.name = "a million", .layers = {{"x", Input{{999}}, {}, {}}}};
    network.layers.push_back({"dense", MatMul{.m = 1, .n = 1000, .k = 999, .bias = true}, {0}, {}});
    network.layers.push_back({"loss", SoftmaxLoss{.classes = 1000}, {1}, {}});
    for (Layer& layer : network.layers) layer.output = output_shape(layer.op);
    const auto planned = [&](std::string_view plan, Optimizer optimizer = Optimizer::sgd) {
        return schedule::make_schedule(network, machine, schedule::parse_plan(plan),
                                       {.devices = 24, .batch_per_device = 24, .optimizer = optimizer});
    };
    const Schedule schedule = planned("data");
    ASSERT_EQ(parameters(schedule.network), 1'000'000);
    // One node writes: 16 GB/s of the tier, or what its two NICs of 12.5 GB/s carry at 0.8.
    EXPECT_NEAR(checkpoint(schedule, machine, "slow").time.value, 8e6 / 16e9, 1e-12);
    EXPECT_NEAR(checkpoint(schedule, machine, "gpfs").time.value, 8e6 / 20e9, 1e-12);
    machine.storage[1].client = {5.0_GBps, "test"};
    EXPECT_NEAR(checkpoint(schedule, machine, "gpfs").time.value, 8e6 / 5e9, 1e-12);
    EXPECT_NEAR(checkpoint(schedule, machine, "nvme").time.value, 8e6 / 2e9, 1e-12);
    const Schedule sharded = planned("data:zero=1", Optimizer::adam);  // two moments, each rank has a 24th
    const Checkpoint shared = checkpoint(sharded, machine, "nvme");
    EXPECT_EQ(shared.writers, 4);
    EXPECT_NEAR(shared.time.value, 12e6 / (4 * 2e9), 1e-12);
    EXPECT_NEAR(checkpoint(sharded, machine, "gpfs").time.value, 12e6 / (4 * 5e9), 1e-12);
    EXPECT_NEAR(checkpoint(sharded, machine, "slow").time.value, 12e6 / 16e9, 1e-12);
    try {
        checkpoint(schedule, machine, "cd");
        FAIL() << "no write rate, no checkpoint";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), HasSubstr("no write rate"));
    }
}

// On four nodes of six devices: of the first copy's, of a stage's that has weights, of all that have a shard or a cut.
TEST(Checkpoint, IsWrittenByWhoHasWhatNobodyBeforeHas) {
    Machine machine = summit_like(4);
    machine.storage = {{"nvme", {4.0_GBps, "test"}, true, {2.0_GBps, "test"}}};
    const auto writers = [&](const char* network, std::string_view plan, std::int64_t devices = 24) {
        const Schedule schedule =
            schedule::make_schedule(models::load_network(network), machine, schedule::parse_plan(plan),
                                    {.devices = devices, .global_batch = 48, .optimizer = Optimizer::adam});
        return checkpoint(schedule, machine, "nvme").writers;
    };
    EXPECT_EQ(writers("alexnet", "data"), 1);
    EXPECT_EQ(writers("resnet50", "pipe=4,data=6"), 4);
    EXPECT_EQ(writers("resnet50", "data=6,pipe=4"), 1) << "all stages of the first copy are on the first node";
    EXPECT_EQ(writers("alexnet", "data:zero=2"), 4);
    EXPECT_EQ(writers("alexnet", "data:dense=shared", 16), 3) << "columns of dense layers are each rank's own";
    EXPECT_EQ(writers("mlp", "pipe=2:cut=flatten,data=12"), 1) << "the first stage has no weights";
}

// Rows of tables are updated as their gradients are made: the optimizer keeps nothing of them.
TEST(Checkpoint, OfSharedTablesHasNoMomentsOfThem) {
    Machine machine = summit_like(4);
    machine.storage = {{"nvme", {4.0_GBps, "test"}, true, {2.0_GBps, "test"}}};
    const Network network = models::load_network("dlrm-mlperf");
    const auto size = [&](std::string_view plan) {
        const Schedule schedule =
            schedule::make_schedule(network, machine, schedule::parse_plan(plan),
                                    {.devices = 2, .global_batch = 64, .optimizer = Optimizer::adam});
        return checkpoint(schedule, machine, "nvme").size.value;
    };
    double tables = 0, others = 0;
    for (const Layer& layer : network.layers) {
        const bool table = std::holds_alternative<EmbeddingBag>(layer.op);
        (table ? tables : others) += static_cast<double>(parameters(layer.op));
    }
    EXPECT_EQ(size("data"), 12 * (tables + others));
    EXPECT_EQ(size("data:tables=shared"), 4 * tables + 12 * others);
}

// Ten servers of 80 GB for samples of 1.6 TB: half is there. Two NICs of 12.5 GB/s at 0.8 each would send 20 GB/s; what
// is missing comes at 3 GB/s from a server's own tier, so it sends 6 GB/s, or, of a shared one, all of them 100 GB/s.
TEST(DataServers, SendWhatIsCachedAndWaitForTheRest) {
    Machine machine = summit_like(64);
    machine.storage = {{"nvme", {3.0_GBps, "test"}, true}, {"gpfs", {50.0_GBps, "test"}, false}};
    DataServers servers{.count = 10, .cache = 80.0_GB, .samples = 1600.0_GB, .behind = "nvme"};
    EXPECT_DOUBLE_EQ(cached_share(servers), 0.5);
    EXPECT_NEAR(served_tier(machine, 32, servers).read.value.value, 60e9, 1);
    EXPECT_FALSE(served_tier(machine, 32, servers).per_node);
    servers.behind = "gpfs";
    EXPECT_NEAR(served_tier(machine, 32, servers).read.value.value, 100e9, 1);
    servers.cache = 200.0_GB;
    EXPECT_DOUBLE_EQ(cached_share(servers), 1);
    EXPECT_NEAR(served_tier(machine, 32, servers).read.value.value, 200e9, 1);
    EXPECT_NEAR(served_tier(machine, 4, servers).read.value.value, 80e9, 1) << "as fast as four nodes can take them";
    servers.behind.clear();
    EXPECT_NO_THROW(served_tier(machine, 54, servers));
    EXPECT_THROW(served_tier(machine, 55, servers), InputError);
    servers.cache = 100.0_GB;
    EXPECT_THROW(served_tier(machine, 32, servers), InputError);
}

// The climate runs of SC'18 on 1,024 nodes: 63,000 samples of 56.6 MB on GPFS, 1,500 kept by each node. Read once:
// 3.57 TB at 2.5 TB/s. Kept: 84.9 GB at 5.5 GB/s. All of it comes over two NICs of 12.5 GB/s at 0.8: the node's own
// 1/1024 of all from the file system, the rest from other nodes.
TEST(Staging, IsAsSlowAsItsSlowestPart) {
    Machine machine = summit_like(1024);
    machine.storage = {{"nvme", {5.5_GBps, "test"}, true}, {"gpfs", {2500.0_GBps, "test"}, false}};
    const Staging staging = stage(machine, 1024, "gpfs", "nvme", 63'000, 1500, 56.6_MB);
    EXPECT_NEAR(staging.read.value, 1.42632, 1e-5);
    EXPECT_NEAR(staging.written.value, 15.43636, 1e-5);
    EXPECT_NEAR(staging.received.value, 84.9e9 / 20e9, 1e-6);
    EXPECT_EQ(staging.time(), staging.written);
    machine.storage[0].write = {2.1_GBps, "test"};  // 84.9 GB at 2.1 GB/s
    EXPECT_NEAR(stage(machine, 1024, "gpfs", "nvme", 63'000, 1500, 56.6_MB).written.value, 40.42857, 1e-5);
    // On 16 nodes the tier has more than their NICs take: 226.4 GB each, at 20 GB/s.
    EXPECT_NEAR(stage(machine, 16, "gpfs", "nvme", 64'000, 4000, 56.6_MB).read.value, 4000 * 56.6e6 / 20e9, 1e-6);
    EXPECT_EQ(devices_until_bound(machine, machine.storage[1], 200.0_MBps), 12'500);
    EXPECT_EQ(devices_until_bound(machine, machine.storage[1], 5.0_GBps), 4);  // of six on a node, 20 GB/s
    const auto refusal = [&](const std::string& from, const std::string& to) -> std::string {
        try {
            stage(machine, 4, from, to, 100, 25, 1_MB);
        } catch (const InputError& error) {
            return error.what();
        }
        return "nothing";
    };
    EXPECT_THAT(refusal("nvme", "gpfs"), HasSubstr("from a shared tier to one inside the nodes"));
    EXPECT_THAT(refusal("gpsf", "nvme"), HasSubstr("did you mean 'gpfs'"));
}

// Eight parts for two learners, one of which takes three times as long. Four each: 12. Whoever is idle first:
//   fast  0 1 3 4 6 7        6
//   slow  2     5            6        (parts 1 and 2 begin together: of two idle ones the first takes the first)
TEST(Learners, TakePartsAsTheyAreIdle) {
    EXPECT_EQ(pace_of_learners(std::vector{1.0, 3.0}, 4, false), 12 / 4.0);
    EXPECT_EQ(pace_of_learners(std::vector{1.0, 3.0}, 4, true), 6 / 4.0);
    EXPECT_EQ(pace_of_learners(std::vector{3.0, 1.0}, 1, true), 3);  // both begin at once: nothing is left to take
    EXPECT_EQ(pace_of_learners(std::vector{1.0, 1.0, 1.0}, 5, true), 1);
    // Of ten parts both want the last at 6, and the slow one has it until 9, although 8 and 2 of them would end at 8.
    EXPECT_EQ(pace_of_learners(std::vector{1.0, 3.0}, 5, true), 9 / 5.0);
    EXPECT_THAT(
        [] {
            (void)pace_of_learners(std::vector{1.0, 0.5}, 1, true);
        },
        testing::ThrowsMessage<InputError>(HasSubstr("from 1 to 1000")));
}

}  // namespace
}  // namespace rehearse::sim
