// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/choose.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fixture.hpp"
#include "sim/collective/price.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

const Algorithm& algorithm_of(const Schedule& schedule) {
    return std::get<Communicate>(schedule.classes[0].steps[0].action).algorithm;
}

// On eight ranks with 5 us a message: two numbers go fastest in the fewest rounds, 3 of doubling; 40 MB by the fewest
// bytes, 7/4 of them by ring (14 messages) or halving (6).
TEST(ChooseAllReduce, TakesFewRoundsForSmallAndFewBytesForLargeBuckets) {
    Machine machine = one_device_nodes(8, Star{});
    machine.across = messaging(5_us);  // sums are free
    const auto chosen = [&](std::int64_t count) {
        Schedule schedule = data_schedule(8, {all_reduce_step(0, count, parse_algorithm("tree"))});
        choose_algorithms(schedule, machine);
        return algorithm_of(schedule).name;
    };
    EXPECT_EQ(chosen(2), "doubling");
    EXPECT_EQ(chosen(10'000'000), "halving");
}

// Four devices that reach each other at 45 GB/s by a switch that takes what each gives at 40: both rounds of direct
// take 5/4 of the data over 40 GB/s and 10 us, whatever plain messages' 4 us would say.
TEST(ChooseAllReduce, SumsInSwitchesWhereTheyCan) {
    Machine machine = four_device_nodes(2);
    const auto chosen = [&](std::int64_t ranks) {
        Schedule schedule = data_schedule(ranks, {all_reduce_step(0, 10'000'000, parse_algorithm("tree"))});
        choose_algorithms(schedule, machine);
        return algorithm_of(schedule).name;
    };
    EXPECT_NE(chosen(4), "direct") << "a switch that only passes on";
    machine.nodes[0].sums = {{40.0_GBps, "test"}, {10_us, "test"}};
    EXPECT_EQ(chosen(4), "direct");
    EXPECT_NE(chosen(8), "direct") << "there is no such switch between nodes";
    const Call call{.elements = 10'000'000, .algorithm = parse_algorithm("direct")};
    const Mesh mesh{{{"data", 4}}};
    for (const Mode mode : {Mode::exact, Mode::folded})
        EXPECT_NEAR(collective_time(call, mesh, machine, mode).value, 10e-6 + 40e6 * 1.25 / 40e9, 1e-9);
}

// The certificate passes with fewer bytes than plain messages need, and counts what the switches are given.
TEST(ChooseAllReduce, InSwitchesPassesTheCertificate) {
    Machine machine = four_device_nodes(1);
    machine.nodes[0].sums = {{40.0_GBps, "test"}, {10_us, "test"}};
    const Schedule schedule = data_schedule(4, {all_reduce_step(0, 10'000'000, parse_algorithm("direct"))});
    for (const Mode mode : {Mode::exact, Mode::folded}) {
        const Timeline timeline = simulate(schedule, machine, {.mode = mode, .links = true}).timeline;
        EXPECT_NEAR(step_time(timeline).value, 10e-6 + 40e6 * 1.25 / 40e9, 1e-9);
        EXPECT_NEAR(timeline.events.front().bytes.value, 40e6 * 1.25 * 45 / 40, 1);
    }
}

TEST(ChooseAllReduce, DirectIsForFewRanks) {
    const Machine machine = one_device_nodes(129, Star{});
    const Call call{.elements = 1000, .algorithm = parse_algorithm("direct")};
    EXPECT_THROW(collective_time(call, Mesh{{{"data", 129}}}, machine), InputError);
}

}  // namespace
}  // namespace rehearse::sim
