// SPDX-License-Identifier: Apache-2.0
// `rehearse report` as users start it, with the requests that the repository shows.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "tests/cli/own_machine.hpp"
#include "tests/cli/process.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class Report : public Program {
protected:
    static std::string request(const std::string& name) {
        return std::string(REHEARSE_SOURCE_DIR) + "/docs/requests/" + name + ".toml";
    }
    // Each section of the report is there, with no empty cell and no figure without a unit.
    void expect_complete(const std::string& folder, std::size_t scaling_tables) const {
        EXPECT_THAT(read(folder + "/report.pdf"), StartsWith("%PDF"));
        for (const char* file : {"report.md", "report.tex", "figures/throughput.svg", "figures/throughput.pdf",
                                 "figures/efficiency.svg", "tables/jobs.csv", "tables/jobs.tex"})
            EXPECT_FALSE(read(folder + "/" + file).empty()) << file;
        const Json report = Json::parse(read(folder + "/report.json"));
        EXPECT_EQ(report["schema"], "rehearse.report/1");
        EXPECT_EQ(report["sections"].size(), 7U);
        std::size_t scaling = 0;
        for (const auto& [key, table] : report["tables"].items()) {
            scaling += key.ends_with("scaling") ? 1 : 0;
            ASSERT_FALSE(table["rows"].empty()) << key;
            for (const Json& row : table["rows"]) {
                ASSERT_EQ(row.size(), table["columns"].size()) << key;
                for (const Json& column : table["columns"]) {
                    const Json& cell = row[column["key"].get<std::string>()];
                    EXPECT_FALSE(cell.is_null() || cell == "") << key << " " << column;
                    if (cell.is_number() && !column["unit"].get<std::string>().empty()) continue;
                    // A figure in a column of words carries its unit in its text, which the tables show.
                    EXPECT_FALSE(cell.is_number() && key.ends_with("scaling")) << key << " " << column;
                }
            }
        }
        EXPECT_EQ(scaling, scaling_tables);
    }
};

TEST_F(Report, OfResNet50OnSummit) {
    const Output output = run("report " + request("resnet50-summit") + " --output {}/r -q --format json");
    ASSERT_EQ(output.code, 0) << output.err;
    expect_complete("r", 2);
    const Json report = Json::parse(read("r/report.json"));
    const Json weak = report["tables"]["weak-scaling"]["rows"];
    EXPECT_EQ(weak[0]["basis"], "measured");
    EXPECT_NEAR(weak[0]["samples_per_s"].get<double>(), 4560, 1);  // the pilot
    EXPECT_EQ(weak[1]["basis"], "anchored");
    EXPECT_EQ(report["tables"]["strong-scaling"]["rows"][0]["basis"], "predicted");
    const Json jobs = report["tables"]["jobs"]["rows"];
    EXPECT_EQ(jobs[0]["node_hours"], 20 * 4);  // 20 runs of an hour on 4 nodes
    EXPECT_GT(report["published_rows"].size(), 10U);
    EXPECT_EQ(Json::parse(output.out)["files"][0]["what"], "the pages");
    const Output again = run("report " + request("resnet50-summit") + " --output {}/r -q");
    EXPECT_EQ(again.code, 2);
    EXPECT_THAT(again.err, HasSubstr("--force overwrites it"));
}

TEST_F(Report, OfAGptOnPerlmutter) {
    const Output output = run("report " + request("gpt-perlmutter") + " --output {}/r -q");
    ASSERT_EQ(output.code, 0) << output.err;
    expect_complete("r", 2);
    EXPECT_THAT(read("r/report.md"), HasSubstr("GPU node-hours"));
}

TEST_F(Report, OfDeepLabOnAKnlMachine) {
    const Output output = run("report " + request("deeplabv3plus-cori-knl") + " --output {}/r -q");
    ASSERT_EQ(output.code, 0) << output.err;
    expect_complete("r", 1);
    EXPECT_THAT(read("r/report.md"), HasSubstr("floor of 80 %"));
}

