// SPDX-License-Identifier: Apache-2.0
// From rows to runs. Oracle: worked out by hand from the row; and what predict says of the same job.
#include "validate/replay.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "predict/spread.hpp"
#include "validate/megatron_rows.hpp"
#include "validate/published.hpp"
#include "validate/replay_rows.hpp"

namespace rehearse::validate {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

PublishedRow row(std::int64_t devices, const std::string& each, const std::string& all) {
    PublishedRow row;
    row.columns = {{"id", "r"},
                   {"system", "S"},
                   {"model", "N"},
                   {"machine", "M"},
                   {"strategy", "DP"},
                   {"precision", "fp32"},
                   {"metric", "throughput"},
                   {"unit", "samples/s"},
                   {"batch_per_device", each},
                   {"global_batch", all},
                   {"provenance", "read"}};
    row.devices = devices;
    row.value = 100;
    return row;
}

const ReplaySettings settings{{"network", "lenet5"}, {"machine", "summit"}, {"plan", "data"}, {"precision", "fp32"}};

ReplaySettings with(const std::string& name, const std::string& value) {
    ReplaySettings more = settings;
    more[name] = value;
    return more;
}

TEST(TrainingRun, TakesItsBatchFromTheRow) {
    EXPECT_EQ(training_run(row(8, "32", ""), settings).batch, 32);
    EXPECT_EQ(training_run(row(8, "", "256"), settings).batch, 32);
    EXPECT_EQ(training_run(row(8, "32", ""), with("copies", "2")).batch, 128) << "four devices a copy";
    EXPECT_EQ(training_run(row(8, "32", ""), with("global_batch", "2K")).batch, 256);
    EXPECT_EQ(training_run(row(8, "32", ""), with("placement", "4")).per_node, 4);
}

TEST(TrainingRun, TakesFromItsFrameworkWhatNobodyElseSays) {
    ReplaySettings chainer = with("framework", "chainermn");
    const TrainingRun run = training_run(row(8, "32", ""), chainer);
    EXPECT_EQ(run.plan, "data:allreduce=ring:bucket=1GB:overlap=off");
    EXPECT_EQ(run.loader, "inline");
    chainer["plan"] = "data:allreduce=halving";
    chainer["loader"] = "ahead";
    const TrainingRun other = training_run(row(8, "32", ""), chainer);
    EXPECT_EQ(other.plan, "data:allreduce=halving:bucket=1GB:overlap=off");
    EXPECT_EQ(other.loader, "");
}

TEST(TrainingRun, SaysWhatIsMissing) {
    const auto made = [](const PublishedRow& r, const ReplaySettings& s) { return [=] { (void)training_run(r, s); }; };
    EXPECT_THAT(made(row(8, "1", ""), {}), ThrowsMessage<InputError>(HasSubstr("no rule maps model 'N' to a network")));
    EXPECT_THAT(made(row(8, "", ""), settings), ThrowsMessage<InputError>(HasSubstr("the batch is not said")));
    EXPECT_THAT(made(row(0, "1", ""), settings), ThrowsMessage<InputError>(HasSubstr("number of devices")));
    EXPECT_THAT(made(row(8, "1", ""), with("layout", "nhwc")), ThrowsMessage<InputError>(HasSubstr("is not nchw")));
}

TEST(CollectiveRun, CountsBytesOfPairsForAll) {
    EXPECT_EQ(collective_run(row(8, "", ""), {{"collective", "allreduce"}, {"machine", "m"}, {"bytes", "1K"}}).bytes,
              1024);
    EXPECT_EQ(
        collective_run(row(8, "", ""), {{"collective", "alltoall"}, {"machine", "m"}, {"pair_bytes", "100"}}).bytes,
        800);
}

// What is published is what ships: the row's figure is what predict says of the job, but for the wait for its cards.
TEST(Replayer, AnswersARowWithThePredictionOfItsJob) {
    const PublishedRow published = row(12, "32", "");
    const TrainingRun run = training_run(published, settings);
    Replayer replayer;
    const predict::Job job = replayer.job_of(run);
    const Seconds step = predict::predict(job).points.at(0).figures.time.step;
    EXPECT_EQ(replayer.step(run).step, step);
    ReplayRules rules;
    rules.add(
        "[[rule]]\nwhy = \"all\"\nwhen = { system = \"S\" }\nnetwork = \"lenet5\"\nmachine = \"summit\"\n"
        "plan = \"data\"\nprecision = \"fp32\"\n",
        "r.toml");
    const auto answered = replay_rows({published}, rules, [](const PublishedRow&) { return true; });
    ASSERT_TRUE(answered.at(0).cold) << answered.at(0).skipped;
    const double waited = predict::waiting(12, job.machine.classes.front());
    EXPECT_DOUBLE_EQ(answered[0].cold->predicted, 32 * 12 / (step * waited).value);
}

// Of all that a step takes, computation is scaled until the step is met.
TEST(FittedScale, MeetsAStep) {
    Replayer replayer;
    const TrainingRun run = training_run(row(12, "32", ""), settings);
    const Seconds step = 1.5 * replayer.step(run).step;
    const double factor = fitted_scale(replayer, run, step);
    EXPECT_GT(factor, 1.5) << "messages take no longer";
    EXPECT_NEAR(replayer.step(run, {factor}).step / step, 1, 1e-3);
}

TEST(MegatronRow, IsLaidOutAsMegatronDoes) {
    MegatronRow small{.devices = 8, .global_batch = 64, .micro_batch = 2, .hidden = 1024, .heads = 16, .layers = 12};
    small.sequence = 2048;
    small.tensor = 2;
    small.data = 4;
    // 64 / 4 / 2 micro-batches; 50,257 words to the next multiple of 128 x 2: 50,432.
    EXPECT_EQ(plan_of(small), "pipe=1:microbatches=8,data=4:overlap=off:bucket=1TB:first=1TB,tensor=2");
    EXPECT_EQ(network_of(small), "gpt-h1024-a16-l12-v50432@2048");
    MegatronRow large = small;
    large.devices = 16;
    large.pipe = 2;
    EXPECT_THAT(plan_of(large), HasSubstr("pipe=2:microbatches=8:cut=blocks:recompute=blocks,"));
    large.tensor = 1;
    EXPECT_THAT(network_of(large), HasSubstr("-v50257@")) << "nobody shares it";
}

}  // namespace
}  // namespace rehearse::validate
