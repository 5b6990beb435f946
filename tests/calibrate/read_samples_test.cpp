// SPDX-License-Identifier: Apache-2.0
// Small files written by hand in the formats of four programs.
#include "calibrate/read_samples.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "calibrate/merged_samples.hpp"
#include "calibrate/quick.hpp"
#include "core/error.hpp"
#include "prices/prices.hpp"

namespace rehearse::calibrate {
namespace {

using namespace literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;
using testing::ThrowsMessage;

constexpr const char* google = R"({
  "context": {"date": "2024-05-01T10:00:00+02:00", "host_name": "node7"},
  "benchmarks": [
    {"name": "activation:n10:relu:1000:f32:forward/onednn", "run_type": "iteration", "real_time": 17, "time_unit": "us"},
    {"name": "activation:n10:relu:1000:f32:forward/onednn", "run_type": "iteration", "real_time": 19, "time_unit": "us"},
    {"name": "activation:n10:relu:1000:f32:forward/onednn", "run_type": "iteration", "real_time": 90, "time_unit": "us"},
    {"name": "activation:n10:relu:1000:f32:forward/onednn_mean", "run_type": "aggregate", "real_time": 42, "time_unit": "us"},
    {"name": "activation:n10:relu:1000:f32:forward/reference", "run_type": "iteration", "real_time": 0.5, "time_unit": "ms"},
    {"name": "BM_memcpy/1024", "run_type": "iteration", "real_time": 30, "time_unit": "ns"},
    {"name": "p2p:n2:1024B:f32/comm/direct", "real_time": 3000, "median_s": 2e-6, "time_unit": "ns"},
    {"name": "p2p:n2:1024B:f32/mpi/default", "real_time": 3000, "median_s": 9e-6, "time_unit": "ns"},
    {"name": "p2p:n2:2048B:f32/comm/direct", "real_time": 3000, "median_s": 3e-6, "time_unit": "ns"}
  ]})";

std::string problem() { return to_string(Problem{Activation{Nonlinearity::relu, {1000}}, Pass::forward, 10}); }

// The names above must be problems as this version writes them.
std::string google_text() {
    std::string text = google;
    const std::string written = "activation:n10:relu:1000:f32:forward";
    for (std::size_t at = text.find(written); at != std::string::npos; at = text.find(written, at + 1))
        text.replace(at, written.size(), problem());
    return text;
}

TEST(ReadSamples, TakesProblemsAndMessagesFromGoogleBenchmark) {
    const FileSamples samples = read_samples(google_text(), "bench.json");
    EXPECT_EQ(samples.where, "node7, 2024-05-01");
    ASSERT_THAT(samples.compute, SizeIs(1));  // the reference is slower: a run would not take it
    EXPECT_EQ(to_string(samples.compute[0].problem), problem());
    EXPECT_EQ(samples.compute[0].backend, "onednn");
    EXPECT_NEAR(samples.compute[0].median.value, 19e-6, 1e-15);
    EXPECT_NEAR(samples.compute[0].error, 1.4826 * 2 / 19, 1e-9);  // distances 0, 2 and 71 us
    ASSERT_THAT(samples.messages, SizeIs(2));
    EXPECT_EQ(samples.messages[0].size, Bytes{1024});
    EXPECT_EQ(samples.messages[0].one_way, 2_us);
    EXPECT_THAT(samples.skipped, ElementsAre(StartsWith("BM_memcpy/1024: "),
                                             "p2p:n2:1024B:f32/mpi/default: messages are fitted to what comm/direct "
                                             "takes"));
}

std::string benchmarks(const std::vector<std::string>& rows) {
    return fmt::format(R"({{"benchmarks": [{}]}})", fmt::join(rows, ", "));
}
std::string benchmark(const std::string& kernel, double us, const std::string& more = "") {
    return fmt::format(R"({{"name": "{}", "real_time": {}, "time_unit": "us"{}}})", kernel, us, more);
}

