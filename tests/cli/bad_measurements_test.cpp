// SPDX-License-Identifier: Apache-2.0
// Benchmarks and calibrations, and threads and devices that a host has not.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cli/bad_input.hpp"

namespace rehearse {
namespace {

using testing::HasSubstr;

TEST_F(BadInput, OfBenchmarksAndCalibrations) {
    expect_refused({{"bench", "one of conv, gemm, layer"},
                    {"bench cnov", "did you mean 'conv'"},
                    {"bench conv", "nothing to time"},
                    {"bench alreduce", "did you mean 'allreduce'"},
                    {"bench conv conv2d:n1", "conv2d:n1"},
                    {"bench conv --suite resnet51", "did you mean 'resnet50'"},
                    {"bench conv --suite deepbench-trane", "did you mean 'deepbench-train'"},
                    {"bench conv --suite lenet5 --filter '('", "--filter '('"},
                    {"bench conv --suite lenet5 --filter k77", "no problem matches"},
                    {"bench conv --suite lenet5 --roofline a.jpg", ".svg, .png or .pdf"},
                    {"bench gemm --suite lenet5 --winners a.svg", "--winners: not of bench gemm"},
                    {"bench stream --suite lenet5", "takes no problems"},
                    {"bench stream --threads 0", "--threads"},
                    {"bench stream --threads 1 --filter L9", "no level is wanted"},
                    {"bench peak --filter f32", "--filter: not of bench peak"},
                    {"bench conv --suite lenet5 --threads 2", "OMP_NUM_THREADS"},
                    {"bench peak --out a.json", "--out"},
                    {"bench conv --suite lenet5 --backend onednm", "no backend of this build"},
                    {"bench gemm conv2d:n2c4h8w8k4r3s3:pad1:stride1:f32:forward", "bench layer times any"},
                    {"bench conv --suite lenet5 --budget -1", "--budget"},
                    {"bench gemm matmul:n1m8n8k8:f32:forward --type f16", "--type: of the problems of a network"},
                    {"bench gemm --suite deepbench-train --batch 2", "--batch: of the problems of a network"},
                    {"bench conv --suite lenet5 --min 8B", "--min: not of bench conv, but of messages"},
                    {"bench conv --suite lenet5 --warmup 3", "--warmup: not of bench conv"},
                    {"bench layer --suite lenet5 --factor 2", "--factor: not of bench layer"},
                    {"bench peak --sweep", "--sweep: not of bench peak, but of bench stream"},
                    {"bench stream --skew 1", "--skew: not of bench stream"},
                    {"bench gemm --suite lenet5 --nodes 2", "--nodes: not of bench gemm, but of bench nccl-table"},
                    {"bench embedding --no-check", "--no-check: not of bench embedding"},
                    {"bench tuned --rounds 3", "--rounds: not of bench tuned"},
                    {"bench conv conv2d:n2c4h8w8k4r3s3:pad1:stride1:f32:forward matmul:n1m8n8k8:f32:forward",
                     "matmul:n1m8n8k8:f32:forward is another kind of operator, 'matmul'"},
                    {"calibrate --samples no-such.json", "--machine"},
                    {"calibrate --samples no-such.json --machine summit --machine-out a.toml", "no-such.json"},
                    {"calibrate --samples no-such.json --between cores", "nodes, devices"},
                    {"calibrate --plan data=two", "data=two"},
                    {"calibrate --quick --batch 0", "--batch 0"},
                    {"calibrate --quick --model lenet6", "did you mean 'lenet5'"}});
}

// A recording of `conv1` of lenet5 alone: eight steps of 100 us, every other one `longer` times as long.
std::string recorded_steps(double longer) {
    std::string events;
    double begin = 0;
    for (int step = 0; step < 8; ++step) {
        const double time = step % 2 == 0 ? 100 : 100 * longer;
        const auto add = [&](const char* category, const char* name, double from, double until, const char* shapes) {
            events += fmt::format(
                R"({}{{"ph":"X","cat":"{}","name":"{}","pid":1,"tid":7,"ts":{},"dur":{},"args":{{"Sequence number":{}{}}}}})",
                events.empty() ? "" : ",", category, name, begin + from * time, (until - from) * time, step, shapes);
        };
        add("user_annotation", fmt::format("ProfilerStep#{}", step).c_str(), 0, 1, "");
        add("cpu_op", "aten::conv2d", 0.01, 0.41, R"(,"External id":1,"Input Dims":[[2,1,32,32],[6,1,5,5],[]])");
        add("cpu_op", "autograd::engine::evaluate_function: ConvolutionBackward0", 0.5, 0.9, "");
        begin += time;
    }
    return R"({"schemaVersion":1,"traceEvents":[)" + events + "]}";
}

// Steps that are 60 times as long as their neighbours made prices, and no word of it but a line of figures.
TEST_F(BadInput, OfStepsThatAreNotAlike) {
    for (const double longer : {1.2, 60.0}) {
        write("steps.json", recorded_steps(longer));
        const Output output =
            run("calibrate --trace steps.json --model lenet5 --batch 2 --machine titanx-server "
                "--machine-out mine.toml --force");
        EXPECT_EQ(output.code, 0) << output.err;
        EXPECT_EQ(output.err.find("neighbouring steps differ by 103 %") != std::string::npos, longer > 2) << output.err;
    }
}

#if REHEARSE_HAS_MPI
TEST_F(BadInput, OfBenchmarksOfMessages) {
    expect_refused({{"bench allreduce", "two ranks"},
                    {"bench allreduce ring", "takes no problem strings"},
                    {"bench allreduce --type f64", "f32, f16 or bf16"},
                    {"bench allreduce --min 1MiB --max 1KiB", "no less than the minimum"},
                    {"bench allreduce --max 8", "unit"},
                    {"bench allreduce --factor 1", "above 1"},
                    {"bench allreduce --samples no-such.json", "no-such.json"}});
}

#if REHEARSE_HAS_SIM
// All-gathers of four ranks of one host, as nccl-tests names them.
std::string gathered(const std::string& size_and_rates) {
    std::string log = "# Collective test starting: all_gather_perf\n# nThread 1\n";
    for (int rank = 0; rank < 4; ++rank) log += fmt::format("# Rank {0} Group 0 Pid 1 on a device {0}\n", rank);
    return log + "# size count type redop root time algbw busbw #wrong\n" + size_and_rates;
}

TEST_F(BadInput, OfTablesOfOtherCollectives) {
    write("gather.txt", gathered("4000000 250000 float none -1 100 40.00 30.00 0\n"
                                 "8000000 500000 float none -1 200 40.00 30.00 0\n"));
    expect_refused(
        {{"bench nccl-table --machine perlmutter --compare gather.txt",
          "no row of all_reduce among 4 ranks on 1 node, but all_gather among 4 ranks on 1 host"},
         {"bench nccl-table --machine perlmutter --compare gather.txt --op all_to_all", "but all_gather among 4 ranks"},
         {"bench nccl-table --machine perlmutter --compare gather.txt --op all_gather --nodes 2",
          "no row of all_gather among 8 ranks on 2 nodes"},
         {"calibrate --samples gather.txt --machine perlmutter --between nodes --machine-out a.toml",
          "its 4 ranks are on 1 host, so messages are between devices"}});
    EXPECT_EQ(run("bench nccl-table --machine perlmutter --compare gather.txt --op all_gather").code, 0);
    write("labelled.txt",
          "0: # size count type redop root time algbw busbw #wrong\n"
          "0: 4000000 1000000 float sum -1 100 40.00 60.00 0\n");
    EXPECT_THAT(run("bench nccl-table --machine perlmutter --format csv --compare labelled.txt").out,
                HasSubstr("4000000"));
}
#endif

// A hundred million were a segmentation fault, five thousand took minutes.
TEST_F(BadInput, OfMoreThreadsThanAnyHostHas) {
    const char* const set = std::getenv("OMP_NUM_THREADS");
    const std::string usual = set ? set : "1";
    for (const char* threads : {"1025", "100000000"}) {
        setenv("OMP_NUM_THREADS", threads, 1);
        const std::string message = std::string{"asks for "} + threads + " threads of a rank; at most 1024";
        expect_refused({{"run --model lenet5 --batch 2 --steps 1", message.c_str()},
                        {"bench conv --suite lenet5", message.c_str()},
                        {"calibrate --quick", message.c_str()}});
    }
    setenv("OMP_NUM_THREADS", usual.c_str(), 1);
    expect_refused({{"bench stream --threads 1025", "at most 1024"}});
}

TEST_F(BadInput, OfADeviceThatIsNotThere) {
    expect_refused({{"calibrate --device cuda", "--machine-out"},
                    {"bench allreduce --device cuda", "not of a device"},
                    {"bench conv --suite lenet5 --type f64", "f32, f16 or bf16"},
                    {"bench conv --suite lenet5 --device gpu", "there are: cpu, cuda"}});
    expect_refused(
        {{"run --model lenet5 --batch 2 --steps 1 --device gpu", "there are: cpu, cuda"},
         {"run --model lenet5 --batch 2 --steps 1 --learners 2", "--device cuda"},
         {"run --model lenet5 --batch 2 --steps 1 --learners 0", "at least 1"},
         {"run --model lenet5 --batch 2 --steps 1 --momentum 1", "--momentum 1: from 0 to below 1"},
         {"run --model lenet5 --batch 2 --steps 1 --momentum -0.1", "--momentum -0.1: from 0 to below 1"},
         {"run --model lenet5 --batch 2 --steps 1 --assign idle", "and the plan has none"},
         {"run --model lenet5 --batch 2 --steps 1 --unlocked 2 --plan data:local=2", "--momentum 0"},
         {"run --model lenet5 --batch 2 --steps 1 --plan data:learners=2 --trace x.json", "kernels overlap"}});
    for (const char* command : {"run --model lenet5 --batch 2 --steps 1 --device cuda",
                                "calibrate --device cuda --model lenet5 --machine-out gpu.toml",
                                "bench conv --device cuda --suite lenet5", "bench peak --device cuda"}) {
        const Output output = run(command);
        if (output.code == 0) GTEST_SKIP() << "there is a GPU";
        EXPECT_EQ(output.code, 2) << output.err;
        EXPECT_THAT(output.err, HasSubstr("cuda"));
        EXPECT_FALSE(std::filesystem::exists(path("gpu.toml")));
    }
}
#endif

}  // namespace
}  // namespace rehearse
