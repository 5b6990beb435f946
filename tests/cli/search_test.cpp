// SPDX-License-Identifier: Apache-2.0
// `rehearse search` as users start it: what it prints, and the batch scripts that it writes.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/own_machine.hpp"
#include "tests/cli/process.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class Search : public Program {
protected:
    Json json(const std::string& arguments) const {
        const Output output = run("search " + arguments + " --format json");
        EXPECT_EQ(output.code, 0) << output.err;
        return Json::parse(output.out);
    }
};

constexpr const char* small = "--model resnet50 --machine summit --devices 12 --global-batch 768 --top 2 ";

// 1,281,167 samples 90 times, in steps of 768 samples, on 2 nodes of 6 devices.
TEST_F(Search, SaysWhatAWholeTrainingTakes) {
    const Json found = json(std::string{small} + "--dataset 1281167 --epochs 90");
    ASSERT_EQ(found["plans"].size(), 2U);
    for (const Json& plan : found["plans"]) {
        EXPECT_EQ(plan["global_batch"], 768);
        const double training = 90 * 1281167.0 / 768 * plan["step_s"].get<double>();
        EXPECT_NEAR(plan["training_s"].get<double>(), training, 1e-9 * training);
        EXPECT_NEAR(plan["node_hours"].get<double>(), 2 * training / 3600, 1e-9 * training);
    }
}

// 8 samples for each of 4 devices are 32 of every plan, also of those that cut the network.
TEST_F(Search, TakesTheBatchOfEachDevice) {
    const Json found = json("--model lenet5 --machine dgx-a100 --devices 4 --batch 8 --top 4");
    ASSERT_FALSE(found["plans"].empty());
    for (const Json& plan : found["plans"]) EXPECT_EQ(plan["global_batch"], 32) << plan["plan"];
    const std::string help = run("search --help").out;
    EXPECT_THAT(help, HasSubstr("samples of one step for each device"));
    EXPECT_THAT(help, HasSubstr("default: --batch for each device"));
    EXPECT_THAT(help, Not(HasSubstr("copy of the network")));
}

// What is refused is named by what was tried, in no option that the user has not given.
TEST_F(Search, SaysWhichPlansCannotBe) {
    const Output output =
        run("search --model gpt-h96-a6-l8-v1024@64 --machine dgx-a100 --devices 8 --global-batch 8 --top 2 "
            "--memory-limit 1MB");
    EXPECT_EQ(output.code, 4) << output.out;
    EXPECT_THAT(output.err, HasSubstr("no plan was found"));
    EXPECT_THAT(output.err, Not(HasSubstr("--plan")));
    EXPECT_THAT(output.err, Not(HasSubstr("data=1'")));
    EXPECT_THAT(output.err, Not(HasSubstr("than a device has")));
}

// A plan that a search ranks under a framework is predicted the same under it, and is another than without.
TEST_F(Search, UnderAFrameworkIsAsPredictUnderIt) {
    const Json found = json(std::string{small} + "--framework pytorch-ddp"), without = json(small);
    EXPECT_EQ(found["configuration"]["framework"], "pytorch-ddp");
    const Json& best = found["plans"][0];
    EXPECT_GT(best["step_s"].get<double>(), without["plans"][0]["step_s"].get<double>());
    const Output predicted =
        run("predict --model resnet50 --machine summit --devices 12 --global-batch 768 "
            "--framework pytorch-ddp --format json --plan " +
            best["plan"].get<std::string>());
    ASSERT_EQ(predicted.code, 0) << predicted.err;
    const double step = Json::parse(predicted.out)["points"][0]["step_s"];
    EXPECT_NEAR(best["step_s"].get<double>() / step, 1, 1e-9) << "which has ten digits";
    const Output unknown = run(std::string{"search "} + small + "--framework pytorch-dpd");
    EXPECT_EQ(unknown.code, 2);
    EXPECT_THAT(unknown.err, HasSubstr("did you mean 'pytorch-ddp'"));
}

// With a critical batch of 768 twice as many epochs are needed, and a deadline means the training that they make.
TEST_F(Search, HoldsTheDeadlineToTheEpochsThatTheBatchNeeds) {
    const std::string training = std::string{small} + "--dataset 1281167 --epochs 1 --critical-batch 768 ";
    const Json free = json(training);
    const double takes = free["plans"][0]["training_s"].get<double>();
    EXPECT_NEAR(takes, 2 * 1281167.0 / 768 * free["plans"][0]["step_s"].get<double>(), 1e-9 * takes);
    EXPECT_EQ(run("search " + training + "--deadline " + std::to_string(0.75 * takes) + "s").code, 4);
}

// What the framework has settled, and what the network is read with, is part of what was searched.
TEST_F(Search, WritesAScriptThatRunsWhatWasSearched) {
    const Output searched = run("search " + std::string{small} + "--framework tensorflow-horovod --script {}/job.sh");
    ASSERT_EQ(searched.code, 0) << searched.err;
    EXPECT_THAT(read("job.sh"), HasSubstr(":allreduce=own:bucket=8MB"));
    EXPECT_THAT(read("job.sh"), Not(HasSubstr("control"))) << "which is only predicted";
    const std::string config = REHEARSE_SOURCE_DIR "/tests/data/huggingface/my-llama/config.json";
    const Output imported = run("search --model " + config +
                                " --sizes tokens=64 --allow-unknown --machine summit --devices 2 --global-batch 4 "
                                "--top 1 --script {}/llama.sh");
    ASSERT_EQ(imported.code, 0) << imported.err;
    EXPECT_THAT(read("llama.sh"), HasSubstr("--sizes tokens=64 --allow-unknown"));
}