// What rounds more than its type, or transforms, is the price of other work.
TEST(ReadSamples, LeavesOutKernelsThatARunTakesOnlyByName) {
    const std::string dense = "matmul:n4096m1n4096k4096:f32:forward/", half = "matmul:n4096m1n4096k4096:f16:forward/";
    const FileSamples old =
        read_samples(benchmarks({benchmark(dense + "cublas/gemm", 2700), benchmark(dense + "cublas/tensor-tf32", 350),
                                 benchmark(dense + "cudnn/tf32-3", 340), benchmark(half + "cublas/gemm", 300),
                                 benchmark(half + "cublaslt/fp8-fast", 150), benchmark(half + "cpu/gemm-f16", 100),
                                 benchmark(half + "cpu/gemm-chunked", 90), benchmark(half + "cpu/gemm-chunked", 91)}),
                     "old.json");
    ASSERT_THAT(old.compute, SizeIs(2));
    for (const Sample& sample : old.compute) EXPECT_EQ(sample.backend, "cublas");
    EXPECT_THAT(old.skipped, SizeIs(5)) << "a kernel each, however often it ran";
    EXPECT_THAT(old.skipped, Contains(HasSubstr("fp8-fast: a run takes it only where it is asked for by name")));

    const std::string conv = "conv2d:n8c64h56w56k64r3s3:pad1:stride1:f32:forward/";
    const auto both = [&](const char* direct, const char* winograd) {
        return read_samples(
            benchmarks({benchmark(conv + "cpu/direct", 900, fmt::format(R"(, "taken": {})", direct)),
                        benchmark(conv + "cpu/winograd4", 500, fmt::format(R"(, "taken": {})", winograd))}),
            "new.json");
    };
    EXPECT_EQ(both("true", "false").compute.at(0).algorithm, "direct");
    EXPECT_EQ(both("false", "true").compute.at(0).algorithm, "winograd4") << "where it was tuned";
    EXPECT_THAT([&] { both("false", "false"); }, ThrowsMessage<InputError>(HasSubstr("asked for by name")));
}

TEST(ReadSamples, TakesCollectivesOfBench) {
    const FileSamples samples = read_samples(benchmarks({benchmark("allreduce:n4:1048576B:f32/comm/ring", 600),
                                                         benchmark("allreduce:n4:1048576B:f32/mpi/default", 5),
                                                         benchmark("allgather:n4:4096B:f32/comm/ring", 30),
                                                         benchmark("alltoall:n4:4096B:f32/comm/direct", 30)}),
                                             "ranks.json");
    ASSERT_THAT(samples.collectives, SizeIs(2));
    EXPECT_EQ(samples.collectives[0].kind, "all_gather");
    EXPECT_EQ(samples.collectives[1].kind, "all_reduce");
    EXPECT_EQ(samples.collectives[1].ranks, 4);
    EXPECT_EQ(samples.messages[1].size, Bytes{262144});
    EXPECT_DOUBLE_EQ(samples.messages[1].one_way.value, 100e-6);
    EXPECT_THAT(samples.skipped, SizeIs(2));
}

TEST(MergedSamples, AreOneOfEachProblem) {
    const auto file = [](double us, const std::string& kernel, const std::string& host) {
        FileSamples samples = read_samples(
            fmt::format(R"({{"context": {{"host_name": "{}", "date": "2026-01-01"}}, "benchmarks": [{}]}})", host,
                        benchmark(problem() + kernel, us)),
            host);
        return samples.compute.at(0);
    };
    const std::vector<Sample> all = merged(
        {file(10, "/onednn", "a"), file(30, "/onednn", "b"), file(12, "/onednn", "b"), file(90, "/cpu/direct", "c")});
    ASSERT_THAT(all, SizeIs(1));
    EXPECT_NEAR(all[0].median.value, 12e-6, 1e-15);
    EXPECT_EQ(all[0].count, 3);
    EXPECT_EQ(all[0].where, "a, 2026-01-01 and b, 2026-01-01");
}

constexpr const char* all_reduce_perf =
    R"(# nThread 1 nGpus 4 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20
# Using devices
#  Rank  0 Group  0 Pid   1 on  a device  0
#  Rank  1 Group  0 Pid   1 on  a device  1
#  Rank  2 Group  0 Pid   1 on  a device  2
#  Rank  3 Group  0 Pid   1 on  a device  3
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    100.0   10.49   15.73      0    101.0   10.38   15.57      0
     4194304       1048576     float     sum      -1    340.0   12.34   18.50      0    339.0   12.37   18.56      0
# Out of bounds values : 0 OK
)";

