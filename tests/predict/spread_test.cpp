// SPDX-License-Identifier: Apache-2.0
// What no price knows. Oracle: tables of order statistics, and triangles.
#include "predict/spread.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/models.hpp"
#include "predict/predict.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::predict {
namespace {

TEST(SlowestCard, IsTheLargestOfNormalDraws) {
    EXPECT_DOUBLE_EQ(slowest_of(1), 1);
    // The mean of the largest of 100 standard normal draws is 2.5076 (tables of order statistics); cards differ by
    // 1.5 %. The formula is within 0.02 of it.
    EXPECT_NEAR(slowest_of(100), 1.037614, 3e-4);
    EXPECT_NEAR(slowest_of(3, 2), 1, 1e-9) << "the middle one of three";
    EXPECT_NEAR(slowest_of(10, 9), 1.015020, 3e-4) << "the second largest of ten: 1.00136 (the same tables)";
}

Job on(const Machine& machine) {
    return {.network = models::load_network("lenet5"), .machine = machine, .plan = schedule::parse_plan("data")};
}

TEST(Waiting, IsForTheCardsThatPricesDoNotContain) {
    Machine machine = models::load_machine("summit");
    EXPECT_DOUBLE_EQ(setup_of(on(machine), 96).waiting.back(), slowest_of(96));
    EXPECT_EQ(setup_of(on(machine), 96).waiting.size(), 96U);
    machine.classes.front().step_spread = {0.08, "of neighbouring steps"};
    EXPECT_DOUBLE_EQ(setup_of(on(machine), 96).waiting.back(), slowest_of(96, 96, std::hypot(0.015, 0.08)));
    machine.classes.front().step_spread = {};
    machine.in_situ.source = "measured inside steps of a node of six";
    EXPECT_DOUBLE_EQ(setup_of(on(machine), 96).waiting.front(), slowest_of(96) / slowest_of(6));
    EXPECT_DOUBLE_EQ(setup_of(on(machine), 6).waiting.front(), 1);
    machine.in_situ.source.clear();
    DeviceClass of_nodes;
    of_nodes.tiles = std::make_shared<const TileModel>();
    EXPECT_EQ(cards_of_prices(machine, of_nodes), 8) << "nodes of eight that its prices were fitted on";
}

TEST(Waiting, IsForTheRanksThatAreInStep) {
    Job job = on(models::load_machine("summit"));
    job.conditions.backup = 2;
    EXPECT_DOUBLE_EQ(setup_of(job, 24).waiting.front(), slowest_of(24, 22)) << "two of 24 are not waited for";
    job = on(models::load_machine("cori-knl"));
    job.plan = schedule::parse_plan("server=1,groups=4,data=8");
    EXPECT_DOUBLE_EQ(setup_of(job, 33).waiting.front(), slowest_of(8)) << "groups do not wait for each other";
}

// Six cards of a node of Summit: log2(6) doublings of 1.1 %, however many nodes there are.
TEST(Crowded, GrowsInsideANodeOnly) {
    Machine machine = models::load_machine("summit");
    EXPECT_DOUBLE_EQ(setup_of(on(machine), 1).crowded.front(), 1);
    EXPECT_NEAR(setup_of(on(machine), 2).crowded.back(), 1.011, 1e-12);
    EXPECT_NEAR(setup_of(on(machine), 6).crowded.back(), std::pow(1.011, std::log2(6)), 1e-12);
    EXPECT_DOUBLE_EQ(setup_of(on(machine), 96).crowded.back(), setup_of(on(machine), 6).crowded.front());
    const predict::Setup setup = setup_of(on(machine), 6);
    EXPECT_DOUBLE_EQ(setup.options.pace.back(), setup.waiting.back() * setup.crowded.back());
    Job spread = on(machine);
    spread.conditions.devices_per_node = 1;
    EXPECT_DOUBLE_EQ(setup_of(spread, 6).crowded.front(), 1) << "one card a node";
    machine.in_situ.source = "measured inside steps of a node of six";
    EXPECT_DOUBLE_EQ(setup_of(on(machine), 6).crowded.front(), 1) << "in the prices already";
}

TEST(Crowded, CountsTheCardsThatAreInANode) {
    const Machine two = models::load_machine("pai-v100-p100");  // a node of 8 V100, one of 8 P100
    EXPECT_NEAR(setup_of(on(two), 9).crowded.front(), std::pow(1.011, 3), 1e-12);
    EXPECT_DOUBLE_EQ(setup_of(on(two), 9).crowded.back(), 1) << "alone in its node";
    EXPECT_NEAR(setup_of(on(two), 12).crowded.back(), std::pow(1.011, 2), 1e-12) << "four P100";
    Machine machine = models::load_machine("summit");
    EXPECT_NEAR(setup_of(on(machine), 7).crowded.back(), std::pow(1.011, std::log2(6)), 1e-12)
        << "ranks of a class keep the pace of their fullest node";
    // A node of two classes: its last card is another, which is slowed by the five V100 as much as they are.
    machine.classes.push_back(machine.classes.front());
    machine.classes.back().name = "other";
    for (Vertex& vertex : machine.nodes.front().vertices) {
        if (vertex.name == "gpu5") vertex.device_class = 1;
    }
    const std::vector<double> crowded = setup_of(on(machine), 6).crowded;
    EXPECT_NEAR(crowded.front(), std::pow(1.011, std::log2(6)), 1e-12);
    EXPECT_NEAR(crowded.back(), std::pow(1.011, std::log2(6)), 1e-12);
    machine.classes.back().host = true;
    EXPECT_NEAR(setup_of(on(machine), 6).crowded.front(), std::pow(1.011, std::log2(5)), 1e-12) << "five cards";
    EXPECT_DOUBLE_EQ(setup_of(on(machine), 6).crowded.back(), 1) << "a processor";
}

// The rows that say so are of GPUs.
TEST(Crowded, IsNotForProcessors) {
    for (const char* name : {"clx-opa", "stampede2-skx", "adam-commodity", "cori-knl", "perlmutter-cpu"}) {
        const Machine machine = models::load_machine(name);
        const std::int64_t devices = std::min<std::int64_t>(2, device_count(machine));
        EXPECT_DOUBLE_EQ(setup_of(on(machine), devices).crowded.back(), 1) << name;
    }
}

TEST(DistanceError, GrowsWithEachDoubling) {
    EXPECT_DOUBLE_EQ(distance_error(8, 8), 0.05);
    EXPECT_DOUBLE_EQ(distance_error(64, 4), 0.13);  // 5 % and four doublings of 3 %: a triangle of 5, 12, 13
    EXPECT_DOUBLE_EQ(doublings(4, 8), 0) << "what was measured on more";
}

}  // namespace
}  // namespace rehearse::predict
