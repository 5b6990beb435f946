// SPDX-License-Identifier: Apache-2.0
// What scripts rely on: schemas, keys, exit codes.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "tests/cli/json_program.hpp"

namespace rehearse {
namespace {

using testing::HasSubstr;

class Contract : public JsonProgram {};

TEST_F(Contract, ModelsListsParametersAndLayers) {
    const Json network = json("models lenet5");
    EXPECT_EQ(network["schema"], "rehearse.network/1");
    EXPECT_EQ(network["parameters"], 61706);
    std::int64_t sum = 0;
    for (const Json& layer : network["layers"]) {
        sum += layer["parameters"].get<std::int64_t>();
        for (const char* key : {"name", "op", "output", "flops_forward"}) EXPECT_TRUE(layer.contains(key)) << key;
    }
    EXPECT_EQ(sum, 61706);
    EXPECT_GE(json("models")["networks"].size(), 9U);
}

TEST_F(Contract, ModelsReadAConfigOfHuggingFaceOrItsFolder) {
    const std::string folder = REHEARSE_TEST_DATA "/huggingface/my-llama";
    const Json network = json("models " + folder + "/config.json --sizes tokens=64");
    EXPECT_EQ(network["parameters"], 1'100'048'384);  // TinyLlama's model card: 1.1 B; its safetensors file
    EXPECT_EQ(network["input"], Json({64}));
    EXPECT_EQ(json("models " + folder)["parameters"], network["parameters"]);
    EXPECT_EQ(network["layers"][3]["name"], "model.layers.0.self_attn.q_proj");
    const Output wrong = run("models " + folder + " --sizes words=64");
    EXPECT_EQ(wrong.code, 2);
    EXPECT_THAT(wrong.err, HasSubstr("it has tokens"));
}

TEST_F(Contract, ModelsCompareTwoNetworks) {
    const Json same = json("models resnet50 resnet50");
    EXPECT_EQ(same["schema"], "rehearse.difference/1");
    EXPECT_TRUE(same["layers"].empty());
    const Json other = json("models resnet50 resnet101");
    EXPECT_EQ(other["totals"][0]["difference"], 44'549'160 - 25'557'032);
    EXPECT_FALSE(other["layers"].empty());
    for (const Json& layer : other["layers"]) EXPECT_EQ(layer["how"], "only in b");
}

#if REHEARSE_HAS_ONNX
TEST_F(Contract, ModelsHoldAFileToWhatPyTorchCounted) {
    const std::string folder = REHEARSE_TEST_DATA "/onnx/";
    const Json checked = json("models " + folder + "attention_grouped.onnx --check");
    ASSERT_EQ(checked["counts"].size(), 2U);
    for (const Json& count : checked["counts"]) EXPECT_EQ(count["equal"], "yes") << count;
    const Output silent = run("models " + folder + "light_resnet50.onnx --check");
    EXPECT_EQ(silent.code, 2);
    EXPECT_THAT(silent.err, HasSubstr("export_onnx.py"));
    EXPECT_EQ(run("models resnet50 --check").code, 2);
}
#endif

TEST_F(Contract, MachinesGiveASourceForEveryFigure) {
    for (const char* name : {"summit", "cori-knl", "adam-commodity", "titanx-server"}) {
        SCOPED_TRACE(name);
        const Json machine = json(std::string{"machines "} + name);
        EXPECT_EQ(machine["schema"], "rehearse.machine/1");
        EXPECT_GT(machine["figures"].size(), 8U);
        for (const Json& figure : machine["figures"]) EXPECT_GT(figure["source"].get<std::string>().size(), 3U);
    }
    EXPECT_EQ(json("machines summit")["devices"], 27648);
}

TEST_F(Contract, FrameworksGiveASourceForEverySetting) {
    const Json all = json("frameworks")["frameworks"];
    EXPECT_GE(all.size(), 8U);
    for (const Json& each : all) {
        const Json framework = json("frameworks " + each["name"].get<std::string>());
        for (const Json& setting : framework["settings"]) {
            EXPECT_GT(setting["source"].get<std::string>().size(), 3U) << each["name"];
        }
    }
    EXPECT_EQ(run("frameworks no-such").code, 2);
}

TEST_F(Contract, HelpHasExamplesAndVersionIsThere) {
    for (const char* command : {"predict", "run", "schedule", "compare", "bench", "calibrate", "validate", "export",
                                "models", "machines", "explain", "cluster", "learners", "frameworks"}) {
        const Output output = run(std::string{command} + " --help");
        EXPECT_EQ(output.code, 0);
        EXPECT_THAT(output.out, HasSubstr("Examples:"));
    }
    EXPECT_THAT(run("--version").out, HasSubstr("rehearse 0."));
}

// Each option of the build is on with its library's version, or off with the reason.
TEST_F(Contract, VersionSaysHowItWasBuilt) {
    const std::string version = run("--version").out, all = run("--version --verbose").out;
    EXPECT_EQ(all.substr(0, version.size()), version);
    for (const char* library : {"fmt", "CLI11", "nlohmann-json", "toml++", "protobuf", "zlib", "hwloc", "re2"})
        EXPECT_THAT(all, testing::ContainsRegex(std::string{library}.substr(0, 4) + ".* [0-9]+\\.")) << library;
    for (const char* option :
         {"SIM", "ONEDNN", "CPU", "ONNX", "MPI", "BENCH", "SQLITE", "CAIRO", "HDF5", "CUDA", "GUI", "PYTHON", "TESTS"})
        EXPECT_THAT(all, testing::ContainsRegex("\n  " + std::string{option} + " +(on|off) ")) << option;
    EXPECT_EQ(run("--verbose models").code, 2);  // it says nothing without --version
}

TEST_F(Contract, ScheduleIsListedAndDrawn) {
    const Json schedule = json("schedule --model lenet5 --plan pipe=2:microbatches=4 --steps");
    EXPECT_EQ(schedule["schema"], "rehearse.schedule/1");
    EXPECT_EQ(schedule["ticks"], 3 * (4 + 1));
    EXPECT_EQ(schedule["classes"][0]["idle_share"], 0.2);
    EXPECT_EQ(schedule["classes"][0]["boxes"].size(), 8U);
    EXPECT_EQ(schedule["steps"][0]["class"], "stage0");
    // GPipe of two stages and micro-batches, drawn by hand.
    EXPECT_THAT(run("schedule --model lenet5 --plan pipe=2:schedule=gpipe:microbatches=2 --draw").out,
                HasSubstr("\n"
                          "stage0 F0 F1 .  .  .  B0--- B1---\n"
                          "stage1 .  F0 F1 B0--- B1--- .  .\n"));
    EXPECT_EQ(run("schedule --model lenet5 --plan pipe=2:microbatches=4 --draw picture.svg").code, 0);
    EXPECT_THAT(read("picture.svg"), AllOf(HasSubstr("<svg"), HasSubstr("stage1"), HasSubstr("B3")));
    EXPECT_EQ(run("schedule --draw picture.svg").code, 2) << "it is there already";
    EXPECT_EQ(run("schedule --draw picture.gif").code, 2);
    EXPECT_EQ(run("schedule --ticks 0,1").code, 2);
    EXPECT_EQ(run("schedule --plan pipe=2:schedule=gpipes").code, 2);
}

// What one measures in two files, as OSU's latency and bandwidth, is one fit and not that of the last file: messages
// take 1 us + bytes / 10 GB/s.
TEST_F(Contract, CalibrateFitsTheMessagesOfAllFiles) {
    write("small.txt", "# OSU MPI Latency Test v7.3\n# Size Latency (us)\n1000 1.1\n2000 1.2\n4000 1.4\n8000 1.8\n");
    write("large.txt",
          "# OSU MPI Latency Test v7.3\n# Size Latency (us)\n1000000 101\n2000000 201\n4000000 401\n8000000 801\n");
    for (const std::string files : {"small.txt large.txt", "large.txt small.txt"}) {
        SCOPED_TRACE(files);
        json("calibrate --machine perlmutter --between nodes --machine-out mine.toml --force --samples " + files);
        const std::string mine = read("mine.toml");
        const std::string across = mine.substr(mine.find("[[messaging.across.piece]]"));
        EXPECT_THAT(across, HasSubstr("8 samples"));
        EXPECT_EQ(across.find("up_to"), std::string::npos) << across;
        EXPECT_THAT(across, AllOf(HasSubstr("small.txt"), HasSubstr(" and "), HasSubstr("large.txt")));
    }
}

#if REHEARSE_HAS_SIM
#if REHEARSE_HAS_SIM
// McCandlish et al. 2018: (1 + batch / critical batch) times as many epochs. Every learner but the last one tried
// gains.
TEST_F(Contract, LearnersAreAddedAsLongAsTheyGain) {
    const Json found = json(
        "learners --model lenet5 --machine titanx-server --batches 8,64 --most 5 --dataset 60000 --epochs 10 "
        "--critical-batch 100");
    const Json& rows = found["points"];
    double least = 1e300;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Json& row = rows[i];
        EXPECT_EQ(row["global_batch"], row["batch"].get<int>() * row["learners"].get<int>());
        const double epochs = 10 * (1 + row["global_batch"].get<double>() / 100);
        EXPECT_NEAR(row["training_s"].get<double>(), epochs * 60000 / row["samples_per_s"].get<double>(), 1e-6);
        least = std::min(least, row["training_s"].get<double>());
        const bool last = i + 1 == rows.size() || rows[i + 1]["learners"] == 1;
        if (row["learners"] == 1) continue;
        const double gain = row["samples_per_s"].get<double>() / rows[i - 1]["samples_per_s"].get<double>() - 1;
        EXPECT_NEAR(row["gain"].get<double>(), gain, 1e-9);
        EXPECT_TRUE(last || gain >= 0.05) << row;
    }
    EXPECT_EQ(found["best"]["training_s"], least);
    EXPECT_EQ(rows[0]["learners"], 1);
}

// 100 samples: one learner of 64, none of 128.
TEST_F(Contract, LearnersStopWhereTheDataSetEnds) {
    const std::string of = "learners --model lenet5 --machine titanx-server --most 3 --dataset 100 --batches ";
    const Json rows = json(of + "64,128")["points"];
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0]["global_batch"], 64);
    const Output none = run(of + "128");
    EXPECT_EQ(none.code, 2);
    EXPECT_THAT(none.err, HasSubstr("smaller --batches"));
}

