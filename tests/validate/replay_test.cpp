// SPDX-License-Identifier: Apache-2.0
// From rows to runs. Oracle: worked out by hand from the row; and what predict says of the same job.
#include "validate/replay.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/error.hpp"
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

ReplayRules rules_of(const std::string& more = "") {
    ReplayRules rules;
    rules.add(
        "[[rule]]\nwhy = \"all\"\nwhen = { system = \"S\" }\nnetwork = \"lenet5\"\nmachine = \"summit\"\n"
        "plan = \"data\"\nprecision = \"fp32\"\n" +
            more,
        "r.toml");
    return rules;
}

std::vector<ReplayedRow> answered(std::vector<PublishedRow> rows, const std::string& more = "",
                                  Pilots pilots = Pilots::one) {
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].columns["id"] = fmt::format("r{}", i);
    return replay_rows(
        std::move(rows), rules_of(more), [](const PublishedRow&) { return true; }, {}, pilots);
}

// 32 samples on each device.
void expect_throughput(const Answer& answer, const predict::Point& point) {
    const double samples = 32 * static_cast<double>(point.figures.devices);
    EXPECT_DOUBLE_EQ(answer.predicted, samples / point.figures.time.step.value);
    EXPECT_NEAR(answer.low, samples / point.band.high.value, 1e-9 * answer.low);
    EXPECT_NEAR(answer.high, samples / point.band.low.value, 1e-9 * answer.high);
}

// What is published is what ships: the row's figure and its band are what predict says of the job, to the last digit.
TEST(Replayer, AnswersARowWithThePredictionOfItsJob) {
    for (const std::string more : {"", "framework = \"pytorch-ddp\"\n", "error = \"0.3\"\nupdate_passes = \"20\"\n"}) {
        SCOPED_TRACE(more);
        const PublishedRow published = row(12, "32", "");
        Replayer replayer;
        const predict::Job job = replayer.job_of(training_run(published, rules_of(more).settings(published)));
        const auto rows = answered({published}, more);
        ASSERT_TRUE(rows.at(0).cold) << rows[0].skipped;
        expect_throughput(*rows[0].cold, predict::predict(job).points.at(0));
    }
}

TEST(Replayer, AnswersAnAnchoredRowWithThePredictionOfItsPilots) {
    PublishedRow node = row(6, "32", ""), two = row(12, "32", ""), many = row(48, "32", "");
    node.value = 9000;
    two.value = 14000;
    const auto rows = answered({node, two, many}, "", Pilots::two);
    Replayer replayer;
    predict::Job job = replayer.job_of(training_run(many, rules_of().settings(many)));
    job.pilots = {{.devices = 6, .samples_per_s = 9000}};
    ASSERT_TRUE(rows.at(2).anchored && rows[2].twice) << rows[2].skipped;
    EXPECT_EQ(rows[2].anchor, "r0");
    EXPECT_EQ(rows[2].second, "r1");
    EXPECT_FALSE(rows[1].twice) << "nothing lies between it and its anchor";
    expect_throughput(*rows[2].anchored, predict::predict(job).points.at(0));
    job.pilots.push_back({.devices = 12, .samples_per_s = 14000});
    expect_throughput(*rows[2].twice, predict::predict(job).points.at(0));
}

TEST(MegatronRow, IsLaidOutAsMegatronDoes) {
    MegatronRow small{.devices = 8, .global_batch = 64, .micro_batch = 2, .hidden = 1024, .heads = 16, .layers = 12};
    small.sequence = 2048;
    small.tensor = 2;
    small.data = 4;
    // 64 / 4 / 2 micro-batches; 50,257 words to the next multiple of 128 x 2: 50,432.
    EXPECT_EQ(plan_of(small), "pipe=1:microbatches=8,data=4:overlap=off:bucket=1TB:first=1TB,tensor=2");
    EXPECT_EQ(network_of(small), "gpt-h1024-a16-l12-v50432@2048");
    MegatronRow alone = small;
    alone.tensor = 1;
    EXPECT_THAT(network_of(alone), HasSubstr("-v50257@")) << "as vTrain's server takes, whose words nobody shares";
    MegatronRow large = small;
    large.devices = 16;
    large.pipe = 2;
    EXPECT_THAT(plan_of(large), HasSubstr("pipe=2:microbatches=8:cut=blocks:scatter=on:recompute=blocks,"));
    large.tensor = 1;
    EXPECT_THAT(network_of(large), HasSubstr("-v50304@")) << "393 times 128";
}

// 10^27 ranks are not counted.
TEST(MegatronRow, IsRefusedWhoseRanksAreNotItsGpus) {
    const std::string header =
        "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,"
        "data parallelism,pipeline parallelism,iteration time (ms)\n";
    const auto read = [&](const std::string& gpus, const std::string& axes) {
        return read_megatron(header + gpus + ",32,4,1024,16,24,1024," + axes + ",219.7\n", "t.csv", "t");
    };
    EXPECT_EQ(read("8", "2,2,2").at(0).devices, 8);
    for (const auto& [gpus, axes] : {std::pair{"8", "2,2,4"}, std::pair{"9", "2,2,2"}, std::pair{"8", "3,2,1"},
                                     std::pair{"8", "1000000000,1000000000,1000000000"}}) {
        EXPECT_THAT(([&, gpus = gpus, axes = axes] { read(gpus, axes); }),
                    ThrowsMessage<InputError>(HasSubstr(fmt::format("are not {} GPUs", gpus))));
    }
}

}  // namespace
}  // namespace rehearse::validate