TEST(ReadSamples, TakesARingFromTheAllReduceOfNcclTests) {
    const FileSamples samples = read_samples(all_reduce_perf, "nccl.txt");
    ASSERT_THAT(samples.messages, SizeIs(4));            // out of place and in place
    EXPECT_EQ(samples.messages[0].size, Bytes{262144});  // a quarter on 4 ranks
    EXPECT_NEAR(samples.messages[0].one_way.value, 100e-6 / 6, 1e-15);
    EXPECT_EQ(samples.where, "nccl.txt");
}

TEST(ReadSamples, TakesLinesThatALauncherMarkedWithTheirRank) {
    const std::vector<MessageSample> plain = read_samples(all_reduce_perf, "nccl.txt").messages;
    for (const std::string tag : {"0: ", "12: ", "[0] ", "[1,0]<stdout>:", "[1,0]<stdout>: "}) {
        SCOPED_TRACE(tag);
        std::string tagged = tag + all_reduce_perf;
        for (std::size_t at = tagged.find('\n'); at + 1 < tagged.size(); at = tagged.find('\n', at + 1))
            tagged.insert(at + 1, tag);
        const FileSamples samples = read_samples(tagged, "nccl.txt");
        ASSERT_THAT(samples.messages, SizeIs(plain.size()));
        EXPECT_EQ(samples.messages.back().one_way, plain.back().one_way);
        const std::string latency =
            fmt::format("{0}# OSU MPI Latency Test v7\n{0}# Size  Latency (us)\n{0}8  0.25\n", tag);
        EXPECT_THAT(read_samples(latency, "osu.txt").messages, SizeIs(1));
    }
}

TEST(ReadSamples, TakesMessagesFromTheSendrecvOfNcclTests) {
    const FileSamples samples = read_samples(R"(#  Rank  0 Group 0
#  Rank  1 Group 0
#       size         count      type   redop    root     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)
           0             0     float    none      -1     0.10    0.00    0.00      0
        4096          1024     float    none      -1     8.00    0.51    0.51      0
)",
                                             "sendrecv.txt");
    ASSERT_THAT(samples.messages, SizeIs(1));
    EXPECT_EQ(samples.messages[0].size, Bytes{4096});
    EXPECT_EQ(samples.messages[0].one_way, 8_us);
}

TEST(ReadSamples, TakesOneWayTimesFromOsuLatencyAndRatesOfLongMessagesFromBandwidth) {
    const FileSamples latency =
        read_samples("# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n0 0.20\n8 0.25\n65536 9.5\n", "l");
    ASSERT_THAT(latency.messages, SizeIs(2));
    EXPECT_DOUBLE_EQ(latency.messages[1].one_way.value, 9.5e-6);
    const FileSamples rate =
        read_samples("# OSU MPI Bandwidth Test v5.9\n# Size Bandwidth (MB/s)\n8 30.0\n1048576 10485.76\n", "b");
    ASSERT_THAT(rate.messages, SizeIs(1));
    EXPECT_NEAR(rate.messages[0].one_way.value, 100e-6, 1e-15);
    EXPECT_TRUE(rate.collectives[0].streamed);
    EXPECT_FALSE(latency.collectives[0].streamed);
}

// The one number of a barrier's row is a time, as the first of several is.
TEST(ReadSamples, TakesNoMessagesFromOsusBarriers) {
    for (const char* table :
         {"# OSU MPI Barrier Latency Test v7.3\n# Avg Latency(us)\n 25.41\n",
          "# OSU MPI Barrier Latency Test v7.3\n# Avg Latency(us) Min Max\n 25.41 24.90 26.10 1000\n",
          "# OSU MPI Non-blocking Barrier Latency Test v7.3\n# Overall(us)\n 25.41 24.90 26.10\n"}) {
        const FileSamples samples =
            read_samples(fmt::format("# OSU MPI Latency Test v7.3\n# Size Latency(us)\n8 2.00\n{}", table), "b");
        EXPECT_THAT(samples.messages, SizeIs(1)) << table;
        EXPECT_THAT(samples.skipped, ElementsAre("b:6: a barrier moves no bytes"));
    }
}

TEST(ReadSamples, CountsRowsOfOsuThatItCannotRead) {
    const FileSamples samples =
        read_samples("# OSU MPI Latency Test v5.9\n# Size          Latency (us)\n8 0,25\n65536 9.5\n", "l");
    EXPECT_THAT(samples.messages, SizeIs(1));
    EXPECT_THAT(samples.skipped, ElementsAre(HasSubstr("l:3: '0,25' is no number above 0")));
}

