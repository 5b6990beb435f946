// SPDX-License-Identifier: Apache-2.0
// What scripts rely on where something trains: documents of `run`, and of clusters that run their jobs.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/cli/json_program.hpp"

namespace rehearse {
namespace {

using testing::HasSubstr;

class Contract : public JsonProgram {};

TEST_F(Contract, RunTrainsIn16Bits) {
    const Json trained =
        json("run --model lenet5 --precision mixed --batch 4 --steps 2 --check-gradients --loss-scale 256");
    EXPECT_EQ(trained["precision"], "mixed");
    EXPECT_LE(trained["gradient_error"], trained["gradient_tolerance"]);
    EXPECT_EQ(trained["steps"][0]["loss_scale"], 256);
    EXPECT_EQ(trained["steps"][0]["skipped"], false);
    EXPECT_EQ(run("run --precision mixed --loss-scale 0").code, 2);
}

TEST_F(Contract, RunTellsPixelsApartAndGoesOnFromACheckpoint) {
    const std::string train = "run --model deeplabv3plus-small --data climate --batch 1 --checkpoint saved --steps ";
    const Output first = run(train + "1");
    if (first.err.find("no HDF5") != std::string::npos) GTEST_SKIP() << first.err;
    ASSERT_EQ(first.code, 0) << first.err;
    const Output again = run(train + "2");
    EXPECT_EQ(again.code, 2);
    EXPECT_THAT(again.err, HasSubstr("there is step-000001.h5 already; --resume goes on from it"));
    const Json resumed = json(train + "2 --resume");
    ASSERT_EQ(resumed["steps"].size(), 1U);
    EXPECT_EQ(resumed["steps"][0]["step"], 1);
    EXPECT_GT(resumed["steps"][0]["mean_iou"], 0);
    EXPECT_EQ(run("run --resume").code, 2);
    EXPECT_EQ(run("run --model lenet5 --data idx:nowhere").code, 2);
}

// Steps count on through the networks that it grows through.
TEST_F(Contract, RunSaysWhichStepDiverged) {
    const std::string wild = "run --model gpt-h16-a2-l2-v20@8 --batch 4 --steps 3 --learning-rate 1e30 ";
    const Json document = json(wild + "--trace wild.csv", 1);
    EXPECT_EQ(document["diverged_at_step"], 1);
    EXPECT_EQ(document["steps"].size(), 3U);
    EXPECT_TRUE(std::filesystem::exists(path("wild.csv")));
    for (const char* how : {"", "--format json", "--save wild.h5 --force --grow 1:gpt-h16-a2-l4-v20@8"}) {
        const Output out = run(wild + how);
        if (out.err.find("no HDF5") != std::string::npos) GTEST_SKIP() << out.err;
        EXPECT_EQ(out.code, 1) << how;
        EXPECT_THAT(out.err, HasSubstr("the training diverged: the loss of step 1 is ")) << how;
    }
}

// What is said of a target is what was measured.
TEST_F(Contract, RunSaysTheMeanLossThatATargetIsHeldTo) {
    const std::string target = "run --model lenet5 --batch 4 --steps 3 --target-loss 0.001 --target-samples 8 ";
    const Json trained = json(target);
    const double last = trained["steps"][1]["loss"].get<double>() + trained["steps"][2]["loss"].get<double>();
    EXPECT_NEAR(trained["mean_loss"].get<double>(), last / 2, 1e-12);
    EXPECT_THAT(run(target).out, HasSubstr("over the last 8, asked for 0.001 over 8"));
}

TEST_F(Contract, RunGoesOnUnderTheHeadOfItsTable) {
    const std::string train = "run --model lenet5 --batch 4 --checkpoint goes/on --steps ";
    const Output first = run(train + "1");
    if (first.err.find("no HDF5") != std::string::npos) GTEST_SKIP() << first.err;
    ASSERT_EQ(first.code, 0) << first.err;
    EXPECT_THAT(run(train + "2 --resume").out, testing::StartsWith("step        loss"));
}

// At this scale every gradient overflows: nothing is written in their place.
TEST_F(Contract, RunSaysThatASkippedStepHasNoGradients) {
    const Output out = run(
        "run --model lenet5 --batch 4 --steps 1 --precision fp16 --loss-scale 16777216 --save-gradients gradients.h5");
    if (out.err.find("no HDF5") != std::string::npos) GTEST_SKIP() << out.err;
    EXPECT_EQ(out.code, 1);
    EXPECT_THAT(out.err, HasSubstr("--save-gradients gradients.h5: not written, as the last step was skipped"));
    EXPECT_FALSE(std::filesystem::exists(path("gradients.h5")));
}

// Two blocks become four: embedding, final norm and 2 x 6 layers stay, 2 x 6 are new, or begin as those before them.
// The first steps are those of the small network alone.
TEST_F(Contract, RunGrowsANetwork) {
    const std::string small = "run --model gpt-h16-a2-l2-v20@8 --batch 4 --learning-rate 0.1 --save grown.h5 --force ";
    const std::string grows = small + "--steps 5 --check-gradients --grow 3:gpt-h16-a2-l4-v20@8 ";
    const Output tried = run(grows + "--format json");
    if (tried.err.find("no HDF5") != std::string::npos) GTEST_SKIP() << tried.err;
    ASSERT_EQ(tried.code, 0) << tried.err;
    const Json grown = Json::parse(tried.out), copied = json(grows + "--copy-layers"),
               alone = json(small + "--steps 3");
    ASSERT_EQ(grown["steps"].size(), 5U);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(grown["steps"][i]["loss"], alone["steps"][i]["loss"]);
    EXPECT_EQ(grown["samples"], 20);
    EXPECT_EQ(grown["growth"][0]["steps"], 3);
    EXPECT_EQ(grown["growth"][1]["from_step"], 3);
    EXPECT_EQ(grown["growth"][1]["kept_layers"], 14);
    EXPECT_EQ(grown["growth"][1]["new_layers"], 12);
    EXPECT_EQ(copied["growth"][1]["copied_layers"], 12);
    EXPECT_NE(copied["steps"][3]["loss"], grown["steps"][3]["loss"]);
    EXPECT_EQ(run("run --model lenet5 --grow 2:vgg8 --steps 4").code, 2) << "without --save";
    EXPECT_EQ(run(small + "--steps 3 --grow 3:gpt-h16-a2-l4-v20@8").code, 2) << "when all is over";
    EXPECT_THAT(run(small + "--steps 3 --grow 1:gpt-h32-a2-l4-v20@8").err,
                HasSubstr("is 20x16, the network has 20x32"));
}

#if REHEARSE_HAS_SIM
// Steps of each network as they are predicted by themselves.
TEST_F(Contract, PredictAddsUpWhatANetworkGrowsThrough) {
    const std::string predict = "predict --machine summit --devices 2,6 --batch 4 --model ";
    const Json grown = json(predict + "bert-base --steps 1000 --grow 400:bert-large");
    const Json small = json(predict + "bert-base"), large = json(predict + "bert-large");
    for (std::size_t i = 0; i < 2; ++i) {
        const double step = small["points"][i]["step_s"], later = large["points"][i]["step_s"];
        EXPECT_DOUBLE_EQ(grown["growth_totals"][i]["time_s"].get<double>(), 400 * step + 600 * later);
        EXPECT_DOUBLE_EQ(grown["growth_totals"][i]["last_alone_s"].get<double>(), 1000 * later);
        EXPECT_DOUBLE_EQ(grown["points"][i]["step_s"].get<double>(), later);
    }
}

// b comes while a trains on both devices: a ends its step, is saved, and goes on with one rank.
TEST_F(Contract, ClustersRunTheirJobs) {
    write("jobs.csv",
          "name,model,arrival_s,samples,devices,batch,max_devices\n"
          "a,lenet5,0,4800,1,16,2\nb,lenet5,0.5,160,1,16,1\n");
    write("speeds.csv",
          "model,devices,batch_per_device,step_s\nlenet5,1,8,0.004\nlenet5,1,16,0.008\n"
          "lenet5,2,8,0.005\nlenet5,2,16,0.009\n");
    const std::string cluster =
        "cluster --jobs jobs.csv --speeds speeds.csv --devices 2 --run ran --policy elastic --start 1s --restart 1s";
    const Output tried = run(cluster + " --format json");
    if (tried.err.find("no HDF5") != std::string::npos) GTEST_SKIP() << tried.err;
    ASSERT_EQ(tried.code, 0) << tried.err;
    const Json found = Json::parse(tried.out), ran = found["runs"][0];
    EXPECT_EQ(ran["complete"], 2);
    EXPECT_EQ(ran["predicted_makespan_s"], found["policies"][0]["makespan_s"]);
    const double error = ran["predicted_makespan_s"].get<double>() / ran["makespan_s"].get<double>() - 1;
    EXPECT_NEAR(ran["makespan_error"].get<double>(), error, 1e-9);
    double samples = 0;
    for (const Json& row : found["run_speeds"]) {
        samples += row["steps"].get<double>() * row["global_batch"].get<double>();
    }
    EXPECT_EQ(samples, 4800 + 160);
    EXPECT_GE(ran["restarts"], 1);
    EXPECT_THAT(read("ran/elastic/000-a/start-1.json"), HasSubstr("\"samples\": "));
    EXPECT_EQ(run(cluster).code, 2) << "the folder is not empty any more";
}
#endif

}  // namespace
}  // namespace rehearse
