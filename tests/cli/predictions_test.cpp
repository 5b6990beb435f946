// SPDX-License-Identifier: Apache-2.0
// What scripts rely on in predictions: keys, warnings, how figures of several points go together.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <sstream>

#include "tests/cli/json_program.hpp"

namespace rehearse {
namespace {

using testing::HasSubstr;

class Predictions : public JsonProgram {};

TEST_F(Predictions, PredictionsHaveTheDocumentedKeys) {
    const Json prediction =
        json("predict --model resnet50 --machine summit --devices 6,48,384 --batch 32 --precision mixed");
    EXPECT_EQ(prediction["schema"], "rehearse.prediction/1");
    for (const char* key : {"model", "machine", "plan", "precision", "version", "host", "configuration"}) {
        EXPECT_TRUE(prediction.contains(key)) << key;
    }
    ASSERT_EQ(prediction["points"].size(), 3U);
    for (const Json& p : prediction["points"]) {
        for (const char* key : {"devices",
                                "nodes",
                                "global_batch",
                                "mode",
                                "step_s",
                                "step_low_s",
                                "step_high_s",
                                "basis",
                                "samples_per_s",
                                "flops_per_s",
                                "speedup",
                                "efficiency",
                                "compute_s",
                                "exposed_comm_s",
                                "bubble_s",
                                "io_wait_s",
                                "rest_s",
                                "memory_peak_bytes",
                                "memory_capacity_bytes",
                                "fits",
                                "flows_simulated",
                                "simulation_wall_s"}) {
            EXPECT_TRUE(p.contains(key)) << key;
        }
        EXPECT_LT(p["step_low_s"], p["step_s"]);
        EXPECT_GT(p["step_high_s"], p["step_s"]);
        EXPECT_EQ(p["global_batch"], 32 * p["devices"].get<int>());
    }
    EXPECT_EQ(prediction["points"][0]["efficiency"], 1.0);
    EXPECT_EQ(prediction["points"][2]["nodes"], 64);
}

// 128 samples of four devices at 1,000 samples/s are a step of 0.128 s.
TEST_F(Predictions, PointsSayWhatTheyRestOn) {
    EXPECT_EQ(json("predict --devices 4")["points"][0]["basis"], "cold");
    const Json anchored = json("predict --devices 4,24 --batch 32 --pilot 4=1000/s");
    EXPECT_EQ(anchored["points"][0]["basis"], "measured");
    EXPECT_NEAR(anchored["points"][0]["measured_step_s"].get<double>(), 0.128, 1e-12);
    EXPECT_NEAR(anchored["points"][0]["step_s"].get<double>(), 0.128, 1e-3);
    EXPECT_EQ(anchored["points"][1]["basis"], "anchored on 4 devices");
    EXPECT_NEAR(anchored["points"][1]["pilot_scale"].get<double>(),
                anchored["pilots"][0]["compute_scale"].get<double>(), 1e-12);
    EXPECT_TRUE(anchored["warnings"].empty()) << "within the band";
    const Output doubted = run("predict --devices 4 --batch 32 --pilot 4=10s --format json --output doubted.json");
    EXPECT_THAT(doubted.err, HasSubstr("outside the 99 % band"));
    EXPECT_EQ(Json::parse(read("doubted.json"))["warnings"].size(), 1U);
    const Json again = json("predict --devices 24 --batch 32 --pilot doubted.json");  // a file's step is a pilot too
    EXPECT_NEAR(again["pilots"][0]["measured_step_s"].get<double>(), 10, 0.01);
}

TEST_F(Predictions, PredictSaysWhatLinksCarryAndWhatNoiseAndReadingCost) {
    const Json p = json(
        "predict --model resnet50 --machine summit --devices 12 --batch 32 --precision mixed --links --noise 5% "
        "--samples 5 "
        "--input alpine --sample 110kB --dataset 1281167");
    const Json& point = p["points"][0];
    EXPECT_GT(point["noisy_step_s"], point["step_s"]);       // the slowest of 12 is slower than the mean
    EXPECT_LT(point["noisy_p05_s"], point["noisy_step_s"]);  // five steps, none like another
    EXPECT_LT(point["noisy_step_s"], point["noisy_p95_s"]);
    EXPECT_EQ(point["io_wait_s"], 0.0);  // 2.5 TB/s for 12 devices
    EXPECT_GT(point["io_bound_devices"], 12);
    EXPECT_NEAR(point["epoch_s"].get<double>() * point["noisy_samples_per_s"].get<double>(), 1281167, 1);
    double up = 0, down = 0;
    for (const Json& kind : p["links"]) {
        EXPECT_LE(kind["most_utilisation"], 1.0);
        if (kind["kind"] == "nic:up") up = kind["bytes"];
        if (kind["kind"] == "nic:down") down = kind["bytes"];
    }
    EXPECT_GT(up, 0);
    EXPECT_DOUBLE_EQ(up, down);
    EXPECT_EQ(p["busiest_links"][0]["links"], 1);
}

TEST_F(Predictions, ALoaderInsideTheTrainingProcessTakesItsTimeOfEachStep) {
    const std::string job = "predict --model alexnet --machine cori-gpu --devices 1 --batch 128 --no-band";
    const Json ahead = json(job + " --loader ahead")["points"][0];
    const Json inside = json(job + " --loader inline:stack=4GBps:copy=8GBps")["points"][0];
    const double batch = 128.0 * 3 * 224 * 224 * 4;
    EXPECT_EQ(ahead["io_wait_s"], 0.0);
    EXPECT_NEAR(inside["io_wait_s"], batch / 4e9 + batch / 8e9, 1e-9);
    EXPECT_NEAR(inside["step_s"].get<double>() - ahead["step_s"].get<double>(), inside["io_wait_s"], 1e-9);
    EXPECT_EQ(json(job + " --loader inline:stack=off:copy=off")["points"][0]["step_s"], ahead["step_s"]);
}

TEST_F(Predictions, MoreDevicesAreFasterAndLessEfficient) {
    const Json points = json(
        "predict --model resnet50 --devices 6,48,384,3072,27648 --batch 32 --precision mixed --plan data")["points"];
    for (std::size_t i = 1; i < points.size(); ++i) {
        EXPECT_GT(points[i]["samples_per_s"], points[i - 1]["samples_per_s"]);
        EXPECT_LE(points[i]["efficiency"].get<double>(), points[i - 1]["efficiency"].get<double>() * (1 + 1e-9));
    }
}

TEST_F(Predictions, FusedNetworksMoveFewerBytes) {
    const auto point = [&](const std::string& fuse) {
        return json("predict --model resnet50 --devices 1 --batch 32 --fuse " + fuse)["points"][0];
    };
    const Json off = point("off"), some = point("bn-relu"), on = point("on");
    EXPECT_LT(some["compute_s"], off["compute_s"]);
    EXPECT_LT(on["compute_s"], some["compute_s"]);
}

TEST_F(Predictions, EveryPriceIsExplained) {
    const Json rows = json("predict --model lenet5 --machine titanx-server --devices 4 --explain")["explanation"];
    ASSERT_GT(rows.size(), 3U);
    const auto word = testing::AnyOf("measured here", "measured on this device class", "modelled");
    for (const Json& row : rows) {
        EXPECT_FALSE(row["source"].get<std::string>().empty()) << row;
        EXPECT_THAT(row["basis"].get<std::string>(), word) << row;
    }
    EXPECT_THAT(rows.dump(), HasSubstr("allreduce"));
}

// What was measured on a V100 says nothing measured of an A100.
TEST_F(Predictions, SamplesOfAnotherDeviceAreNotCalledMeasured) {
    const std::string problem = "explain conv2d:n8c64h56w56k64r3s3:pad1:stride1:f32:forward --machine ";
    const Json modelled = json(problem + "perlmutter"), measured = json(problem + "dgx1-v100");
    for (const Json& sample : modelled["samples"]) EXPECT_EQ(sample["basis"], "modelled");
    for (const Json& sample : measured["samples"]) EXPECT_EQ(sample["basis"], "measured on this device class");
}

// A file that its own calibration contradicts, and software that a machine names.
TEST_F(Predictions, PredictRepeatsWhatTheMachineFileWarnsOf) {
    write("mine.toml",
          "name = \"mine\"\nextends = \"perlmutter\"\nsoftware = \"megatron-lm-2021\"\n"
          "[in_situ]\nbias = 0.1\nnoise = 0.5\nsource = \"me\"\ndoubt = \"the host was busy\"\n");
    const Json made = json("predict --model lenet5 --machine mine.toml --devices 4");
    EXPECT_EQ(made["software"], "generic") << "it trains transformers";
    EXPECT_EQ(json("predict --model bert-base --machine mine.toml --devices 4 --batch 1")["software"],
              "megatron-lm-2021");
    ASSERT_EQ(made["warnings"].size(), 1U);
    EXPECT_EQ(made["warnings"][0], "the host was busy");
    EXPECT_THAT(run("predict --model lenet5 --machine mine.toml --devices 4").out,
                HasSubstr("warning: mine.toml: the host was busy"));
    EXPECT_EQ(json("predict --model lenet5 --machine perlmutter --devices 4")["warnings"].size(), 0U);
}

// Without its launch a kernel of a small network costs next to nothing: a data sheet does not say it.
TEST_F(Predictions, PredictWarnsOfADeviceWithoutLaunch) {
    const auto machine = [](const std::string& launch) {
        return "name = \"m\"\n[[device]]\nname = \"card\"\nsource = \"sheet\"\nmemory = \"24GB\"\n" + launch +
               "memory_bandwidth = \"600GBps\"\npeak.f32 = \"31TFLOPS\"\n[[node]]\nname = \"n\"\n"
               "devices = [{ class = \"card\", name = \"gpu\" }]\n[messaging.inside]\noverhead = \"5us\"\n"
               "fraction = 1\nreduce = \"1GBps\"\nerror = 0.1\nsource = \"assumed\"\n";
    };
    write("with.toml", machine("launch = \"4us\"\n"));
    write("without.toml", machine(""));
    EXPECT_EQ(json("predict --model lenet5 --machine with.toml")["warnings"].size(), 0U);
    const Json warnings = json("predict --model lenet5 --machine without.toml")["warnings"];
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_THAT(warnings[0], HasSubstr("device 'card' has no launch"));
}

#if REHEARSE_HAS_ONNX
// The title of a prediction names a network of a file by its file's name, which finds nothing again.
TEST_F(Predictions, CompareAsksForTheFileOfANetworkThatItsTitleNames) {
    ASSERT_EQ(run("predict --model " REHEARSE_TEST_DATA "/onnx/squeeze_excitation.onnx --trace p.pftrace").code, 0);
    const Output output = run("compare p.pftrace " REHEARSE_TEST_DATA "/profiles/mlp.json.gz");
    EXPECT_EQ(output.code, 2);
    EXPECT_THAT(output.err, HasSubstr("give the --model that it is of"));
    EXPECT_THAT(output.err, HasSubstr("'squeeze_excitation', which the prediction's title says"));
}

// Without record_shapes=True nothing in a profile says its batch: it is held against a prediction of 64 with a warning.
// The first step's 50 us before its first operator are a part of it.
TEST_F(Predictions, CompareWarnsOfProfilesWithoutShapes) {
    std::string events;
    for (int step = 0; step < 3; ++step) {
        const auto event = [&](const char* name, int begin, int length) {
            events += fmt::format(R"({}{{"ph":"X","name":"{}","tid":1,"ts":{},"dur":{},"args":{{}}}})",
                                  events.empty() ? "" : ",", name, 100 * step + begin, length);
        };
        event("ProfilerStep#1", 0, 100);
        event("aten::linear", 50, 10);
        event("aten::relu", 60, 10);
        event("aten::linear", 70, 10);
        event("aten::cross_entropy_loss", 80, 20);
    }
    write("shapeless.json", "[" + events + "]");
    ASSERT_EQ(run("predict --model mlp --batch 64 --machine cori-haswell --trace p.pftrace").code, 0);
    EXPECT_THAT(run("compare p.pftrace shapeless.json").err, HasSubstr("warning: the profile has no shapes"));
    EXPECT_NEAR(json("compare p.pftrace shapeless.json")["whole"][0]["measured_s"], 100e-6, 1e-9);
    const Output calibrated = run(
        "calibrate --trace shapeless.json --model mlp --batch 64 --machine cori-haswell --machine-out m.toml --force");
    EXPECT_THAT(calibrated.err, HasSubstr("0 % of the step is in operators that no layer was found for, 50 % idle"));
}

// A shell's pattern that takes too few files: an all-reduce among one rank would take no time without a word.
TEST_F(Predictions, ReplaysWarnOfRanksWhoseFilesLieBesideThem) {
    ASSERT_EQ(run("schedule --model lenet5 --machine dgx1-v100 --plan data=2 --to chakra --prefix s").code, 0);
    EXPECT_THAT(run("predict --schedule s.0.et --machine dgx1-v100").err,
                HasSubstr("warning: s.1.et lies beside these files"));
    EXPECT_EQ(run("predict --schedule s.0.et s.1.et --machine dgx1-v100").err, "");
}
#endif

TEST_F(Predictions, MachinesRefusesWhatPredictRefuses) {
    write("alone.toml",
          "name = \"m\"\n[[device]]\nname = \"card\"\nlike = \"p40\"\n[[node]]\nname = \"n\"\n"
          "devices = [{ class = \"card\", name = \"gpu\", count = 2 }]\nbridges = [{ name = \"b\" }]\n"
          "[[node.link]]\nfrom = [\"gpu0\", \"gpu1\"]\nto = \"b\"\n"
          "bandwidth = { value = \"10GBps\", source = \"me\" }\n");
    for (const char* command : {"machines alone.toml", "predict --model lenet5 --machine alone.toml --devices 1"}) {
        const Output output = run(command);
        EXPECT_EQ(output.code, 2) << command;
        EXPECT_THAT(output.err, HasSubstr("alone.toml:1: it has no [messaging.inside]")) << command;
    }
}

TEST_F(Predictions, CsvHasOneRowAPoint) {
    const Output output = run("predict --model lenet5 --machine cori-knl --devices 1,2,4 --format csv");
    EXPECT_EQ(output.code, 0) << output.err;
    EXPECT_THAT(output.out, testing::StartsWith("devices,"));
    EXPECT_EQ(std::count(output.out.begin(), output.out.end(), '\n'), 4);
}

TEST_F(Predictions, WhatDoesNotFitEndsWithFourAndATable) {
    const Output output = run("predict --model resnet152 --machine summit --devices 6 --batch 4096");
    EXPECT_EQ(output.code, 4);
    EXPECT_THAT(output.err, testing::AllOf(HasSubstr("activations"), HasSubstr("optimizer"), HasSubstr("16 GB")));
}

TEST_F(Predictions, PredictNamesItsFramework) {
    const std::string two = "predict --model lenet5 --machine summit --devices 2";
    const Json plain = json(two);
    EXPECT_EQ(plain["configuration"]["framework"], "rehearse");
    const Json chainer = json(two + " --framework chainermn");
    EXPECT_EQ(chainer["configuration"]["framework"], "chainermn");
    const Json by_words = json(two + " --plan data:allreduce=ring:overlap=off:bucket=1GB --loader inline");
    EXPECT_EQ(chainer["points"][0]["step_s"], by_words["points"][0]["step_s"]);
    EXPECT_GT(chainer["points"][0]["step_s"], plain["points"][0]["step_s"]);
    EXPECT_EQ(run(two + " --framework pytorch").code, 2);
    const auto below = [&](const std::string& framework) { return run(two + " --framework " + framework).out; };
    EXPECT_THAT(below("rehearse"),
                testing::AllOf(HasSubstr("software: generic ("), testing::Not(HasSubstr("framework:"))));
    EXPECT_THAT(below("chainermn"),
                testing::AllOf(HasSubstr("framework: chainermn ("), HasSubstr("software: generic")));
    EXPECT_THAT(below("pytorch-ddp"), testing::AllOf(HasSubstr("framework: pytorch-ddp (PyTorch's Distributed"),
                                                     testing::Not(HasSubstr("software:"))))
        << "its own host takes the place of one that waits";
    EXPECT_THAT(below("pytorch-fsdp"), HasSubstr("software: pytorch-operators ("));
}

// What a framework adds to no price rests on what it rested on before.
TEST_F(Predictions, AFrameworkMakesNoPriceMeasured) {
    const auto explained = [&](const std::string& framework) {
        const Json rows = json(
            "predict --model resnet50 --machine summit --devices 6 --batch 32 --precision mixed "
            "--explain --framework " +
            framework)["explanation"];
        std::map<std::string, std::pair<std::string, std::string>> by_name;
        for (const Json& row : rows) by_name[row["what"]] = {row["basis"], row["source"]};
        return by_name;
    };
    const auto plain = explained("rehearse");
    EXPECT_EQ(plain.at("batchnorm forward").first, "modelled");
    const auto horovod = explained("tensorflow-horovod"), ddp = explained("pytorch-ddp");
    for (const auto& [what, found] : plain) {
        if (what.starts_with("allreduce")) continue;
        EXPECT_EQ(horovod.at(what), found) << what;
    }
    EXPECT_EQ(ddp.at("matmul forward").first, "modelled");
    EXPECT_THAT(ddp.at("matmul forward").second, HasSubstr("the host's issue: NeuSight"));
}

// Each line of what fits, in place of the options that it names, is a prediction of a plan that fits.
TEST_F(Predictions, WhatIsSaidToFitFits) {
    const auto expect_all = [&](std::map<std::string, std::string> options, std::string_view one_of_them) {
        const auto predict = [&](const std::map<std::string, std::string>& with) {
            std::string line = "predict --no-band";
            for (const auto& [option, value] : with) line += fmt::format(" {} {}", option, value);
            return run(line);
        };
        const Output refused = predict(options);
        EXPECT_EQ(refused.code, 4) << refused.out;
        EXPECT_THAT(refused.err, HasSubstr(one_of_them));
        std::istringstream lines{refused.err.substr(refused.err.find("it fits with"))};
        std::string line;
        std::getline(lines, line);
        int tried = 0;
        for (; std::getline(lines, line) && line.starts_with("  --"); ++tried) {
            std::map<std::string, std::string> with = options;
            std::istringstream words{line};
            for (std::string option, value; words >> option && option.starts_with("--") && words >> value;)
                with[option] = value;
            EXPECT_EQ(predict(with).code, 0) << line;
        }
        EXPECT_GT(tried, 0);
    };
    expect_all({{"--model", "vgg16"},
                {"--machine", "summit"},
                {"--devices", "6"},
                {"--plan", "data=6"},
                {"--global-batch", "1536"}},
               "--global-batch 768 ");
    std::map<std::string, std::string> llama{
        {"--model", "llama3-70b@4096"}, {"--machine", "dgx-h100"}, {"--devices", "64"},    {"--batch", "3"},
        {"--plan", "data,tensor=8"},    {"--precision", "bf16"},   {"--optimizer", "adam"}};
    expect_all(llama, "--plan data=8:zero=3:microbatches=3,tensor=8 ");
    llama["--framework"] = "megatron-core";
    llama["--batch"] = "4";
    expect_all(llama, "pipe=4");
}

// 1,024 images of ResNet-50 are too many for two devices of 16 GB, and not for 32.
TEST_F(Predictions, PointsThatDoNotFitAreMarkedAndNoBaseline) {
    const std::string some = "predict --model resnet50 --machine summit --global-batch 1024 --devices 2,32";
    const Json points = json(some)["points"];
    EXPECT_EQ(points[0]["fits"], false);
    EXPECT_TRUE(points[0]["efficiency"].is_null());
    EXPECT_TRUE(points[0]["speedup"].is_null());
    EXPECT_EQ(points[1]["fits"], true);
    EXPECT_EQ(points[1]["efficiency"], 1.0);
    const Output table = run(some + " --plot curve.svg");
    EXPECT_EQ(table.code, 0);
    EXPECT_THAT(table.out, HasSubstr("  fits\n"));
    EXPECT_THAT(table.err, HasSubstr("does not fit on 2 devices"));
    EXPECT_THAT(read("curve.svg"), HasSubstr("does not fit"));
    EXPECT_EQ(run(some + " --baseline 2").code, 4);
    EXPECT_EQ(run("predict --model lenet5 --devices 2 --batch 32 --dataset 63").code, 2);
    EXPECT_EQ(run("predict --model lenet5 --devices 2 --batch 32 --dataset 64").code, 0);
}

}  // namespace
}  // namespace rehearse
