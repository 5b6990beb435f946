// SPDX-License-Identifier: Apache-2.0
// `rehearse validate --set FILE.csv`: published runs by a user's own rows.
#include <gmock/gmock.h>

#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/process.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

class Published : public Program {
protected:
    const std::string header =
        "id,system,machine,device,n_devices,model,precision,strategy,batch_per_device,global_batch,metric,value,unit,"
        "extra,provenance\n";
    // A machine of DGX-1s, whose links are fast: two devices are nearly twice as fast as one.
    std::string row(const std::string& id, int devices, const std::string& metric, double value,
                    const std::string& unit, const std::string& provenance = "read:table") const {
        return fmt::format(
            "{},Bench,DGX-1-V100,V100,{},ResNet-50,fp32,sync data-parallel,64,{},{},{},{},synthetic,{}\n", id, devices,
            64 * devices, metric, value, unit, provenance);
    }
    Json validated(const std::string& rows, const std::string& options = "") {
        write("rows.csv", header + rows);
        const Output output = run("validate --set rows.csv --format json " + options);
        EXPECT_EQ(output.code, 0) << output.err;
        return Json::parse(output.out);
    }
};

// Whatever the published figure of one device is, two devices are predicted from it.
TEST_F(Published, RowsAreAnchoredOnTheSmallestRunOfTheirKind) {
    for (const double one : {100.0, 1000.0}) {
        const Json json = validated(row("a", 1, "train_throughput", one, "images/s") +
                                    row("b", 2, "train_throughput", 2 * one, "images/s"));
        const Json& a = json["rows"][0];
        const Json& b = json["rows"][1];
        EXPECT_EQ(a["anchor"], "") << "nothing smaller to anchor it on";
        EXPECT_EQ(b["anchor"], "a");
        EXPECT_LT(b["predicted"], 2 * one);
        EXPECT_GT(b["predicted"], 1.8 * one);
        EXPECT_LE(b["low"], b["predicted"]);
        EXPECT_GE(b["high"], b["predicted"]);
        EXPECT_EQ(a["cold_predicted"],
                  validated(row("c", 1, "train_throughput", 7, "images/s"))["rows"][0]["predicted"])
            << "a cold prediction knows no published figure";
        EXPECT_EQ(json["summary"]["anchored"]["rows"], 1);
        EXPECT_EQ(json["summary"]["cold"]["rows"], 2);
    }
}

// Of a row it is told whether too much was predicted or too little; groups sum up how much it was.
TEST_F(Published, ErrorsOfRowsHaveASign) {
    const Json json =
        validated(row("little", 1, "train_throughput", 1e6, "images/s") + row("much", 1, "iteration_time", 1e-3, "ms"));
    EXPECT_LT(json["rows"][0]["error"], 0);
    EXPECT_GT(json["rows"][1]["error"], 0);
    EXPECT_GT(json["groups"][0]["median_error"], 0);
}

// Bands that hold nine in ten of all other systems' rows cannot be told of the rows that a filter leaves.
TEST_F(Published, BandsOfOtherSystemsNeedAllRows) {
    EXPECT_THAT(run("validate --set published --filter Summit").out, Not(HasSubstr("all other systems' rows")));
}

// A DGX-1 has eight devices: a user would have measured one of them, which may be slower than eight times one device.
TEST_F(Published, RunsOnSeveralNodesAreAnchoredOnAWholeOne) {
    const Json json = validated(
        row("one", 1, "train_throughput", 100, "images/s") + row("four", 4, "train_throughput", 390, "images/s") +
        row("node", 8, "train_throughput", 500, "images/s") + row("two", 16, "train_throughput", 900, "images/s"));
    EXPECT_EQ(json["rows"][1]["anchor"], "one");
    EXPECT_EQ(json["rows"][2]["anchor"], "one");
    EXPECT_EQ(json["rows"][3]["anchor"], "node");
    EXPECT_LT(json["rows"][3]["predicted"], 1000);
    EXPECT_GT(json["rows"][3]["predicted"], 850);
}

