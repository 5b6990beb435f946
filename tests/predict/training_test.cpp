// SPDX-License-Identifier: Apache-2.0
// A training from its step. Oracle: worked out by hand.
#include "predict/training.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"

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

}  // namespace
}  // namespace rehearse::predict
