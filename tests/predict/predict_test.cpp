// SPDX-License-Identifier: Apache-2.0
// A job's points. Oracle: sums of prices, and properties that hold whatever the figures are.
#include "predict/predict.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <thread>

#include "core/error.hpp"
#include "models/models.hpp"
#include "predict/explain.hpp"
#include "predict/faster_than_peak.hpp"
#include "predict/remarks.hpp"
#include "predict/spread.hpp"
#include "prices/prices.hpp"
#include "tests/predict/summit_job.hpp"

namespace rehearse::predict {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Predict, OneDeviceTakesTheSumOfItsPrices) {
    const Job job = summit_job("lenet5", {1});
    const Prediction prediction = predict(job);
    Seconds sum;
    for (const Step& step : prediction.setup.schedule.classes.at(0).steps) {
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

TEST(Predict, SmallFilesComeAsFastAsTheirServersOfNamesAllow) {
    Job job = summit_job("lenet5", {12});
    job.conditions.input = "alpine";
    job.conditions.sample = Bytes{1000};
    FileSystem system;
    system.read = {Bandwidth{1e12}, "test"};
    system.metadata = {100, "test"};
    system.operations = {2, "test"};
    job.conditions.reading = Reading{system, {}};
    // 50 samples a second, of which a step takes 12 x 32.
    EXPECT_NEAR(predict(job).points.at(0).figures.time.step.value, 12 * 32 / 50.0, 1e-6);
    // A thousand in a file: names are no bound any more.
    job.conditions.reading->pattern.files = 0.001;
    EXPECT_LT(predict(job).points.at(0).figures.time.step.value, 0.1);
    job.conditions.input = "";
    job.conditions.sample = {};
    EXPECT_THAT([&] { predict(job); }, ThrowsMessage<InputError>(HasSubstr("--reading")));
}

// Of a pipeline over the six devices of a node the first one reads, of four pipelines over 24 one on each node.
TEST(Predict, OnlyTheFirstStageReadsSamples) {
    Job job = summit_job("lenet5", {24});
    job.plan = schedule::parse_plan("data,pipe=6:microbatches=2");
    job.batch = 4;
    job.conditions.input = "alpine";
    job.conditions.sample = Bytes{1e6};
    FileSystem system;
    system.read = {Bandwidth{1e12}, "test"};
    system.stream = {Bandwidth{1e6}, "test"};
    job.conditions.reading = Reading{system, {}};
    const Point point = predict(job).points.at(0);
    // Each of four processes reads its share of the batch at the rate of a stream.
    const double seconds = static_cast<double>(point.figures.global_batch) / 4;
    EXPECT_NEAR(point.figures.time.step.value, seconds, 1e-6);
    EXPECT_NEAR(point.input->rate.value, 4e6, 1) << "what they read together, not what they would";
}

// Twelve devices at 1,000 samples of 1 MB a second each would read more than the tier gives.
TEST(Predict, DevicesThatWaitReadWhatTheTierGives) {
    Job job = summit_job("lenet5", {12});
    job.conditions.input = "alpine";
    job.conditions.sample = Bytes{1e9};
    const Point point = predict(job).points.at(0);
    EXPECT_GT(point.figures.time.io_wait.value, 0);
    EXPECT_NEAR(point.input->rate.value * point.figures.time.step.value, 12 * 32 * 1e9, 1);
    EXPECT_LE(point.input->rate.value, 2 * 24e9) << "what the NICs of two nodes carry";
}

TEST(Predict, ALoaderThatReadsAheadOnlyCopiesBetweenSteps) {
    Job job = summit_job("alexnet", {1});
    job.batch = 128;
    job.conditions.input = "nvme";
    const Seconds ahead = predict(job).points.at(0).figures.time.step;
    job.conditions.loader = sim::parse_loader("inline:stack=1GBps:copy=off:read=ahead");
    const Seconds copied = predict(job).points.at(0).figures.time.step;
    // 128 x 3 x 224 x 224 f32 numbers, 77 MB, at 1 GB/s after reading and computing went on beside each other.
    EXPECT_NEAR((copied - ahead).value, 128 * 3 * 224 * 224 * 4 / 1e9, 2e-3);
    job.conditions.loader = sim::parse_loader("inline:stack=1GBps:copy=off");
    EXPECT_GT(predict(job).points.at(0).figures.time.step, copied);
}

TEST(Predict, PointsComeInOrderOnceEach) {
    const Prediction prediction = predict(summit_job("lenet5", {12, 1, 6, 6}));
    ASSERT_EQ(prediction.points.size(), 3U);
    EXPECT_EQ(prediction.points[0].figures.devices, 1);
    EXPECT_EQ(prediction.points[2].nodes, 2);
    EXPECT_EQ(prediction.setup.devices, 12);
    EXPECT_EQ(prediction.timeline.ranks, 12);
}

TEST(Predict, IsRelativeToTheBaselineThatIsAskedFor) {
    Job job = summit_job("lenet5", {6, 12});
    job.baseline = 12;
    const Prediction prediction = predict(job);
    EXPECT_NEAR(prediction.points[1].efficiency.value(), 1, 1e-12);
    EXPECT_GT(prediction.points[0].efficiency.value(), 1) << "fewer devices wait less for each other";
}

// 1,024 images of ResNet-50 are too many for two devices of 16 GB, and not for 32.
TEST(Predict, WhatDoesNotFitIsNoBaseline) {
    Job job = summit_job("resnet50", {2, 32, 64});
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
    Job job = summit_job("lenet5", {1});
    const Seconds plain = step_of(setup_of(job, 1)).time;
    EXPECT_EQ(plain, predict(job).points[0].figures.time.step) << "the same prices";
    job.framework.update_passes = 40;
    const Seconds slower = step_of(setup_of(job, 1)).time;
    EXPECT_GT(slower, plain);
    EXPECT_EQ(predict(job).points[0].figures.time.step, slower);
    const double bytes = 40.0 * 4 * static_cast<double>(parameters(job.network));
    job.framework.update_rate = Bandwidth{1e6};
    const Seconds one_core = step_of(setup_of(job, 1)).time;
    job.framework.update_rate = Bandwidth{2e6};
    EXPECT_NEAR((one_core - step_of(setup_of(job, 1)).time).value, bytes / 2e6, 1e-3 * bytes / 2e6);
    const Seconds half = step_of(setup_of(job, 1)).time;
    job.framework.update_passes = 0;
    EXPECT_NEAR((half - step_of(setup_of(job, 1)).time).value, bytes / 2e6, 1e-3 * bytes / 2e6) << "no update";
}

// Each copy reads and writes the gradients once, at the memory bandwidth, where ranks share them.
TEST(Predict, AFrameworkCopiesGradientsIntoItsBuckets) {
    Job job = summit_job("lenet5", {1, 2});
    job.plan = schedule::parse_plan("data:overlap=off:bucket=1GB:first=1GB");
    const Seconds one = step_of(setup_of(job, 1)).time, two = step_of(setup_of(job, 2)).time;
    job.framework.copies.buckets = 2000;  // far above rounding
    EXPECT_EQ(step_of(setup_of(job, 1)).time, one) << "nobody to share with";
    const double bytes = 2000.0 * 2 * 4 * static_cast<double>(parameters(job.network));
    const double longer = slowest_of(2) * beside(2);  // the slower card of two, beside the other
    const double expected = longer * bytes / class_of(job.machine, 0).memory_bandwidth.value.value;
    EXPECT_NEAR((step_of(setup_of(job, 2)).time - two).value, expected, 1e-3 * expected);
}

// LeNet-5 has ten tensors of weights (two convolutions and three dense layers with biases), which are gone through in
// far less than the 1 ms that each operator's issue takes here.
TEST(Predict, AFrameworkKeepsStatisticsOfGradients) {
    Job job = summit_job("lenet5", {1, 2});
    job.plan = schedule::parse_plan("data:overlap=off:bucket=1GB:first=1GB");
    job.framework.issue.other.time = Seconds{1e-3};
    const Seconds one = step_of(setup_of(job, 1)).time, two = step_of(setup_of(job, 2)).time;
    job.framework.statistics = {.alone = 14, .shared = 5};
    EXPECT_NEAR((step_of(setup_of(job, 1)).time - one).value, 14 * 10 * 1e-3, 1e-9);
    const double longer = slowest_of(2) * beside(2);  // the slower card of two, beside the other
    EXPECT_NEAR((step_of(setup_of(job, 2)).time - two).value, longer * 5 * 10 * 1e-3, 1e-3 * 5 * 10 * 1e-3);
    // Without a host to wait for, 1.4 passes each at the memory bandwidth.
    job.framework.issue.other.time = Seconds{};
    job.framework.statistics = {};
    const Seconds plain = step_of(setup_of(job, 1)).time;
    job.framework.statistics = {.alone = 1e4};
    const double bytes = 1e4 * 1.4 * 4 * static_cast<double>(parameters(job.network));
    const double expected = bytes / class_of(job.machine, 0).memory_bandwidth.value.value;
    EXPECT_NEAR((step_of(setup_of(job, 1)).time - plain).value, expected, 1e-6 * expected);
}

// The first bucket is summed early, and its update must wait all the same.
TEST(Predict, AFrameworkUpdatesAfterAllSums) {
    Job job = summit_job("lenet5", {2});
    job.plan = schedule::parse_plan("data:bucket=1kB:first=1kB");
    job.framework.update_after_sums = true;
    const auto setup = setup_of(job, 2);
    for (const RankClass& rank_class : setup.schedule.classes) {
        const auto update = std::ranges::find_if(
            rank_class.steps, [](const auto& step) { return std::holds_alternative<Update>(step.action); });
        std::size_t sums = 0;
        for (std::size_t i = 0; i < rank_class.steps.size(); ++i) {
            if (!std::holds_alternative<Communicate>(rank_class.steps[i].action)) continue;
            ++sums;
            EXPECT_EQ(std::ranges::count(update->after, static_cast<int>(i)), 1);
        }
        EXPECT_GT(sums, 1U);
    }
}

// Kernels of a network of a few thousand weights take less than a host needs to issue them.
TEST(Predict, AHostIssuesOneOperatorAfterTheOther) {
    Job job = summit_job("lenet5", {1});
    job.batch = 1;
    job.framework.issue.other.time = Seconds{1};
    const Prediction prediction = predict(job);
    double kernels = 0;
    for (const Step& step : prediction.setup.schedule.classes.at(0).steps) {
        const Problem* problem = problem_of(step);
        kernels += problem != nullptr && has_pass(problem->op, problem->pass) ? 1 : 0;
    }
    EXPECT_NEAR(prediction.points[0].figures.time.step.value, kernels, 1e-9);
    job.framework.issue.other.time = Seconds{1e-12};
    const Seconds with = predict(job).points[0].figures.time.step;
    job.framework.issue = {};
    EXPECT_DOUBLE_EQ(with.value, predict(job).points[0].figures.time.step.value) << "all kernels take longer";
}

// A tenth of what its peak needs cannot have been measured; a hundredth less may be noise.
TEST(FasterThanPeak, NamesTheSampleAndCountsThePeak) {
    Job job = summit_job("vgg16", {1});
    const Schedule schedule = setup_of(job, 1).schedule;
    DeviceClass& device = job.machine.classes.front();
    const Problem* product = nullptr;
    for (const Step& step : schedule.classes.front().steps) {
        const Problem* problem = problem_of(step);
        if (problem != nullptr && kind_of(problem->op) == "matmul" && product == nullptr) product = problem;
    }
    ASSERT_NE(product, nullptr);
    const Seconds least = flops(product->op, product->pass, product->batch) / device.peak.at(product->type).value;
    const std::string name = to_string(*product);
    device.measured[name] = {.median = 0.99 * least, .error = 0.01, .samples = 9, .source = "calibrate, run 7"};
    EXPECT_TRUE(faster_than_peak(schedule, job.machine).empty());
    device.measured[name].median = 0.1 * least;
    const std::vector<FasterThanPeak> found = faster_than_peak(schedule, job.machine);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].problem, name);
    EXPECT_EQ(found[0].sample, "calibrate, run 7");
    EXPECT_NEAR(found[0].least / least, 1, 1e-9);
    const Point point = predict(job).points.at(0);
    EXPECT_GT(point.bounds.compute, Seconds{}) << "the certificate holds where something was measured";
    EXPECT_GE(point.figures.time.step, point.bounds.compute);
    job.framework.update_passes = 20;
    EXPECT_EQ(predict(job).points.at(0).bounds.compute, point.bounds.compute) << "and for a framework's prices";
}