TEST_F(Published, WhatWasNeverMeasuredInKindIsAnchoredOnly) {
    const auto cosmoflow = [](int devices, double rate) {
        return fmt::format(
            "c{},Bench,Cori-KNL,KNL-7250,{},CosmoFlow-small,fp32,sync data-parallel,1,{},train_throughput,{},"
            "samples/s,,read\n",
            devices, devices, devices, rate);
    };
    const Json json = validated(cosmoflow(1, 4) + cosmoflow(2, 8));
    EXPECT_THAT(json["rows"][0]["skipped"].get<std::string>(), HasSubstr("3-D convolutions"));
    EXPECT_EQ(json["rows"][1]["anchor"], "c1");
    EXPECT_LT(json["rows"][1]["error"], 0.1);
    EXPECT_FALSE(json["rows"][1].contains("cold_error"));
    EXPECT_THAT(json["rows"][1]["cold_skipped"].get<std::string>(), HasSubstr("3-D convolutions"));
    EXPECT_FALSE(json["summary"].contains("cold"));
}

// BERT by a framework that runs attention's kernels one by one is slower than the machine's own, in f16 more than in
// f32.
TEST_F(Published, FrameworksMayMoveValuesMoreOften) {
    write("software.toml",
          "[[rule]]\nwhy = 'test'\nwhen = { system = 'Eager' }\nsoftware = 'megatron-deepspeed-2023'\n"
          "[[rule]]\nwhy = 'test'\nwhen = { system = 'Fused' }\nsoftware = 'megatron-lm-2021'\n"
          "[[rule]]\nwhy = 'test'\nwhen = { system = 'Unknown' }\nsoftware = 'megatron-lm-2020'\n");
    const auto bert = [](const char* system, const char* precision) {
        return fmt::format(
            "{0}{1},{0},DGX-1-V100,V100,1,BERT-base@128,{1},one GPU,8,8,train_throughput,100,"
            "sequences/s,,read\n",
            system, precision);
    };
    const Json rows = validated(bert("Fused", "fp32") + bert("Eager", "fp32") + bert("Fused", "fp16 mixed") +
                                    bert("Eager", "fp16 mixed") + bert("Unknown", "fp32"),
                                "--rules software.toml")["rows"];
    const auto rate = [&](int i) { return rows[static_cast<std::size_t>(i)]["predicted"].get<double>(); };
    EXPECT_GT(rate(0), 1.02 * rate(1));
    EXPECT_GT(rate(2) / rate(3), rate(0) / rate(1));
    EXPECT_THAT(rows[4]["skipped"].get<std::string>(), HasSubstr("no software 'megatron-lm-2020' is known"));
}

// ResNet-50's convolutions read 10.6 and write 10.6 million values an image, forward and twice backward: turned, that
// is 4 bytes a value more at 777.8 GB/s. Of Adam each pass over BERT-base's 110 million parameters takes 0.56 ms.
TEST_F(Published, HabitsOfFrameworksTakeTheirBytes) {
    write("habits.toml",
          "[[rule]]\nwhy = 'test'\nwhen = { system = 'Nchw' }\nlayout = 'nchw'\n"
          "[[rule]]\nwhy = 'test'\nwhen = { system = 'Loose' }\nupdate_passes = '42'\n"
          "[[rule]]\nwhy = 'test'\nwhen = { system = 'Odd' }\nlayout = 'diagonal'\n"
          "[[rule]]\nwhy = 'test'\nwhen = { model = 'BERT.*' }\noptimizer = 'adam'\n");
    const auto one = [](const char* system, const char* model, const char* precision) {
        return fmt::format("{0}{2},{0},DGX-1-V100,V100,1,{1},{2},one GPU,8,8,iteration_time,100,ms,,read\n", system,
                           model, precision);
    };
    const Json rows = validated(one("Nhwc", "ResNet-50", "fp16 mixed") + one("Nchw", "ResNet-50", "fp16 mixed") +
                                    one("Nhwc", "ResNet-50", "fp32") + one("Nchw", "ResNet-50", "fp32") +
                                    one("Joined", "BERT-base@128", "fp32") + one("Loose", "BERT-base@128", "fp32") +
                                    one("Odd", "ResNet-50", "fp32"),
                                "--rules habits.toml")["rows"];
    const auto ms = [&](int i) { return rows[static_cast<std::size_t>(i)]["predicted"].get<double>(); };
    EXPECT_NEAR(ms(1) - ms(0), 3 * 8 * 21.3e6 * 4 / 777.6e9 * 1e3, 2.0) << "and the launches of 300 kernels";
    EXPECT_EQ(ms(3), ms(2)) << "in f32 there is nothing to turn";
    EXPECT_NEAR(ms(5) - ms(4), (42 - 7) * 110e6 * 4 / 777.6e9 * 1e3, 1.5);
    EXPECT_THAT(rows[6]["skipped"].get<std::string>(), HasSubstr("'diagonal' is not nchw"));
}

