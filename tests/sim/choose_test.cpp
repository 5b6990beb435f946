// SPDX-License-Identifier: Apache-2.0
#include "sim/choose.hpp"

#include <gtest/gtest.h>

#include "fixture.hpp"

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
    machine.across = messaging(5_us, 1, 40.0_GBps);
    const auto chosen = [&](std::int64_t count) {
        Schedule schedule = data_schedule(8, {all_reduce_step(0, count, parse_algorithm("tree"))});
        choose_all_reduce(schedule, machine);
        return algorithm_of(schedule).name;
    };
    EXPECT_EQ(chosen(2), "doubling");
    EXPECT_EQ(chosen(10'000'000), "halving");
}

}  // namespace
}  // namespace rehearse::sim