TEST_F(Contract, ExplainsAKernelByItsPartsBandAndNearestSamples) {
    const std::string problem = "conv2d:n16c64h56w56k64r3s3:pad1:stride1:f32:forward";
    const Json explained = json("explain " + problem + " --machine summit");
    EXPECT_EQ(explained["schema"], "rehearse.explanation/1");
    std::map<std::string, double> parts;
    for (const Json& part : explained["parts"]) {
        EXPECT_FALSE(part["source"].is_null());
        parts[part["part"]] = part["time_s"];
    }
    // 2 x 16 x 64 x 64 x 9 x 56 x 56 operations at the V100's 15.7 TFLOP/s.
    EXPECT_NEAR(parts.at("compute"), 2.0 * 16 * 64 * 64 * 9 * 56 * 56 / 15.7e12, 0.01 * parts.at("compute"));
    EXPECT_LT(parts.at("low"), parts.at("price"));
    EXPECT_GT(parts.at("high"), parts.at("price"));
    EXPECT_GT(parts.at("launch"), 0);
    ASSERT_EQ(explained["samples"].size(), 5U);
    double before = 0;
    for (const Json& sample : explained["samples"]) {
        EXPECT_GE(sample["distance"].get<double>(), before);
        before = sample["distance"];
        EXPECT_THAT(sample["problem"].get<std::string>(), testing::StartsWith("conv2d:"));
    }
}