// 8 images of 602,112 bytes stacked at 0.1 GB/s and copied at 0.2 GB/s: 72.25 ms a step that no scaling of computation
// changes, so that a run on two cards, anchored on one of 100 ms, takes as long and what their sums add.
TEST_F(Published, LoadersInsideTheTrainingProcessAreNotComputation) {
    write("loaders.toml",
          "[[rule]]\nwhy = 'test'\nwhen = { system = 'Inside' }\nloader = 'inline:stack=0.1GBps:copy=0.2GBps'\n"
          "[[rule]]\nwhy = 'test'\nwhen = { system = 'Odd' }\nloader = 'sideways'\n");
    const auto one = [](const char* system, int devices) {
        return fmt::format(
            "{0}{1},{0},DGX-1-V100,V100,{1},ResNet-50,fp32,sync data-parallel,8,{2},iteration_time,100,ms,,read\n",
            system, devices, 8 * devices);
    };
    const Json rows = validated(one("Ahead", 1) + one("Inside", 1) + one("Inside", 2) + one("Odd", 1),
                                "--rules loaders.toml")["rows"];
    const auto ms = [&](int i, const char* key) { return rows[static_cast<std::size_t>(i)][key].get<double>(); };
    const double load = 8 * 602.112e3 * (1 / 0.1e9 + 1 / 0.2e9) * 1e3;
    EXPECT_NEAR(ms(1, "predicted") - ms(0, "predicted"), load, 0.01);
    EXPECT_GT(ms(2, "predicted"), 100);
    EXPECT_LT(ms(2, "predicted"), 103);
    EXPECT_THAT(rows[3]["skipped"].get<std::string>(), HasSubstr("--loader sideways"));
}

// 1,281,167 images of an epoch at r images/s take 1,281,167 / r seconds; a step of 64 takes 64 / r.
TEST_F(Published, MetricsAgree) {
    const Json json =
        validated(row("t", 1, "train_throughput", 300, "images/s") + row("e", 1, "epoch_time", 4000, "s") +
                  row("m", 1, "epoch_time", 60, "min") + row("i", 1, "iteration_time", 200, "ms"));
    const double rate = json["rows"][0]["predicted"];
    EXPECT_NEAR(json["rows"][1]["predicted"].get<double>() * rate, 1281167, 1);
    EXPECT_NEAR(json["rows"][2]["predicted"].get<double>() * 60 * rate, 1281167, 1);
    EXPECT_NEAR(json["rows"][3]["predicted"].get<double>() * 1e-3 * rate, 64, 1e-3);
}

// Twice the layers take twice the time, and do twice the work: as many operations a second. A rule names the run that
// a figure is relative to: another network, another batch, another number of devices.
TEST_F(Published, EfficienciesMayCompareTheOperationsOfUnlikeNetworks) {
    write("flops.toml",
          "[[rule]]\nwhy = 'test'\nwhen = { model = 'GPT-(.*)' }\nnetwork = 'gpt-h512-a8-l{model.1}-v1024@256'\n"
          "optimizer = 'adam'\nagainst_network = 'gpt-h512-a8-l8-v1024@256'\nagainst_batch = '8'\n"
          "[[rule]]\nwhy = 'test'\nwhen = { system = 'Flops' }\nmeasure = 'flop_efficiency'\nbaseline = '1'\n"
          "[[rule]]\nwhy = 'test'\nwhen = { system = 'Samples' }\nmeasure = 'efficiency'\nbaseline = '1'\n");
    const auto one = [](const char* system, int layers, int batch, int devices) {
        return fmt::format("{0}{1}{2}{3},{0},DGX-1-V100,V100,{3},GPT-{1},mixed,sync data-parallel,{2},,e,1,%,,read\n",
                           system, layers, batch, devices);
    };
    const Json rows = validated(one("Flops", 8, 8, 1) + one("Flops", 16, 8, 1) + one("Samples", 16, 8, 1) +
                                    one("Flops", 8, 1, 1) + one("Flops", 8, 8, 8),
                                "--rules flops.toml")["rows"];
    const auto percent = [&](int i) { return rows[static_cast<std::size_t>(i)]["predicted"].get<double>(); };
    EXPECT_NEAR(percent(0), 100, 1e-9);
    EXPECT_NEAR(percent(1), 100, 5) << "but for the words, which both have once";
    EXPECT_NEAR(percent(2), 50, 4);
    EXPECT_LT(percent(3), 80) << "a small batch leaves a device idle";
    EXPECT_LT(percent(4), 99) << "sums of gradients";
    EXPECT_GT(percent(4), 50);
}

