// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

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
    ASSERT_EQ(json["groups"].size(), 4U);
    for (const Json& group : json["groups"]) {
        for (const char* key :
             {"set", "device", "precision", "pass", "kind", "rows", "median_error", "p90_error", "in_band"})
            EXPECT_TRUE(group.contains(key)) << key;
    }
    for (const char* key : {"id", "published", "predicted", "error", "low", "high", "anchor", "source"})
        EXPECT_TRUE(json["rows"][0].contains(key)) << key;
    EXPECT_EQ(json["summary"]["cold"]["rows"], json["rows"].size());
}

// What docs/calibration.md promises, with a tenth to spare for another compiler's rounding.
TEST_F(Validate, KeepsTheErrorsThatAreDocumented) {
    const Json json = Json::parse(run("validate --filter '^(v100|p100|titanx-maxwell|knl7250) ' --format json").out);
    EXPECT_LT(json["summary"]["conv2d"]["median_error"], 0.09);
    EXPECT_LT(json["summary"]["conv2d"]["p90_error"], 0.35);
    EXPECT_LT(json["summary"]["matmul"]["median_error"], 0.04);
    EXPECT_LT(json["summary"]["matmul"]["p90_error"], 0.22);
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
    const Output published = run("validate --set published");
    EXPECT_EQ(published.code, 2);
    EXPECT_THAT(published.err, HasSubstr("not written yet"));
}

// What docs/calibration.md promises, on rows that nothing was fitted on.
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
    const std::string header =
        "# GPUs,global batch,micro batch,hidden size,attention heads,# layers,sequence length,tensor parallelism,data "
        "parallelism,pipeline parallelism,iteration time (ms)\n";
    const auto told = [&](const std::string& rows) {
        write("rows.csv", header + rows);
        const Output output = run("validate --set megatron --samples {}/rows.csv");
        EXPECT_EQ(output.code, 2);
        return output.err;
    };
    EXPECT_THAT(told("8,32,4,1024,16,12,1024,2,2,1,219.7\n"),
                HasSubstr("rows.csv:2: tensor 2 x data 2 x pipeline 1 are not 8"));
    EXPECT_THAT(told("2,3,2,1024,16,12,1024,1,2,1,219.7\n"),
                HasSubstr("rows.csv:2: a batch of 3 is not 2 ranks' micro-batches of 2"));
}

}  // namespace
}  // namespace rehearse
