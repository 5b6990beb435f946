// SPDX-License-Identifier: Apache-2.0
// A training from its step, and what no price knows. Oracle: worked out by hand.
#include "predict/training.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "predict/spread.hpp"
#include "prices/tile_model.hpp"

namespace rehearse::predict {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(TrainingTime, OfStagingEpochsAndCheckpoints) {
    const Training training{.dataset = 1000, .epochs = 2, .critical_batch = 100};
    const auto time = training_time(
        training,
        {.samples_per_s = 50, .global_batch = 100, .nodes = 3, .checkpoint_share = 0.2, .staging = Seconds{10}});
    ASSERT_TRUE(time);
    EXPECT_DOUBLE_EQ(time->epoch.value, 20);
    EXPECT_DOUBLE_EQ(time->epochs, 4) << "a batch as large as the critical one needs twice as many";
    EXPECT_DOUBLE_EQ(time->all.value, 4 * 20 / 0.8 + 10);
    EXPECT_DOUBLE_EQ(time->node_hours, 3 * 110.0 / 3600);
    EXPECT_DOUBLE_EQ(samples(training, 0), 2000);
    EXPECT_FALSE(training_time({}, {.samples_per_s = 50, .global_batch = 100}));
}

TEST(TrainingTime, IsNotOfABatchBeyondTheDataSet) {
    const auto made = [](std::int64_t batch) {
        return [=] { (void)training_time({.dataset = 1000}, {.samples_per_s = 1, .global_batch = batch}); };
    };
    EXPECT_NO_THROW(made(1000)());
    EXPECT_THAT(made(1001),
                ThrowsMessage<InputError>(HasSubstr("a step takes 1001 samples, and the data set has 1000")));
}

TEST(Training, IsChecked) {
    EXPECT_THROW(check(Training{.dataset = 0}), InputError);
    EXPECT_THROW(check(Training{.epochs = 0}), InputError);
    EXPECT_THROW(check(Training{.critical_batch = 8.0}), InputError) << "of which data set?";
}

TEST(SlowestCard, IsTheLargestOfNormalDraws) {
    EXPECT_DOUBLE_EQ(slowest_of(1), 1);
    // The mean of the largest of 100 standard normal draws is 2.5076 (tables of order statistics); cards differ by 1 %.
    EXPECT_NEAR(slowest_of(100), 1.025076, 2e-4);
    DeviceClass by_roofline;
    EXPECT_DOUBLE_EQ(waiting(100, by_roofline), slowest_of(100));
    DeviceClass of_nodes;
    of_nodes.tiles = std::make_shared<const TileModel>();
    EXPECT_DOUBLE_EQ(waiting(8, of_nodes), 1) << "its prices were measured on eight cards that waited for each other";
    EXPECT_DOUBLE_EQ(waiting(100, of_nodes), slowest_of(100) / slowest_of(8));
}

TEST(DistanceError, GrowsWithEachDoubling) {
    EXPECT_DOUBLE_EQ(distance_error(8, 8), 0.05);
    EXPECT_DOUBLE_EQ(distance_error(64, 4), 0.13);  // 5 % and four doublings of 3 %: a triangle of 5, 12, 13
}

}  // namespace
}  // namespace rehearse::predict
