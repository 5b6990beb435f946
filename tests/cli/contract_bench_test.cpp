// SPDX-License-Identifier: Apache-2.0
// The same of what measures, and of what takes the measurements of others.
#include <gmock/gmock.h>

#include <map>
#include <set>

#include "tests/cli/json_program.hpp"

namespace rehearse {
namespace {

using testing::HasSubstr;

class BenchContract : public JsonProgram {};

TEST_F(BenchContract, BenchChecksEachResultAndKeepsItsName) {
    const std::string problem = "conv2d:n2c4h8w8k4r3s3:pad1:stride1:f32:forward";
    const Json bench =
        json("bench conv " + problem + " --backend reference --rounds 1 --budget 0.05 --out samples.json");
    EXPECT_EQ(bench["schema"], "rehearse.bench/1");
    ASSERT_EQ(bench["rows"].size(), 1U);
    EXPECT_EQ(bench["rows"][0]["problem"], problem);
    EXPECT_EQ(bench["rows"][0]["checked"], 0.0);  // the reference against itself
    EXPECT_GT(bench["rows"][0]["median_s"], 0.0);
    const Json samples = Json::parse(read("samples.json"));
    EXPECT_EQ(samples["benchmarks"][0]["name"].get<std::string>().find(problem + "/reference"), 0U);
    EXPECT_EQ(samples["benchmarks"][0]["accumulation"], "f32");
}

// So that `calibrate --samples` takes none that `run` takes only by name.
TEST_F(BenchContract, BenchSaysWhichKernelARunTakes) {
    json("bench conv conv2d:n2c4h8w8k4r3s3:pad1:stride1:f32:forward --rounds 1 --budget 0.05 --out samples.json");
    const Json samples = Json::parse(read("samples.json"));
    std::set<std::string> backends;
    for (const Json& row : samples["benchmarks"]) {
        const std::string name = row["name"];
        if (row["taken"]) backends.insert(name.substr(name.find('/') + 1, name.rfind('/') - name.find('/') - 1));
        EXPECT_FALSE(row["taken"] && name.find("winograd") != std::string::npos) << name;
    }
    EXPECT_EQ(backends.size(), 1U) << samples.dump(2);
}

#if REHEARSE_HAS_SQLITE
TEST_F(BenchContract, WhatBenchTunesIsListedAndFollowedByRun) {
    const Json none = json("bench tuned");
    EXPECT_EQ(none["schema"], "rehearse.tuned/1");
    EXPECT_TRUE(none["rows"].empty());
    const Json tuned = json("bench conv --suite lenet5 --batch 4 --tune --rounds 2 --budget 0.1");
    const Json listed = json("bench tuned");
    ASSERT_EQ(listed["rows"].size(), tuned["rows"].size());
    for (const Json& row : listed["rows"]) {
        EXPECT_EQ(row["here"], "yes");
        EXPECT_EQ(row["fingerprint"], listed["fingerprint"]);
        for (const char* key : {"problem", "backend", "algorithm", "median_s", "scratch_bytes", "date"}) {
            EXPECT_TRUE(row.contains(key)) << key;
        }
    }
#if REHEARSE_HAS_MPI
    if (listed["rows"].empty()) return;  // a build with one implementation
    const std::string any_batch = "run --model lenet5 --steps 1 --check-gradients ", train = any_batch + "--batch 4 ";
    EXPECT_THAT(run(train).err, HasSubstr("2 of 12 layers run kernels tuned for this host"));
    for (const char* untuned : {"--batch 4 --tune off", "--batch 4 --backend reference", "--batch 5"}) {
        const Output output = run(any_batch + untuned);
        EXPECT_EQ(output.code, 0) << output.err;
        EXPECT_EQ(output.err, "") << untuned;
    }
    write("tuned.db", std::string(10'000, 'x'));
    const Output damaged = run(train);
    EXPECT_EQ(damaged.code, 2);
    EXPECT_THAT(damaged.err, testing::AllOf(HasSubstr("tuned.db"), HasSubstr("--tune off")));
    EXPECT_EQ(read("tuned.db"), std::string(10'000, 'x'));
    EXPECT_EQ(run(train + "--tune off").code, 0);
#endif
}
#endif

TEST_F(BenchContract, BenchLeavesOutWhoNeedsMoreThanTheScratchLimit) {
    const std::string problem = "bench conv conv2d:n2c4h8w8k4r3s3:pad1:stride1:f32:forward --rounds 1 --budget 0.05 ";
    const Json rows = json(problem + "--scratch-limit 0B")["rows"];
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0]["backend"], "reference");
    EXPECT_EQ(rows[0]["scratch_bytes"], 0.0);
    EXPECT_EQ(run(problem + "--scratch-limit 5").code, 2);
}

#if REHEARSE_HAS_SIM
TEST_F(BenchContract, CalibratesFromTheTextOfOthers) {
    write("osu.txt", "# OSU MPI Latency Test v5.9\n# Size Latency (us)\n8 2.0\n1024 2.1\n65536 10.0\n4194304 420.0\n");
    const Json made = json("calibrate --samples osu.txt --between nodes --machine summit --machine-out mine.toml");
    EXPECT_EQ(made["rows"][0]["messages"], 4);
    const Json machine = json("machines mine.toml");
    EXPECT_THAT(read("mine.toml"), HasSubstr("measured, osu.txt, 4 samples, residual"));
    EXPECT_THAT(read("mine.toml"), HasSubstr("[[messaging.across.piece]]"));
    EXPECT_EQ(run("predict --model lenet5 --machine mine.toml --devices 12").code, 0);
    EXPECT_THAT(run("calibrate --samples osu.txt --between nodes --machine summit --machine-out again.toml").out,
                HasSubstr("a message of these between nodes: "));
    EXPECT_THAT(run("calibrate --samples osu.txt --machine summit --machine-out third.toml").err,
                HasSubstr("give --between devices or --between nodes"));

    write("kernels.json", R"({"benchmarks": [{"name": "matmul:n64m1n512k512:f32:forward", "run_type": "iteration",
        "real_time": 12.5, "time_unit": "us"}]})");
    const Output kernels = run("calibrate --samples kernels.json --machine summit --machine-out kernels.toml");
    EXPECT_EQ(kernels.code, 0) << kernels.err;
    EXPECT_THAT(kernels.out, testing::Not(HasSubstr("a message")));
}

std::string dense_samples(const std::string& host, double us) {
    return R"({"context": {"host_name": ")" + host + R"(", "date": "2026-01-01"}, "benchmarks": [)" +
           R"({"name": "matmul:n64m1n512k512:f32:forward/cublas/gemm", "real_time": )" + std::to_string(us) +
           R"(, "time_unit": "us"}]})";
}

// One problem in two files is one price; which file comes last says nothing.
TEST_F(BenchContract, CalibratesFromAllFilesTogether) {
    write("a.json", dense_samples("a", 10)), write("b.json", dense_samples("b", 30));
    for (const char* order : {"a.json b.json", "b.json a.json"}) {
        json(std::string{"calibrate --samples "} + order + " --machine summit --machine-out mine.toml --force");
        EXPECT_THAT(read("mine.toml"), HasSubstr("median = \"20us\"")) << order;
        EXPECT_THAT(read("mine.toml"), HasSubstr("2026-01-01 and ")) << order;
    }
    write("fast.json", dense_samples("a", 0.1));
    EXPECT_THAT(run("calibrate --samples fast.json --machine summit --machine-out fast.toml").err,
                HasSubstr("warning: 1 of 1 kernels took less time than their operations take at the peak"));
}

TEST_F(BenchContract, RefusesRanksThatALogContradicts) {
    std::string log = "# nThread 1\n";
    for (int rank = 0; rank < 4; ++rank) log += "# Rank " + std::to_string(rank) + " on host device 0\n";
    log += "# size count type redop root time algbw busbw #wrong\n4000000 1000000 float sum -1 1000 4.00 6.00 0\n" +
           std::string{"16000000 4000000 float sum -1 4000 4.00 6.00 0\n"};
    write("nccl.txt", log);
    const std::string calibrate = "calibrate --samples nccl.txt --machine summit --machine-out mine.toml --ranks ";
    EXPECT_THAT(run(calibrate + "2").err, HasSubstr("--ranks 2: nccl.txt tells itself that it is of 4 ranks"));
    EXPECT_EQ(run(calibrate + "4").code, 0);
}

TEST_F(BenchContract, CorrectsPricesByAFewKernels) {
    std::string rows = "problem,time_us\n";
    for (int n = 1; n <= 20; ++n) rows += "matmul:n" + std::to_string(100 * n) + "m1n1000k1000:f32:forward,100\n";
    write("few.csv", rows);
    const Json made = json("calibrate --kernels few.csv --machine azure-nc24rs-v3 --machine-out mine.toml");
    EXPECT_EQ(made["factors"][0]["kind"], "matmul");
    EXPECT_EQ(made["factors"][0]["kernels"], 20);
    EXPECT_THAT(read("mine.toml"), HasSubstr("[[device.factor]]"));
    EXPECT_EQ(run("predict --model vgg16 --machine mine.toml --devices 4").code, 0);
    write("bad.csv", "problem,time_us\nmatmul:n8m1n9k9:f32:forward,12\nmatmull:n8m1n9k9:f32:forward,12\n");
    write("slow.csv", "problem,time_us\nmatmul:n8m1n9k9:f32:forward,-12\n");
    write("other.csv", "name,ms\na,1\n");
    const auto refused = [&](const std::string& file, const std::string& why) {
        const Output out = run("calibrate --machine summit --machine-out no.toml --kernels " + file);
        EXPECT_EQ(out.code, 2) << file;
        EXPECT_THAT(out.err, HasSubstr(why));
    };
    refused("bad.csv", "bad.csv:3: ");
    refused("slow.csv", "slow.csv:2: ");
    refused("other.csv", "other.csv:1: ");
    refused("none.csv", "none.csv");
    EXPECT_THAT(run("calibrate --kernels few.csv").err, HasSubstr("--machine"));
}
#endif

}  // namespace
}  // namespace rehearse
