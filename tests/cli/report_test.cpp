// SPDX-License-Identifier: Apache-2.0
// `rehearse report` as users start it, with the requests that the repository shows.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

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

}  // namespace
}  // namespace rehearse
