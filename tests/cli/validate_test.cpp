// SPDX-License-Identifier: Apache-2.0
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

class Validate : public Program {
protected:
    const std::string header = "device,precision,direction,W,H,C,N,K,R,S,pad_h,pad_w,stride_h,stride_w,time_us\n";
};

TEST_F(Validate, HasTheDocumentedKeys) {
    const Output output = run("validate --set deepbench --filter '^v100 f32' --format json");
    ASSERT_EQ(output.code, 0) << output.err;
    const Json json = Json::parse(output.out);
    EXPECT_EQ(json["schema"], "rehearse.validation/1");
    ASSERT_EQ(json["groups"].size(), 7U) << "three passes of convolutions and of recurrent layers, all products";
    for (const Json& group : json["groups"]) {
        for (const char* key :
             {"set", "device", "precision", "pass", "kind", "rows", "median_error", "p90_error", "in_band"})
            EXPECT_TRUE(group.contains(key)) << key;
    }
    for (const char* key : {"id", "published", "predicted", "error", "low", "high", "anchor", "source"})
        EXPECT_TRUE(json["rows"][0].contains(key)) << key;
    EXPECT_EQ(json["summary"]["cold"]["rows"], json["rows"].size());
}

// What docs/device_prices.md promises, with a tenth to spare for another compiler's rounding.
TEST_F(Validate, KeepsTheErrorsThatAreDocumented) {
    const Json json = Json::parse(run("validate --filter '^(v100|p100|titanx-maxwell|knl7250) ' --format json").out);
    EXPECT_LT(json["summary"]["conv2d"]["median_error"], 0.09);
    EXPECT_LT(json["summary"]["conv2d"]["p90_error"], 0.35);
    EXPECT_LT(json["summary"]["matmul"]["median_error"], 0.04);
    EXPECT_LT(json["summary"]["matmul"]["p90_error"], 0.22);
    EXPECT_LT(json["summary"]["recurrent"]["median_error"], 0.05);
    EXPECT_LT(json["summary"]["recurrent"]["p90_error"], 0.3);
    EXPECT_GT(json["summary"]["cold"]["in_band"], 0.85);
    EXPECT_LT(json["summary"]["cold"]["in_band"], 0.97);
}

TEST_F(Validate, PricesAFileAndSaysWhatItHasSeen) {
    // The first is a row of the sheets, the second is not, the third is on a device without a model.
    write("rows.csv", header +
                          "V100,fp32,fwd,7,7,256,8,512,3,3,1,1,1,1,121\n"
                          "V100,fp32,fwd,20,20,200,8,300,3,3,1,1,1,1,500\n"
                          "Abacus,fp32,fwd,20,20,200,8,300,3,3,1,1,1,1,500\n");
    const Output output = run("validate --samples rows.csv --format json");
    ASSERT_EQ(output.code, 0) << output.err;
    const Json json = Json::parse(output.out);
    ASSERT_EQ(json["rows"].size(), 3U);
    EXPECT_EQ(json["rows"][0]["anchor"], true);
    EXPECT_LT(json["rows"][0]["error"], 0.2);
    EXPECT_EQ(json["rows"][1]["anchor"], false);
    EXPECT_THAT(json["rows"][2]["skipped"].get<std::string>(), HasSubstr("no price model of Abacus"));
    EXPECT_EQ(json["summary"]["cold"]["rows"], 1);
    EXPECT_THAT(run("validate --samples rows.csv").out, HasSubstr("models fitted on 183 kernels"));
}

TEST_F(Validate, FailsOverWhatWasAllowed) {
    write("slow.csv", header + "V100,fp32,fwd,20,20,200,8,300,3,3,1,1,1,1,500000\n");
    EXPECT_EQ(run("validate --samples slow.csv").code, 0);
    const Output output = run("validate --samples slow.csv --fail-over 15%");
    EXPECT_EQ(output.code, 1);
    EXPECT_THAT(output.err, HasSubstr("is over 15.0 %"));
}