TEST_F(Report, OfPredictions) {
    ASSERT_EQ(run("predict --model resnet50 --machine summit --devices 6,24 --output {}/weak.json --format json").code,
              0);
    ASSERT_EQ(run("predict --model resnet50 --machine summit --devices 6,24 --global-batch 768 --output {}/strong.json "
                  "--format json")
                  .code,
              0);
    const Output output = run("report {}/weak.json {}/strong.json --output {}/r -q");
    ASSERT_EQ(output.code, 0) << output.err;
    const Json report = Json::parse(read("r/report.json"));
    EXPECT_TRUE(report["tables"].contains("weak-scaling"));
    EXPECT_TRUE(report["tables"].contains("strong-scaling"));
}

TEST_F(Report, SaysWhatIsWrongWithARequest) {
    const std::string good =
        "[request]\ntitle = \"t\"\nmachine = \"summit\"\n[job]\nmodel = \"resnet50\"\n[weak]\nbatch = 32\nnodes = "
        "[1]\n";
    const auto refusal = [&](const std::string& text) {
        write("r.toml", text);
        const Output output = run("report r.toml --output {}/o -q");
        EXPECT_EQ(output.code, 2) << text;
        return output.err;
    };
    EXPECT_THAT(refusal("[job]\nmodel = \"resnet50\"\n"), HasSubstr("'request' is missing"));
    EXPECT_THAT(refusal(good + "nods = [1]\n"), HasSubstr("r.toml:9: weak: unknown key 'nods'"));
    EXPECT_THAT(refusal(good + "[[phase]]\nname = \"p\"\nperiod = \"q\"\nnodes = 1\n"),
                HasSubstr("exactly one of epochs, steps and wall"));
    EXPECT_THAT(refusal(good + "[[phase]]\nname = \"p\"\nperiod = \"q\"\nnodes = 1\nepochs = 3\n"),
                HasSubstr("epochs need [training] dataset"));
    EXPECT_THAT(refusal(good + "[[phase]]\nname = \"p\"\nperiod = \"q\"\nnodes = 9999\nwall = \"1h\"\n"),
                HasSubstr("9999 nodes are asked for: summit has 4608"));
    EXPECT_THAT(refusal("[request]\ntitle = \"t\"\nmachine = \"summit\"\n[job]\nmodel = \"resnet50\"\n"),
                HasSubstr("no scaling study"));
    write("r.toml", good);
    EXPECT_THAT(run("report r.toml").err, HasSubstr("--output FOLDER is missing"));
}

// 2 nodes of 2 devices and 2 of 4: the sizes of the request are nodes, whatever stands in them.
TEST_F(Report, OfAMachineOfUnlikeNodes) {
    write("unlike.toml", own_machine("unlike", {{2, 2}, {2, 4}}));
    write("r.toml",
          "[request]\ntitle = \"t\"\nmachine = \"unlike.toml\"\n[job]\nmodel = \"lenet5\"\n[weak]\nbatch = 8\nnodes = "
          "[1, 3]\n[[phase]]\nname = \"p\"\nperiod = \"q\"\nnodes = 4\nwall = \"1h\"\n");
    const Output output = run("report r.toml --output {}/r -q");
    ASSERT_EQ(output.code, 0) << output.err;
    const Json rows = Json::parse(read("r/report.json"))["tables"]["weak-scaling"]["rows"];
    ASSERT_EQ(rows.size(), 3U);
    EXPECT_EQ(rows[0]["devices"], 2);
    EXPECT_EQ(rows[1]["devices"], 8);
    EXPECT_EQ(rows[2]["devices"], 12);
}