// 3,125,000 steps take longer than the 48 hours that Perlmutter's queue lets a job run.
TEST_F(Search, SplitsATrainingThatNoQueueTakesWhole) {
    const std::string job =
        "search --model bert-large --machine perlmutter --devices 4 --global-batch 64 --precision mixed --optimizer "
        "adam --top 1 --dataset 200000000 ";
    const Output own = run(job + "--script {}/own.sh");
    ASSERT_EQ(own.code, 0) << own.err;
    EXPECT_THAT(own.err, HasSubstr("queue 'regular' of perlmutter takes a job for "));
    const std::string script = read("own.sh");
    EXPECT_THAT(script, HasSubstr("#SBATCH --time=48:00:00"));
    EXPECT_THAT(script, HasSubstr("--steps 3125000 --checkpoint bert-large.checkpoints --checkpoint-every "));
    EXPECT_THAT(script, HasSubstr(" --resume"));
    EXPECT_THAT(script, testing::ContainsRegex("\n# One of [5-9] jobs: submit it again"));
    const Output theirs = run(job + "--script {}/theirs.sh --command 'python train.py'");
    EXPECT_THAT(theirs.err, HasSubstr("goes on from what --command has saved"));
    EXPECT_THAT(read("theirs.sh"), Not(HasSubstr("--resume")));
}

// Polaris' queues begin at ten nodes.
TEST_F(Search, WarnsWhereNoQueueTakesAJob) {
    const std::string job =
        "search --model bert-large --machine polaris --devices 8 --global-batch 64 --precision mixed --optimizer adam "
        "--top 1 --dataset 64 ";
    const Output few = run(job + "--script {}/few.sh");
    ASSERT_EQ(few.code, 0) << few.err;
    EXPECT_THAT(few.err, HasSubstr("none takes a job of 2 nodes"));
    EXPECT_THAT(read("few.sh"), HasSubstr("#PBS -l select=2:mpiprocs=4"));
    EXPECT_THAT(run(job + "--queue debug --script {}/own.sh").err, Not(HasSubstr("none takes")));
}

TEST_F(Search, RefusesAScriptForUnlikeNodes) {
    write("unlike.toml", own_machine("unlike", {{1, 4}, {2, 2}}));
    const std::string job = "search --model lenet5 --machine unlike.toml --global-batch 64 --top 1 --script job.sh ";
    EXPECT_THAT(run(job + "--devices 8").err, HasSubstr("4 and 2 devices"));
    const Output alike = run(job + "--devices 4");
    EXPECT_EQ(alike.code, 0) << alike.err;
}

// The second node's devices are smaller: what is ranked fits them, as predict says.
TEST_F(Search, RanksWhatFitsTheSmallestDevice) {
    write("unlike.toml", own_machine("unlike", {{1, 2, "64GB"}, {1, 2, "4GB"}}));
    const std::string job = "--model resnet50 --machine unlike.toml --devices 4 --global-batch 256 ";
    const Json found = json(job + "--top 3");
    ASSERT_FALSE(found["plans"].empty());
    for (const Json& plan : found["plans"]) {
        EXPECT_LE(plan["memory_peak_bytes"].get<double>(), 4e9);
        EXPECT_EQ(run("predict " + job + "--plan " + plan["plan"].get<std::string>()).code, 0) << plan;
    }
}

TEST_F(Search, SaysWhichLimitLeavesNothing) {
    const std::string job = std::string{small} + "--dataset 1281167 --epochs 90 ";
    const Output late = run("search " + job + "--deadline 1s");
    EXPECT_EQ(late.code, 4);
    EXPECT_THAT(late.err, HasSubstr("are beyond the limits of the training (their shortest step takes "));

    const Output large = run("search " + job + "--memory-limit 1TB");
    EXPECT_EQ(large.code, 2);
    EXPECT_THAT(large.err, HasSubstr("--memory-limit 1 TB: a device of summit has "));
}

// What was simulated on a machine is of no use once a file that its own extends says something else.
TEST_F(Search, StoreKnowsAMachineByAllItsFiles) {
    write("parent.toml", own_machine("parent", {{2, 2}}));
    write("child.toml", "name = \"child\"\nextends = \"parent.toml\"\nsummary = \"of a test\"\n");
    const std::string job =
        "search --model lenet5 --machine child.toml --devices 4 --global-batch 64 --top 1 --store {}/plans.db "
        "--format json";
    const Output first = run(job);
    if (first.err.find("without SQLite") != std::string::npos) GTEST_SKIP() << first.err;
    ASSERT_EQ(first.code, 0) << first.err;
    EXPECT_EQ(Json::parse(run(job).out)["counts"]["simulated"], 0);
    write("parent.toml", own_machine("parent", {{2, 2}}, "1TFLOPS"));
    const Json again = Json::parse(run(job).out);
    EXPECT_EQ(again["counts"]["known"], 0);
    EXPECT_GT(again["plans"][0]["step_s"], Json::parse(first.out)["plans"][0]["step_s"]);
}

}  // namespace
}  // namespace rehearse