TEST(Conditions, LeaveDevicesOfANodeOut) {
    Job job = summit_job("lenet5", {4});
    job.conditions.devices_per_node = 2;
    EXPECT_EQ(predict(job).points[0].nodes, 2);
    EXPECT_THROW(with_devices_per_node(job.machine, 7), InputError) << "a node of Summit has six";
}

// Of eight devices, one of them waited for: an eighth of the samples counts.
TEST(Conditions, ThrowAwayWhatComesTooLate) {
    Job job = summit_job("lenet5", {8});
    job.training.dataset = 60000;
    const Point all = predict(job).points[0];
    job.conditions.backup = 7;
    const Prediction prediction = predict(job);
    const Point& one = prediction.points[0];
    EXPECT_NEAR(one.figures.samples_per_s(), 32 / one.figures.time.step.value, 1e-6);
    EXPECT_NEAR(one.training->epoch.value, 60000 / one.figures.samples_per_s(), 1e-9);
    EXPECT_NEAR(one.utilization.value() / all.utilization.value(),
                one.figures.samples_per_s() / all.figures.samples_per_s(), 1e-9);
    EXPECT_THAT(condition_notes(prediction.setup), ElementsAre(HasSubstr("waits for 1 of 8 devices")));
    job.conditions = {.quorum = 0.3};
    EXPECT_DOUBLE_EQ(predict(job).points[0].figures.counted, 3.0 / 8) << "2.4 of 8, so three";
}