TEST(ReadSamples, OfOsuAllReduceNeedTheNumberOfRanks) {
    const char* text = "# OSU MPI Allreduce Latency Test v5.9\n# Size       Avg Latency(us)\n1048576 120.0\n";
    EXPECT_THAT([&] { read_samples(text, "osu.txt"); }, ThrowsMessage<InputError>(StartsWith("osu.txt:3: ")));
    const FileSamples samples = read_samples(text, "osu.txt", 4);
    EXPECT_EQ(samples.messages.at(0).size, Bytes{262144});
    EXPECT_DOUBLE_EQ(samples.messages.at(0).one_way.value, 20e-6);
}

// Both directions together: 30 MB/s are 15 MB/s each way.
TEST(ReadSamples, TakesHalfOfOsuBidirectionalBandwidth) {
    const FileSamples samples =
        read_samples("# OSU MPI Bi-Directional Bandwidth Test v5.9\n# Size Bandwidth (MB/s)\n65536 30\n", "b");
    ASSERT_THAT(samples.messages, SizeIs(1));
    EXPECT_NEAR(samples.messages[0].one_way.value, 65536 / 15e6, 1e-12);
}

// Sizes of OSU's all-gather are one rank's piece: 4 ranks, 3 rounds of it.
TEST(ReadSamples, TakesRoundsOfARingFromOsuCollectives) {
    const FileSamples samples =
        read_samples("# OSU MPI Allgather Latency Test v7.2\n# Size       Avg Latency(us)\n65536 60.0\n", "osu.txt", 4);
    ASSERT_THAT(samples.messages, SizeIs(1));
    EXPECT_EQ(samples.messages[0].size, Bytes{65536});
    EXPECT_DOUBLE_EQ(samples.messages[0].one_way.value, 20e-6);
    EXPECT_EQ(samples.collectives.at(0).kind, "all_gather");
    EXPECT_EQ(samples.collectives.at(0).bytes, Bytes{4 * 65536});
}

// What they take holds what was computed beside them, or depends on which ranks are neighbours.
TEST(ReadSamples, RefusesOsuCollectivesThatDoNotBlockOrHaveNeighbours) {
    for (const std::string title : {"Non-blocking Allreduce", "Neighborhood Allgather"}) {
        EXPECT_THAT(
            [&] {
                read_samples(
                    fmt::format("# OSU MPI {} Latency Test v7.3\n# Size  Overall(us)\n1024 9.0 4.0 5.0 20\n", title),
                    "osu.txt", 4);
            },
            ThrowsMessage<InputError>(HasSubstr("blocking collectives are read")))
            << title;
    }
}

// What one side puts or gets is no message that both know of.
TEST(ReadSamples, RefusesOsuTestsOfOneSide) {
    for (const std::string title : {"MPI_Get Latency", "MPI_Put Bandwidth", "MPI_Put Bi-Directional Bandwidth",
                                    "MPI_Get_accumulate Latency", "One Sided MPI_Get Latency"}) {
        EXPECT_THAT(
            [&] { read_samples(fmt::format("# OSU {} Test v7.2\n# Size  Value\n65536 12.5\n", title), "osu.txt"); },
            ThrowsMessage<InputError>(HasSubstr("that sends and receives")))
            << title;
    }
}

TEST(ReadSamples, LeavesOutRowsOfOsuWhoseValidationFailed) {
    const FileSamples samples = read_samples(
        "# OSU MPI Latency Test v7.3\n# Size  Latency (us)  Validation\n8 1.0 Fail\n16 1.0 Pass\n", "osu.txt");
    EXPECT_THAT(samples.messages, SizeIs(1));
    ASSERT_THAT(samples.skipped, SizeIs(1));
    EXPECT_THAT(samples.skipped[0], StartsWith("osu.txt:3: its validation failed"));
}

TEST(ReadSamples, TakesMediansWhereGoogleBenchmarkReportsAggregatesOnly) {
    std::string text = R"({"benchmarks": [)";
    for (const auto& [name, us] : {std::pair{"mean", 40}, {"median", 20}, {"stddev", 5}}) {
        text += fmt::format(
            R"({}{{"name": "{}/own_{}", "run_name": "{}/own", "run_type": "aggregate", "aggregate_name": "{}",)"
            R"( "real_time": {}, "time_unit": "us"}})",
            text.ends_with('[') ? "" : ", ", problem(), name, problem(), name, us);
    }
    const FileSamples samples = read_samples(text + "]}", "b.json");
    ASSERT_THAT(samples.compute, SizeIs(1));
    EXPECT_EQ(samples.compute[0].backend, "own");
    EXPECT_DOUBLE_EQ(samples.compute[0].median.value, 20e-6);
}