TEST_F(Contract, ExplainsAStepOfAPrediction) {
    const std::string of = "explain --model resnet50 --machine summit --devices 12 --step ";
    const Json reduce = json(of + "bucket0:allreduce");
    EXPECT_EQ(reduce["parts"][0]["part"], "alone");
    EXPECT_GT(reduce["parts"][0]["time_s"], 0.0);
    // Of 12 ranks 6 share a layer, and a node: messages are those inside it.
    const Json inside = json(
        "explain --model gpt-h96-a6-l2-v1024@64 --machine summit --devices 12 --plan data=2,tensor=6 --step "
        "layer0.fc2.sum:allreduce");
    EXPECT_EQ(inside["configuration"]["what"], "ring on 6 ranks");
    EXPECT_EQ(inside["parts"][3]["part"], "message");
    EXPECT_NEAR(inside["parts"][3]["time_s"].get<double>(), 7.7e-6, 1e-9);
    EXPECT_EQ(run(of + "bucket0:allredue").code, 2);
    EXPECT_THAT(run(of + "bucket0:allredue").err, HasSubstr("did you mean 'bucket0:allreduce'"));
    EXPECT_EQ(run("explain --machine summit").code, 2);
    EXPECT_EQ(run("explain matmul:n1m1n1k1:f32:forward --machine summit --device v200").code, 2);
}