TEST(Conditions, NoiseMakesATrainingLonger) {
    Job job = summit_job("lenet5", {12});
    job.training.dataset = 60000;
    job.conditions.jitter.sigma = 0.2;
    const Point point = predict(job).points[0];
    EXPECT_GT(point.noisy->mean, point.figures.time.step);
    EXPECT_NEAR(point.training->epoch.value, 60000 / point.noisy->samples_per_s, 1e-9);
    EXPECT_EQ(point.time_of(60000), point.training->epoch);
}

// Each group of one rank draws for each of its steps: no two are alike, and each takes at least its push and pull.
TEST(Conditions, NoiseOfServersIsOfEachStepOfEachGroup) {
    Job job = summit_job("lenet5", {7});
    job.plan = schedule::parse_plan("server=1,data=6");
    job.conditions.jitter = {.sigma = 0.2, .samples = 40};
    const Point point = predict(job).points[0];
    ASSERT_TRUE(point.noisy);
    EXPECT_LT(point.noisy->p05, point.noisy->mean);
    EXPECT_LT(point.noisy->mean, point.noisy->p95);
}

// Six ranks of Summit share a node, so that twelve fill two and eight do not; without a table of its own a machine has
// rings.
TEST(Sums, ByTheMachinesOwnLibrarySayWhereTheyAreRings) {
    Job job = summit_job("lenet5", {1, 8, 12});
    job.plan = schedule::parse_plan("data:allreduce=own");
    const Prediction prediction = predict(job);
    EXPECT_EQ(prediction.points[0].rings, "") << "there are no sums";
    EXPECT_EQ(prediction.points[2].rings, "");
    EXPECT_THAT(sums_notes(prediction.points),
                ElementsAre(testing::AllOf(HasSubstr("on 8 devices"), HasSubstr("has 6 of its ranks and another 2"))));
    job.plan = schedule::parse_plan("data:allreduce=nccl");
    job.devices = {12};
    const Prediction named = predict(job);
    EXPECT_NEAR(named.points[0].figures.time.step / prediction.points[2].figures.time.step, 1, 1e-9);
    EXPECT_TRUE(sums_notes(named.points).empty());
    job.plan = schedule::parse_plan("data:allreduce=own");
    job.machine = models::load_machine("titanx-server");
    job.devices = {2};
    const Prediction rings = predict(job);
    EXPECT_THAT(sums_notes(rings.points), ElementsAre(HasSubstr("names no library")));
    job.plan = schedule::parse_plan("data:allreduce=ring");
    EXPECT_NEAR(predict(job).points[0].figures.time.step / rings.points[0].figures.time.step, 1, 1e-9);
}