TEST(ReadSamples, LeavesOutWhatALogSaysBesideRowsAndRowsWithWrongValues) {
    const FileSamples samples = read_samples(R"(# Rank 0
# Rank 1
# size count type redop root time algbw busbw #wrong time algbw busbw #wrong
host:1:2 [0] NCCL INFO Channel 00/02
 4000000 1000000 float sum -1 100 40.0 40.0 7 100 40.0 40.0 N/A
host:1:2 [0] NCCL WARN Net : something
# Out of bounds values : 1 FAILED
)",
                                             "n");
    ASSERT_THAT(samples.collectives, SizeIs(1));
    EXPECT_TRUE(samples.collectives[0].in_place);
    ASSERT_THAT(samples.skipped, SizeIs(2));
    EXPECT_THAT(samples.skipped[0], HasSubstr("n:5: 7 wrong values"));
}

// Two ranks' records of one collective: the shorter. A reduce-scatter's size is one rank's piece.
TEST(ReadSamples, TakesNcclInspectorsRecords) {
    const FileSamples samples = read_samples(
        R"({"header":{"id":"0x9e","rank":0,"n_ranks":32,"nnodes":4},"metadata":{"inspector_output_format_version":"v4.0","hostname":"h"},"coll_perf":{"coll":"ReduceScatter","coll_sn":129,"coll_msg_size_bytes":65536,"coll_exec_time_us":110}}
{"header":{"id":"0x9e","rank":1,"n_ranks":32,"nnodes":4},"coll_perf":{"coll":"ReduceScatter","coll_sn":129,"coll_msg_size_bytes":65536,"coll_exec_time_us":93}}
)",
        "i.log");
    EXPECT_EQ(samples.where, "h");
    ASSERT_THAT(samples.messages, SizeIs(1));
    EXPECT_EQ(samples.messages[0].size, Bytes{65536});
    EXPECT_NEAR(samples.messages[0].one_way.value, 3e-6, 1e-15);
    EXPECT_THAT([] { read_samples("{\"header\":{},\"coll_perf\":{}}\n{\"header\"", "i.log"); },
                ThrowsMessage<InputError>(HasSubstr("i.log:2: ")));
}

TEST(ReadSamples, SaysWhatIsWrongWithAFile) {
    const auto refused = [](std::string_view text, const char* why) {
        EXPECT_THAT([&] { read_samples(text, "f"); }, ThrowsMessage<InputError>(HasSubstr(why))) << text;
    };
    refused("", "neither JSON");
    refused(R"({"context":{"layout":"nhwc"},"benchmarks":[]})", "f: samples of tensors in nhwc");
    refused("hello\n", "neither JSON");
    refused("{ \"a\": 1 }", "without \"benchmarks\"");
    refused("{ not json", "without \"benchmarks\"");
    refused(R"({"benchmarks": [5]})", "f: ");
    refused(R"({"benchmarks": [{"name": 3, "real_time": 1}]})", "f: ");
    refused(R"({"benchmarks": [{"name": "BM_x", "real_time": "long"}]})", "f: ");
    refused(R"({"benchmarks": [{"name": "BM_x", "real_time": 1}]})", "it holds no problem and no message");
    refused(R"({"benchmarks": [{"name": "BM_x", "real_time": 1, "time_unit": "weeks"}]})", "real_time in ns");
    for (const char* ranks : {"1e300", "8.5", "-8", "\"8\"", "18446744073709551615"})
        refused(fmt::format(R"({{"header": {{"n_ranks": {}}}, "coll_perf": {{"coll": "AllReduce"}}}})", ranks),
                "f:1: n_ranks is ");
    refused("# OSU MPI Multiple Bandwidth / Message Rate Test v5.9\n# Size Bandwidth (MB/s)\n65536 30\n", "f:3: ");
    refused("# size count type redop root time algbw busbw\n 8 2 float sum -1 3 0.1 0.1\n", "f:2: the lines '# Rank");
    refused(
        "# Rank 0\n# Rank 1\n# Rank 2\n# Rank 3\n# size count type redop root time algbw busbw\n 8 2 float sum -1 3 "
        "1.0 0.40\n",
        "f:6: busbw / algbw is 0.40");
}

