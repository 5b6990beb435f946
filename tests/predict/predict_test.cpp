// SPDX-License-Identifier: Apache-2.0
// A job's points. Oracle: sums of prices, and properties that hold whatever the figures are.
#include "predict/predict.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "predict/explain.hpp"
#include "prices/prices.hpp"

namespace rehearse::predict {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Job job_of(const std::string& network, std::vector<std::int64_t> devices) {
    return {.network = models::load_network(network),
            .machine = models::load_machine("summit"),
            .plan = schedule::parse_plan("data"),
            .devices = std::move(devices)};
}

TEST(Predict, OneDeviceTakesTheSumOfItsPrices) {
    const Job job = job_of("lenet5", {1});
    const Prediction prediction = predict(job);
    Seconds sum;
    for (const rehearse::Step& step : prediction.setup.schedule.classes.at(0).steps) {
        if (const Problem* problem = problem_of(step)) sum += price(*problem, class_of(job.machine, 0)).time;
    }
    const Point& point = prediction.points.at(0);
    EXPECT_NEAR(point.figures.time.step / sum, 1, 1e-9);
    EXPECT_EQ(point.figures.global_batch, 32);
    EXPECT_TRUE(point.band.contains(point.figures.time.step));
    EXPECT_EQ(point.efficiency, 1.0);
    EXPECT_FALSE(point.training || point.noisy || point.input || point.checkpoints || point.staleness);
    double share = 0;
    for (const Explained& part : explained(prediction)) share += part.share;
    EXPECT_NEAR(share, 1, 1e-9) << "nothing else takes time";
}

TEST(Predict, PointsComeInOrderOnceEach) {
    const Prediction prediction = predict(job_of("lenet5", {12, 1, 6, 6}));
    ASSERT_EQ(prediction.points.size(), 3U);
    EXPECT_EQ(prediction.points[0].figures.devices, 1);
    EXPECT_EQ(prediction.points[2].nodes, 2);
    EXPECT_EQ(prediction.setup.devices, 12);
    EXPECT_EQ(prediction.timeline.ranks, 12);
}

TEST(Predict, IsRelativeToTheBaselineThatIsAskedFor) {
    Job job = job_of("lenet5", {6, 12});
    job.baseline = 12;
    const Prediction prediction = predict(job);
    EXPECT_NEAR(prediction.points[1].efficiency.value(), 1, 1e-12);
    EXPECT_GT(prediction.points[0].efficiency.value(), 1) << "fewer devices wait less for each other";
}

// 1,024 images of ResNet-50 are too many for two devices of 16 GB, and not for 32.
TEST(Predict, WhatDoesNotFitIsNoBaseline) {
    Job job = job_of("resnet50", {2, 32, 64});
    job.global_batch = 1024;
    const Prediction prediction = predict(job);
    EXPECT_FALSE(prediction.points[0].memory.fits);
    EXPECT_FALSE(prediction.points[0].efficiency || prediction.points[0].speedup);
    EXPECT_TRUE(prediction.points[1].memory.fits);
    EXPECT_DOUBLE_EQ(prediction.points[1].efficiency.value(), 1);
    EXPECT_LT(prediction.points[2].efficiency.value(), 1);
    job.baseline = 2;
    EXPECT_THAT([&] { predict(job); }, ThrowsMessage<InfeasibleError>(HasSubstr("--baseline 2: does not fit")));
}

TEST(Predict, AFrameworkCostsWhatItMoves) {
    Job job = job_of("lenet5", {1});
    const predict::Setup setup = setup_of(job, 1);
    const Seconds plain = step_at(setup, {}, {});
    EXPECT_EQ(plain, predict(job).points[0].figures.time.step) << "the same prices";
    EXPECT_GT(step_at(setup, {.update_passes = 40}, {}), plain);
    job.framework.update_passes = 40;
    EXPECT_EQ(predict(job).points[0].figures.time.step, step_at(setup, {.update_passes = 40}, {}));
    EXPECT_NEAR(step_at(setup, {}, {.factor = 2}) / plain, 2, 1e-9) << "one device only computes";
}

TEST(Conditions, LeaveDevicesOfANodeOut) {
    Job job = job_of("lenet5", {4});
    job.conditions.devices_per_node = 2;
    EXPECT_EQ(predict(job).points[0].nodes, 2);
    EXPECT_THROW(with_devices_per_node(job.machine, 7), InputError) << "a node of Summit has six";
}

TEST(Conditions, AreChecked) {
    Job job = job_of("lenet5", {1});
    job.conditions.jitter.samples = 0;
    EXPECT_THROW(predict(job), InputError);
    job.conditions = {.stage = "alpine"};
    EXPECT_THAT([&] { predict(job); }, ThrowsMessage<InputError>(HasSubstr("need --input")));
    job.conditions = {.backup = 1};
    EXPECT_THROW(predict(job), InputError) << "all devices spare";
}

}  // namespace
}  // namespace rehearse::predict