// Six ranks on node 0 trade with a server on node 1, which updates 60,000 weights in place.
TEST(Conditions, SlowTheNodesOfServersToo) {
    Job job = summit_job("lenet5", {7});
    job.plan = schedule::parse_plan("server=1,data=6");
    const Seconds usual = predict(job).points[0].figures.time.step;
    job.conditions.slow = {{1, 100}};
    EXPECT_GT(predict(job).points[0].figures.time.step, 1.5 * usual);
    EXPECT_TRUE(condition_notes(setup_of(job, 7)).empty());
    job.conditions = {.backup = 1};
    EXPECT_THAT([&] { predict(job); }, ThrowsMessage<InputError>(HasSubstr("server=2:quorum=0.75")));
}

TEST(Conditions, NoteNodesThatTheJobIsNotOn) {
    Job job = summit_job("lenet5", {12});
    job.conditions.slow = {{1, 2}, {2, 2}};
    job.conditions.degraded = {{"node1:nic0:*", 0.5}, {"node3:nic0:*", 0.5}, {"node*:nic0:*", 0.5}};
    EXPECT_THAT(condition_notes(setup_of(job, 12)), ElementsAre(HasSubstr("--slow 2"), HasSubstr("not on node 3")));
    job.conditions = {.degraded = {{"node3:nic0:*", 0.5}}, .placement = sim::Placement::scattered};
    EXPECT_THAT(condition_notes(setup_of(job, 12)), ElementsAre(HasSubstr("not on node 3, but on 0, 2304")));
}