TEST(ReadSamples, BecomePricesOfAMachine) {
    Machine machine;
    machine.name = "pair";
    machine.classes.resize(1);
    const Machine fitted = apply(machine, read_samples(google_text(), "bench.json"));
    const Price priced = price(parse_problem(problem()), fitted.classes[0]);
    EXPECT_NEAR(priced.time.value, 19e-6, 1e-15);
    EXPECT_EQ(priced.source, "measured, node7, 2024-05-01, 3 samples, residual 15.6 % (onednn)");
}

// One time says nothing of its spread: that of the price that the machine had holds, or of three others of the file.
TEST(ReadSamples, OfAProblemThatRanOnceHaveTheErrorThatThePriceHadBefore) {
    Machine machine;
    machine.classes.resize(1);
    DeviceClass& device = machine.classes.front();
    device.peak[DataType::f32] = {FlopRate{1e12}, "sheet"};
    device.memory_bandwidth = {100_GBps, "sheet"};
    device.efficiencies.push_back({"*", {}, {}, 0.5, 0.25, "assumed"});
    const auto row = [](int width, double us) {
        return fmt::format(R"({{"name": "matmul:n64m1n512k{}:f32:forward/x", "real_time": {}, "time_unit": "us"}})",
                           width, us);
    };
    const auto applied = [&](const std::string& rows) {
        const FileSamples samples = read_samples(fmt::format(R"({{"benchmarks": [{}]}})", rows), "b.json");
        const DeviceClass made = apply(machine, samples).classes.front();
        return made.measured.at("matmul:n64m1n512k512:f32:forward");
    };
    EXPECT_DOUBLE_EQ(applied(row(512, 10)).error, 0.25);
    EXPECT_THAT(applied(row(512, 10)).source, HasSubstr("1 sample, its spread is not known"));
    std::string repeated = row(512, 10);
    for (const int width : {64, 128, 256}) {
        for (const double us : {9.0, 10.0, 11.0}) repeated += "," + row(width, us);
    }
    EXPECT_NEAR(applied(repeated).error, 0.14826, 1e-12) << "1.4826 times 1 of 10 us";
}

// SkipWithMessage and SkipWithError of Google Benchmark leave a row without a time.
TEST(ReadSamples, PassOverBenchmarksThatWereSkippedOrEndedWithAnError) {
    const FileSamples samples = read_samples(
        R"({"benchmarks": [
        {"name": "matmul:n64m1n512k512:f32:forward/a", "real_time": 10, "time_unit": "us"},
        {"name": "matmul:n64m1n512k64:f32:forward/a", "skipped": true, "skip_message": "no", "real_time": 0},
        {"name": "matmul:n64m1n512k128:f32:forward/a", "error_occurred": true, "error_message": "no"}]})",
        "b.json");
    EXPECT_THAT(samples.compute, SizeIs(1));
    EXPECT_THAT(samples.skipped, testing::ElementsAre(HasSubstr("k64:f32:forward/a: it was skipped"),
                                                      HasSubstr("k128:f32:forward/a: it ended with an error")));
}

// 21 of 211.72 us are what a text that ends there has left; a whole number of a file written by hand is whole.
TEST(ReadSamples, LeaveOutALastRowOfOsuThatIsCutOff) {
    const std::string begin = "# OSU MPI Latency Test v7.3\n# Size Latency (us)\n8 2.00\n1048576 54.43\n";
    for (const char* cut : {"4194304", "4194304   2", "4194304   211.", "4194304   211.7"}) {
        const FileSamples samples = read_samples(begin + cut, "o.txt");
        EXPECT_THAT(samples.messages, SizeIs(2)) << cut;
        EXPECT_THAT(samples.skipped, testing::ElementsAre(HasSubstr("o.txt:5: the text ends within this row"))) << cut;
    }
    EXPECT_THAT(read_samples(begin + "4194304   211.72", "o.txt").messages, SizeIs(3));
    EXPECT_THAT(read_samples(begin + "4194304   211\n", "o.txt").messages, SizeIs(3));
    EXPECT_THAT(read_samples("# OSU MPI Latency Test v7.3\n8 2\n64 3", "o.txt").messages, SizeIs(2));
}

}  // namespace
}  // namespace rehearse::calibrate
