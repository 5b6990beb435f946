// SPDX-License-Identifier: Apache-2.0
// What `rehearse bench` says and draws, as a user gets it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "process.hpp"

namespace rehearse {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

// Small, and without the cost of checking.
const std::string small_conv = "conv2d:n1c16h8w8k16r3s3:pad1:stride1:f32:forward";
const std::string quick = " --rounds 2 --budget 0.2 ";

class Bench : public Program {
protected:
    Json json(const std::string& arguments) const {
        const Output output = run(arguments + " --format json");
        EXPECT_EQ(output.code, 0) << output.err;
        return Json::parse(output.out);
    }
};

TEST_F(Bench, ComparesWithThePeakOfTheTypeMeasuredInTheSameRun) {
    const Json bench = json("bench conv " + small_conv + quick + "--out samples.json");
    const double peak = bench.at("peaks_flops_per_s").at("f32");
    EXPECT_EQ(bench.at("peak_flops_per_s"), peak);
    EXPECT_TRUE(bench.at("peaks_flops_per_s").contains("f64"));
    const double memory = bench.at("bandwidths_bytes_per_s").at("memory");
    for (const Json& row : bench.at("rows")) {
        // 2 * 64 outputs * 16 filters * 16 channels * 9 taps; 16 planes of 64 in and out, 16 * 16 * 9 weights, of 4 B.
        EXPECT_EQ(row.at("flops"), 2.0 * 64 * 16 * 16 * 9);
        EXPECT_EQ(row.at("bytes"), 4.0 * (2 * 16 * 64 + 16 * 16 * 9));
        const double seconds = row.at("median_s");
        EXPECT_NEAR(row.at("peak_fraction").get<double>(), 294912.0 / seconds / peak, 1e-9);
        EXPECT_NEAR(row.at("bandwidth_fraction").get<double>(), 17408.0 / seconds / memory, 1e-9);
        EXPECT_EQ(row.at("bound"), 294912.0 / peak > 17408.0 / memory ? "compute" : "memory");
        EXPECT_EQ(row.at("peak_type"), "f32");
    }
    const Json samples = Json::parse(read("samples.json")).at("benchmarks");
    ASSERT_EQ(samples.size(), 2 * bench.at("rows").size());  // two rounds
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const Json& row = bench.at("rows").at(i % bench.at("rows").size());
        const std::string backend = row.at("backend");
        EXPECT_EQ(samples[i].at("name").get<std::string>().find(small_conv + "/" + backend), 0U);
        EXPECT_NEAR(samples[i].at("peak_fraction").get<double>(), samples[i].at("flop/s").get<double>() / peak, 1e-6);
        EXPECT_EQ(samples[i].at("checked"), row.at("checked"));
    }
}

TEST_F(Bench, DrawsARooflineWithADotForEachRow) {
    const Json bench = json("bench conv " + small_conv + quick + "--roofline roof.svg");
    const std::string svg = read("roof.svg");
    EXPECT_THAT(svg, testing::StartsWith("<svg "));
    for (const char* text : {"arithmetic intensity", "f32 ", "memory ", "L1 ", "FLOP/B<"})
        EXPECT_THAT(svg, HasSubstr(text));
    for (const Json& row : bench.at("rows")) {
        std::string name = row.at("backend").get<std::string>();
        if (row.at("algorithm") != "") name += " " + row.at("algorithm").get<std::string>();
        EXPECT_THAT(svg, HasSubstr("<title>" + small_conv + ", " + name + ": "));
    }
}

TEST_F(Bench, DrawsWhichConvolutionWins) {
    const Output output =
        run("bench conv --suite crossover --filter 'c8h56w56k8r[13]s' --no-check --winners wins.svg" + quick);
    ASSERT_EQ(output.code, 0) << output.err;
    const std::string svg = read("wins.svg");
    for (const char* text : {">1x1<", ">3x3<", "56x56, 8 channels", "GFLOP/s<"}) EXPECT_THAT(svg, HasSubstr(text));
    EXPECT_THAT(svg, testing::Not(HasSubstr(">5x5<")));
}

TEST_F(Bench, SkipsWhatDoesNotFitIntoMemoryAndSaysSo) {
    const std::string huge = "matmul:n1000000m1n1000000k1000000:f32:forward";  // 4 TB an operand
    const Output alone = run("bench gemm " + huge + quick);
    EXPECT_EQ(alone.code, 4);
    EXPECT_THAT(alone.err, HasSubstr("skipped: " + huge + " needs about "));
    const Json bench = json("bench gemm " + huge + " matmul:n4m1n8k8:f32:forward" + quick);
    ASSERT_EQ(bench.at("skipped").size(), 1U);
    EXPECT_EQ(bench.at("skipped")[0].at("problem"), huge);
    for (const Json& row : bench.at("rows")) EXPECT_EQ(row.at("problem"), "matmul:n4m1n8k8:f32:forward");
}

TEST_F(Bench, PeakHasARowForEveryTypeAndNumberOfThreads) {
    const Json rows = json("bench peak --threads 1,2" + quick).at("rows");
    ASSERT_EQ(rows.size(), 8U);
    for (const Json& row : rows) EXPECT_NE(row.contains("absent"), row.contains("flops_per_s"));
    EXPECT_EQ(rows[0].at("type"), "f32");
    EXPECT_GT(rows[0].at("flops_per_s"), 0.0);
    EXPECT_EQ(rows[7].at("threads"), 2);
}

TEST_F(Bench, StreamHasARowForEveryKernelAndLevel) {
    const Json rows = json("bench stream --filter 'L[12]' --threads 1 --out stream.json" + quick).at("rows");
    ASSERT_EQ(rows.size(), 8U);
    EXPECT_EQ(rows.front().at("level"), "L1");
    EXPECT_EQ(rows.back().at("level"), "L2");
    EXPECT_EQ(rows.back().at("kernel"), "triad");
    for (const Json& row : rows) EXPECT_GT(row.at("bytes_per_s"), 0.0);
    EXPECT_EQ(Json::parse(read("stream.json")).at("benchmarks").size(), 2 * rows.size());
}

TEST_F(Bench, HasOtherLayoutsOfADevicesConvolutionsOnly) {
    const auto refusal = [&](const std::string& arguments) {
        const Output output = run("bench " + arguments);
        EXPECT_EQ(output.code, 2) << arguments;
        return output.err;
    };
    EXPECT_THAT(refusal("conv --layout nhwc " + small_conv), HasSubstr("of a device: add --device cuda"));
    EXPECT_THAT(refusal("gemm --layout nhwc --device cuda matmul:n1m8n8k8:f16:forward"),
                HasSubstr("of bench conv and bench layer, not of bench gemm"));
    EXPECT_THAT(refusal("conv --layout nhcw --device cuda " + small_conv), HasSubstr("not one of nchw, nhwc"));
}

}  // namespace
}  // namespace rehearse