TEST_F(Validate, RefusesWhatItCannotRead) {
    write("bad.csv", header + "V100,fp32,fwd,7,7,x,8,512,3,3,1,1,1,1,121\n");
    const Output output = run("validate --samples bad.csv");
    EXPECT_EQ(output.code, 2);
    EXPECT_THAT(output.err, HasSubstr("bad.csv:2: C is 'x'"));
    EXPECT_EQ(run("validate --samples absent.csv").code, 2);
    EXPECT_EQ(run("validate --filter '('").code, 2);
    EXPECT_EQ(run("validate --filter nothing-like-it").code, 2);
    EXPECT_EQ(run("validate --fail-over much").code, 2);
    write("other.csv", header + "Abacus,fp32,fwd,20,20,200,8,300,3,3,1,1,1,1,500\n");
    EXPECT_EQ(run("validate --samples other.csv").code, 2);
}

#ifdef REHEARSE_HAS_SIM
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
#endif

// What docs/transformer_prices.md promises, on rows that nothing was fitted on.
TEST_F(Validate, KeepsTheErrorsOfTransformersThatAreDocumented) {
    const Output output = run("validate --set megatron --filter 'h2048-a16-l20.*pipe=1.*tensor=(1|8)$' --format json");
    ASSERT_EQ(output.code, 0) << output.err;
    const Json json = Json::parse(output.out);
    EXPECT_EQ(json["schema"], "rehearse.validation/1");
    EXPECT_GT(json["rows"].size(), 10U);
    EXPECT_LT(json["summary"]["cold"]["mean_error"], 0.1);
    EXPECT_LT(json["summary"]["anchored"]["mean_error"], 0.03);
    for (const char* key : {"id", "published", "predicted", "error", "low", "high", "anchor", "source"})
        EXPECT_TRUE(json["rows"][0].contains(key)) << key;
}

TEST_F(Validate, SaysWhatIsWrongWithARowOfTransformers) {
    const std::string columns =
        "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,data "
        "parallelism,pipeline parallelism,iteration time (ms)\n";
    const auto told = [&](const std::string& rows) {
        write("rows.csv", columns + rows);
        const Output output = run("validate --set megatron --samples {}/rows.csv");
        EXPECT_EQ(output.code, 2);
        return output.err;
    };
    EXPECT_THAT(told("8,32,4,1024,16,12,1024,2,2,1,219.7\n"),
                HasSubstr("rows.csv:2: tensor 2 x data 2 x pipeline 1 are not 8"));
    EXPECT_THAT(told("2,3,2,1024,16,12,1024,1,2,1,219.7\n"),
                HasSubstr("rows.csv:2: a batch of 3 is not 2 ranks' micro-batches of 2"));
}

// Convolutions of sizes that DeepBench has none of (docs/kernel_prices.md), with a tenth to spare.
TEST_F(Validate, PricesConvolutionsOfBoardsThatItHasNotSeen) {
    const Output output = run("validate --set neusight --filter conv2d --format json -q");
    ASSERT_EQ(output.code, 0) << output.err;
    const Json json = Json::parse(output.out);
    int shipped = 0;
    for (const Json& group : json["groups"]) {
        if (group["prices"] == "DeepBench") {
            EXPECT_GT(group["median_error"], 0.14) << group;
        } else if (group["prices"] == "bound") {
            EXPECT_LT(group["median_error"], 0.18) << group;
        } else {
            ++shipped;
            EXPECT_LT(group["median_error"], 0.077) << group;
            EXPECT_LT(group["p90_error"], 0.25) << group;
            EXPECT_GT(group["in_band"], 0.84) << group;
            EXPECT_GT(group["family_right"], 0.65) << group;
        }
    }
    EXPECT_EQ(shipped, 4);
}

// Products and rows: half of DeepBench's error at most, or what docs/kernel_prices.md says with a tenth to spare.
TEST_F(Validate, PricesProductsAndRowsOfBoardsThatItHasNotSeen) {
    const Output output = run("validate --set neusight --filter 'v100.*(matmul|softmax|layernorm)' --format json -q");
    ASSERT_EQ(output.code, 0) << output.err;
    std::map<std::string, double> deepbench;
    int shipped = 0;
    const Json json = Json::parse(output.out);
    for (const Json& group : json["groups"]) {
        const std::string kind = group["kind"], sizes = group["sizes"];
        if (group["prices"] == "DeepBench") deepbench[sizes] = group["median_error"];
        if (group["prices"] != "board") continue;
        ++shipped;
        EXPECT_LT(group["median_error"], kind == "matmul" ? deepbench.at(sizes) / 2 : 0.066) << group;
        EXPECT_GT(group["in_band"], 0.84) << group;
        EXPECT_FALSE(group.contains("family_right")) << "families are of convolutions";
    }
    EXPECT_EQ(shipped, 6) << "matmul and groupedmatmul of random and transformers' sizes, softmax, layernorm";
}

