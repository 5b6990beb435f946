// SPDX-License-Identifier: Apache-2.0
// Who is left of a job with a server: workers that say nothing, that are slow, that are through. 2 and 4 ranks.
#include "run/methods/attendance.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "core/error.hpp"
#include "run/trainer.hpp"
#include "tests/run/networks.hpp"

namespace rehearse::run {
namespace {

using kernels::Communicator;
using testing::ElementsAre;

void nap() { std::this_thread::sleep_for(std::chrono::milliseconds{1}); }

// Of three workers the first is through, the second is told to stop then, as one of three is quorum enough, and the
// third says nothing, as if it were dead.
TEST(Attendance, LosesTheSilentAndCutsTheSlow) {
    const Communicator world = Communicator::world();
    if (world.size() != 4) GTEST_SKIP() << "of 4 ranks";
    const Schedule schedule = test::schedule_of(test::branches(), "server=1:quorum=0.3,data=3", 4, 8);
    Attended attended;
    if (world.rank() == 0) attended = say_goodbye(world, schedule, 5);
    if (world.rank() == 1) {
        while (!is_cut(world, schedule)) nap();
        attended = say_goodbye(world, schedule, 3);
    }
    if (world.rank() == 3) {
        Attendance attendance{world, schedule, 5, Seconds{0.5}};
        while (attendance.goes_on({})) nap();
        attended = attendance.conclude();
    }
    if (world.rank() == 2) return;
    EXPECT_THAT(attended.left, ElementsAre(0, 1, 3));
    EXPECT_THAT(attended.lost, ElementsAre(2));
    EXPECT_THAT(attended.cut, ElementsAre(1));
    const Communicator left = world.among(attended.left);
    const auto own = static_cast<double>(world.rank());
    EXPECT_THAT(left.all_gather({&own, 1}), ElementsAre(0, 1, 3));
}

TEST(Attendance, WithOneWorkerTrainsWhatItTrainsWithoutPatience) {
    const Communicator world = Communicator::world();
    if (world.size() != 2) GTEST_SKIP() << "of 2 ranks";
    const Schedule schedule = test::schedule_of(test::branches(), "server=1,data=1", 2, 8);
    Options options{.steps = 5, .learning_rate = 0.01F};
    const Result wanted = train_on(world, schedule, options, {}, {});
    options.patience = Seconds{20};
    const Result found = train_on(world, schedule, options, {}, {});
    EXPECT_EQ(found.weights, wanted.weights);
    EXPECT_EQ(found.staleness, wanted.staleness);
    EXPECT_TRUE(found.lost.empty());
    EXPECT_TRUE(found.cut.empty());
    ASSERT_EQ(found.steps.size(), wanted.steps.size());
    for (std::size_t i = 0; i < found.steps.size(); ++i) EXPECT_EQ(found.steps[i].loss, wanted.steps[i].loss);
}

TEST(Attendance, EndsAtAQuorumOfLiveWorkers) {
    const Communicator world = Communicator::world();
    if (world.size() != 4) GTEST_SKIP() << "of 4 ranks";
    const Schedule schedule = test::schedule_of(test::branches(), "server=1:quorum=0.75,data=3", 4, 8);
    const Options options{.steps = 20, .patience = Seconds{20}, .learning_rate = 0.01F};
    const Result found = train_on(world, schedule, options, {}, {});
    EXPECT_TRUE(found.lost.empty());
    EXPECT_TRUE(found.cut.empty()) << "three of three are 0.75 of them, rounded up";
    std::int64_t updates = 0;
    for (const std::int64_t count : found.staleness) updates += count;
    EXPECT_EQ(updates % (3 * 20), 0);
    EXPECT_GT(updates, 0);
}

}  // namespace
}  // namespace rehearse::run