// 100 nodes of Summit keep all of 3,000 samples of 70 MB: 210 GB written at 2.1 GB/s are 100 s, read once at 2.5 TB/s
// they are 0.084 s, and 207.9 GB come in over two cards of 12.5 GB/s.
TEST_F(Published, StagingTakesAsLongAsTheSlowestOfItsParts) {
    write("staging.toml",
          "[[rule]]\nwhy = 'test'\nwhen = { model = 'staging' }\nmeasure = 'staging_time'\nstage = 'alpine'\n"
          "input = 'nvme'\ndataset = '3000'\nsample = '70MB'\nmachine = 'summit'\n"
          "[[rule]]\nwhy = 'test'\nwhen = { extra = 'keep (.*)' }\nkeep = '{extra.1}'\n");
    const auto kept = [](const char* extra) {
        return fmt::format("a,Bench,Summit,NVMe,100,staging,-,stage-in,,,s,2,min,{},read\n", extra);
    };
    const Json rows = validated(kept("keep 3000") + kept("all"), "--rules staging.toml")["rows"];
    EXPECT_NEAR(rows[0]["predicted"].get<double>(), 100.0 / 60, 1e-6);
    EXPECT_EQ(rows[0]["anchor"], "");
    EXPECT_THAT(rows[1]["skipped"].get<std::string>(), HasSubstr("how many of them a node keeps"));
}

TEST_F(Published, WhatIsMissingIsSaid) {
    const Json json =
        validated(row("ok", 1, "train_throughput", 300, "images/s") +
                  "x,Bench,Abacus,D,1,ResNet-50,fp32,sync data-parallel,64,64,train_throughput,3,images/s,,read\n"
                  "y,Bench,DGX-1-V100,V100,1,SuperNet,fp32,sync data-parallel,64,64,train_throughput,3,images/s,,read\n"
                  "z,Bench,DGX-1-V100,V100,1,ResNet-50,fp32,sync data-parallel,64,64,top1_accuracy,75,%,,read\n" +
                  row("w", 1, "train_throughput", 300, "images/s", "memory"));
    EXPECT_THAT(json["rows"][1]["skipped"].get<std::string>(), HasSubstr("no rule maps machine 'Abacus'"));
    EXPECT_THAT(json["rows"][2]["skipped"].get<std::string>(), HasSubstr("no rule maps model 'SuperNet'"));
    EXPECT_THAT(json["rows"][3]["skipped"].get<std::string>(), HasSubstr("top1_accuracy"));
    EXPECT_EQ(json["summary"]["cold"]["rows"], 1);
    EXPECT_EQ(json["summary"]["memory"]["rows"], 1) << "figures from memory are shown apart";
}

TEST_F(Published, BadInputIsRefused) {
    EXPECT_EQ(run("validate --set publisht").code, 2);
    EXPECT_THAT(run("validate --set publisht").err, HasSubstr("did you mean 'published'?"));
    EXPECT_EQ(run("validate --set absent.csv").code, 2);
    write("bad.csv", "id,system\na,b\n");
    EXPECT_THAT(run("validate --set bad.csv").err, HasSubstr("no column 'machine'"));
    EXPECT_EQ(run("validate --set published --samples bad.csv").code, 2);
    EXPECT_EQ(run("validate --set published --filter nothing-like-it").code, 2);
}

}  // namespace
}  // namespace rehearse