TEST_F(Contract, AutoTakesNoLongerThanAnyAlgorithmByName) {
    const auto step = [&](const std::string& algorithm) {
        return json("predict --model lenet5 --machine adam-commodity --devices 8 --plan data:allreduce=" +
                    algorithm)["points"][0]["exposed_comm_s"]
            .get<double>();
    };
    const double chosen = step("auto");
    for (const char* name : {"ring", "doubling", "halving", "tree"}) EXPECT_LE(chosen, step(name) * 1.001) << name;
}
#endif

// The trace says that its steps took 218720 to 249879 us, the warm-up included. The three others begin 222117, 238983
// and 249879 us before what follows them; gradients are set to zero 21 us after the second one's beginning.
TEST_F(Contract, AProfilersTraceIsComparedByLayerAndPass) {
    EXPECT_EQ(run("predict --model mlp --batch 16 --machine cori-haswell --trace p.json").code, 0);
    const std::string trace = REHEARSE_TEST_DATA "/profiles/mlp.json.gz";
    const Json comparison = json("compare p.json " + trace);
    EXPECT_GE(comparison["whole"][0]["measured_s"], 0.218720);
    EXPECT_LE(comparison["whole"][0]["measured_s"], 0.249879);
    EXPECT_NEAR(comparison["whole"][0]["measured_s"], 0.238983, 50e-6);
    EXPECT_EQ(comparison["measured_iterations"], 3);
    std::map<std::string, double> sums;
    std::set<std::string> names;
    for (const std::string by : {"layer", "pass"}) {
        for (const Json& row : comparison[by]) {
            names.insert(row["name"].get<std::string>());
            sums[by] += row["measured_s"].get<double>();
        }
    }
    EXPECT_NEAR(sums["layer"], sums["pass"], 1e-9);
    EXPECT_GT(sums["layer"], 0.95 * comparison["whole"][0]["measured_s"].get<double>()) << "most of it is in a layer";
    EXPECT_LT(sums["layer"], 0.249879);
    for (const char* name : {"fc1", "fc2", "loss", "forward", "backward_data", "backward_weights", "update"}) {
        EXPECT_TRUE(names.contains(name)) << name;
    }
}

// 32 samples in 80 ms on one device: 100,000 take 250 s. Over no job there is no mean.
TEST_F(Contract, AClusterWithoutACompleteJobHasNoMeans) {
    write("one.csv", "name,model,arrival_s,samples,devices,batch\na,net,0,100000,1,32\n");
    write("speeds.csv", "model,devices,batch_per_device,step_s\nnet,1,32,0.08\n");
    const std::string cluster = "cluster --jobs one.csv --speeds speeds.csv --devices 1 --policy fifo --end ";
    const Json row = json(cluster + "100s")["policies"][0];
    EXPECT_EQ(row["unfinished"], 1);
    EXPECT_TRUE(row["mean_completion_s"].is_null());
    EXPECT_TRUE(row["p95_completion_s"].is_null());
    EXPECT_EQ(row["mean_wait_s"], 0.0) << "it has begun at once";
    const Output text = run(cluster + "100s"), csv = run(cluster + "100s --format csv");
    EXPECT_THAT(text.out, testing::ContainsRegex("fifo +0 +0 +1 +- +- +0 s"));
    EXPECT_THAT(csv.out, HasSubstr("fifo,0,0,1,,,0.0,"));
    const Json complete = json(cluster + "300s")["policies"][0];
    EXPECT_NEAR(complete["mean_completion_s"], 250, 1e-9);
    EXPECT_NEAR(complete["p95_completion_s"], 250, 1e-9);
}