TEST(Conditions, AreChecked) {
    Job job = summit_job("lenet5", {1});
    job.conditions.jitter.samples = 0;
    EXPECT_THROW(predict(job), InputError);
    job.conditions = {.stage = "alpine"};
    EXPECT_THAT([&] { predict(job); }, ThrowsMessage<InputError>(HasSubstr("need --input")));
    job.conditions = {.backup = 1};
    EXPECT_THROW(predict(job), InputError) << "all devices spare";
}

// Two nodes that keep 1,500 samples each leave 60,000 of 63,000 out; their shares leave none out.
TEST(Conditions, NoteSamplesThatNoNodeKeeps) {
    Job job = summit_job("lenet5", {12});
    job.training.dataset = 63000;
    job.conditions.stage = "alpine";
    job.conditions.input = "nvme";
    job.conditions.keep = 1500;
    const std::vector<Point> points = predict(job).points;
    EXPECT_EQ(points[0].input->left_out, 60000);
    EXPECT_THAT(staging_notes(points), ElementsAre(HasSubstr("on 12 devices 60000 samples of the data set")));
    job.conditions.keep.reset();
    EXPECT_THAT(staging_notes(predict(job).points), testing::IsEmpty());
}

// Nodes that serve samples are paid for, too.
TEST(Conditions, NodeHoursAreThoseOfDataServersToo) {
    Job job = summit_job("lenet5", {12});
    job.training.dataset = 60000;
    job.conditions.data_servers = DataServers{.count = 3, .cache = Bytes{1e12}};
    const Point point = predict(job).points[0];
    EXPECT_EQ(point.nodes, 2);
    EXPECT_NEAR(point.training->node_hours, 5 * point.training->all.value / 3600, 1e-12);
}

// The simulator's engine is made by the first thread that asks for it; others simulate after it, one at a time.
TEST(Predict, AnyThreadSimulates) {
    const Job job = summit_job("lenet5", {6});
    const auto step = [&] { return predict(job).points.at(0).figures.time.step; };
    const Seconds first = step();
    for (int i = 0; i < 3; ++i) {
        Seconds other;
        std::thread([&] { other = step(); }).join();
        EXPECT_NEAR(other / first, 1, 1e-9);
    }
    EXPECT_NEAR(step() / first, 1, 1e-9);
}

}  // namespace
}  // namespace rehearse::predict