// Memory by kind and time by plan (docs/language_models.md).
TEST_F(Validate, HoldsTransformersToTheirMemoryAndTime) {
    const Output output = run("validate --set llm --rows --filter SimuMax --format json -q");
    ASSERT_EQ(output.code, 0) << output.err;
    const Json json = Json::parse(output.out);
    ASSERT_EQ(json["groups"].size(), 3U);
    EXPECT_EQ(json["groups"][2]["set"], "all");
    for (const Json& group : json["groups"]) {
        EXPECT_LT(group["memory_mean"], 0.03) << group;
        EXPECT_GT(group["cold_in_band"], 0.7) << group;
        EXPECT_GT(group["pilot_in_band"], 0.8) << group;
        EXPECT_LT(group["cold_band"], 0.3) << group;
        EXPECT_LT(group["pilot_mean"], 0.06) << group;
        EXPECT_GT(group["tau"], 0.9) << group;
    }
    EXPECT_EQ(json["rows"].size(), 43U);
    double sum = 0;
    for (const auto& [kind, bytes] : json["rows"][0]["memory"].items()) sum += kind == "stage" ? 0.0 : double{bytes};
    EXPECT_DOUBLE_EQ(sum, json["rows"][0]["memory_bytes"]);
    const Json first = json["rows"][0];
    EXPECT_LT(first["low_s"], first["predicted_s"]);
    EXPECT_GT(first["high_s"], first["predicted_s"]);
    EXPECT_EQ(run("validate --set llm --filter abacus").code, 2);
    EXPECT_EQ(run("validate --set llm --filter '('").code, 2);
    EXPECT_THAT(run("validate --set llama").err, HasSubstr("did you mean 'llm'?"));
}

// A Titan X has 183 measured convolutions; as if nobody had, it takes a V100's by its data sheet.
TEST_F(Validate, LeavesADeviceOfDeepBenchOut) {
    const Output out =
        run("validate --set deepbench --leave device --filter 'titanx-maxwell f32 conv2d' --format json");
    ASSERT_EQ(out.code, 0) << out.err;
    const Json json = Json::parse(out.out);
    std::int64_t rows = 0;
    for (const Json& group : json["groups"]) rows += group["rows"].get<std::int64_t>();
    EXPECT_EQ(rows, 183);
    const Json cold = json["summary"]["cold"];
    EXPECT_GT(cold["median_error"], 0.1) << "none of its own kernels helped";
    EXPECT_LT(cold["median_error"], 0.4);
    EXPECT_GT(cold["in_band"], 0.8);
    EXPECT_EQ(run("validate --set deepbench --leave device --filter knl").code, 2) << "there is one processor";
}

// Nothing was fitted on single rows; a T4's lie within a few percent of its share of the bandwidth.
TEST_F(Validate, HoldsElementwiseOperatorsOfBoards) {
    const Output out = run("validate --set neusight --filter 't4 f32 elementwise' --format json");
    ASSERT_EQ(out.code, 0) << out.err;
    const Json group = Json::parse(out.out)["groups"].at(0);
    EXPECT_EQ(group["prices"], "share");
    EXPECT_LT(group["median_error"], 0.06);
    EXPECT_GT(group["in_band"], 0.9);
}

TEST_F(Validate, SaysWhatLeavingOutIsOfWhichSet) {
    EXPECT_THAT(run("validate --set deepbench --leave device --samples x.csv").err, HasSubstr("without --samples"));
    EXPECT_THAT(run("validate --set llm --leave device").err, HasSubstr("--leave device is of --set neusight"));
    EXPECT_THAT(run("validate --set neusight --leave problem").err, HasSubstr("--leave problem is of --set deepbench"));
    const Output one = run("validate --set neusight --filter abacus");
    EXPECT_EQ(one.code, 2);
    EXPECT_THAT(one.err, HasSubstr("matches no row"));
    EXPECT_EQ(run("validate --set neusight --filter '('").code, 2);
}

}  // namespace
}  // namespace rehearse