TEST_F(Contract, APredictionComparedWithItselfHasNoError) {
    for (const char* file : {"p.json", "p.pftrace"}) {
        SCOPED_TRACE(file);
        const std::string name = file;
        EXPECT_EQ(run("predict --model lenet5 --machine titanx-server --devices 2 --trace " + name).code, 0);
        const Json comparison = json("compare " + name + " " + name + " --fail-over 0.1%");
        EXPECT_EQ(comparison["whole"][0]["error"], 0.0);
        EXPECT_TRUE(comparison["only_predicted"].empty());
        EXPECT_GT(comparison["step"].size(), 20U);
        EXPECT_THAT(comparison["statistic"].get<std::string>(), HasSubstr("median over iterations"));
        EXPECT_EQ(comparison["measured_iterations"], 1);
    }
    EXPECT_EQ(run("predict --model resnet32 --machine titanx-server --devices 2 --trace other.json").code, 0);
    EXPECT_EQ(run("predict --model resnet50 --machine titanx-server --devices 2 --trace another.json").code, 0);
    const Output networks = run("compare other.json another.json");  // both have layer1.0.conv1
    EXPECT_EQ(networks.code, 2);
    EXPECT_THAT(networks.err, HasSubstr("is of resnet32, "));
    EXPECT_EQ(run("predict --model lenet5 --machine titanx-server --devices 2 --batch 64 --trace slow.json").code, 0);
    EXPECT_EQ(run("compare p.json slow.json --fail-over 1%").code, 1);
    EXPECT_EQ(run("export p.json slow.json --to perfetto both.pftrace").code, 0);
    EXPECT_GT(std::filesystem::file_size(path("both.pftrace")), 1000U);
    EXPECT_EQ(run("predict --model lenet5 --machine titanx-server --devices 1 --trace alone.json").code, 0);
    const Output no_links = run("export alone.json links.csv --to links");
    EXPECT_EQ(no_links.code, 2);
    EXPECT_THAT(no_links.err, HasSubstr("says nothing of links"));
    // The pictures that the window shows of it, and of a machine.
    EXPECT_EQ(run("export p.pftrace --to svg --picture topology loads.svg").code, 0);
    EXPECT_THAT(read("loads.svg"), testing::AllOf(HasSubstr("titanx-server"), HasSubstr("% used")));
    EXPECT_EQ(run("machines summit --plot m.svg").code, 0);
    EXPECT_THAT(read("m.svg"), testing::AllOf(HasSubstr("4608 × ac922"), HasSubstr("gpu5")));
}

#if REHEARSE_HAS_ONNX
TEST_F(Contract, EveryImportedNetworkIsPredicted) {
    int count = 0;
    for (const auto& file : std::filesystem::directory_iterator{std::string{REHEARSE_TEST_DATA} + "/onnx"}) {
        if (file.path().extension() != ".onnx") continue;
        SCOPED_TRACE(file.path());
        const Json points = json("predict --model '" + file.path().string() +
                                 "' --devices 6,48,384 --batch 32 --precision mixed")["points"];
        EXPECT_GT(points[1]["samples_per_s"], points[0]["samples_per_s"]);
        EXPECT_GT(points[2]["samples_per_s"], points[1]["samples_per_s"]);
        ++count;
    }
    EXPECT_EQ(count, 12);
}
#endif
#endif

}  // namespace
}  // namespace rehearse