// Every 5 steps a checkpoint is written: steps are not all of a phase's time.
TEST_F(Report, PhasesOfStepsWriteCheckpoints) {
    write("own.toml", own_machine("own", {{2, 2}}));
    const auto hours = [&](const std::string& training) {
        write("r.toml",
              "[request]\ntitle = \"t\"\nmachine = \"own.toml\"\n[job]\nmodel = \"vgg16\"\n[weak]\nbatch = 8\nnodes = "
              "[1]\n[training]\ndataset = 80000\n" +
                  training +
                  "[[phase]]\nname = \"a\"\nperiod = \"q\"\nnodes = 1\nepochs = 1\n[[phase]]\nname = \"b\"\nperiod = "
                  "\"q\"\nnodes = 1\nsteps = 5000\n");
        const Output output = run("report r.toml --output {}/r -q --force");
        EXPECT_EQ(output.code, 0) << output.err;
        const Json rows = Json::parse(read("r/report.json"))["tables"]["jobs"]["rows"];
        return std::pair{rows[0]["wall_hours"].get<double>(), rows[1]["wall_hours"].get<double>()};
    };
    const auto [epoch, steps] = hours("checkpoint = \"fs\"\ncheckpoint_every = 5\n");
    EXPECT_NEAR(steps, epoch, 1e-6 * epoch) << "80,000 samples in steps of 16";
    EXPECT_GT(steps, 1.1 * hours("").second);
}

TEST_F(Report, RefusesAStudyThatHasNoSizeThatFits) {
    write("r.toml",
          "[request]\ntitle = \"x\"\nmachine = \"summit\"\n[job]\nmodel = \"resnet50\"\n[weak]\nbatch = 32\nnodes = "
          "[1, 2]\n[strong]\nglobal_batch = 60000\nnodes = [1, 2]\n");
    const Output output = run("report r.toml --output {}/r -q");
    EXPECT_EQ(output.code, 4);
    EXPECT_THAT(output.err, HasSubstr("strong scaling: no size has enough memory for a batch of 60000"));
}

// Predictions of a machine that only its file knows, and those that do not belong together.
TEST_F(Report, OfPredictionsOfOneJob) {
    write("own.toml", own_machine("own", {{4, 2}}));
    const auto predict = [&](const std::string& name, const std::string& options) {
        ASSERT_EQ(
            run("predict --machine own.toml --devices 2,8 --format json --output {}/" + name + " " + options).code, 0);
    };
    predict("weak.json", "--model lenet5");
    predict("weak2.json", "--model lenet5 --batch 64");
    predict("vgg.json", "--model vgg16 --global-batch 16");
    predict("adam.json", "--model lenet5 --global-batch 16 --optimizer adam");
    predict("zero.json", "--model lenet5 --global-batch 16 --plan data:zero=1");
    predict("mixed.json", "--model lenet5 --global-batch 16 --framework pytorch-ddp");
    const Output good = run("report {}/weak.json --output {}/r -q");
    EXPECT_EQ(good.code, 0) << good.err;
    const auto refusal = [&](const std::string& other) {
        const Output output = run("report {}/weak.json {}/" + other + " --output {}/o -q");
        EXPECT_EQ(output.code, 2);
        return output.err;
    };
    EXPECT_THAT(refusal("vgg.json"), HasSubstr("its model is 'vgg16', that of the prediction before 'lenet5'"));
    EXPECT_THAT(refusal("adam.json"), HasSubstr("its optimizer is 'adam'"));
    EXPECT_THAT(refusal("zero.json"), HasSubstr("its plan is 'data:zero=1'"));
    EXPECT_THAT(refusal("mixed.json"), HasSubstr("its framework is 'pytorch-ddp'"));
    EXPECT_THAT(refusal("weak2.json"), HasSubstr("another prediction of weak scaling"));
}

TEST_F(Report, SaysAllThatAPlanDoes) {
    write("own.toml", own_machine("own", {{4, 2}}));
    const auto sentence = [&](const std::string& plan, const std::string& model) {
        const Output made =
            run("predict --machine own.toml --devices 8 --format json --force --output {}/p.json --model " + model +
                " --plan " + plan);
        EXPECT_EQ(made.code, 0) << made.err;
        const Output output = run("report {}/p.json --output {}/s -q --force");
        EXPECT_EQ(output.code, 0) << output.err;
        return read("s/report.md");
    };
    EXPECT_THAT(sentence("data=4,context=2", "gpt-h64-a4-l2-v64@32"), HasSubstr("tokens of each sequence are split"));
    EXPECT_THAT(sentence("server=2,data=6", "lenet5"), HasSubstr("servers keep the weights"));
    EXPECT_THAT(sentence("groups=2,data=3,server=2", "lenet5"), HasSubstr("groups that do not wait"));
}

}  // namespace
}  // namespace rehearse
