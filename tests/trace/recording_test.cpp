// SPDX-License-Identifier: Apache-2.0
// Profiler traces written by hand in the format of libkineto/src/output_json.cpp; figures are worked out beside them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>

#include "core/error.hpp"
#include "tests/trace/timelines.hpp"
#include "trace/recording.hpp"
#include "trace/trace.hpp"

namespace rehearse::trace {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string host(std::string_view name, double ts, double dur, int external, std::string_view more = "") {
    return fmt::format(
        R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":1,"tid":7,"ts":{},"dur":{},"args":{{"External id":{}{}}}}},)",
        name, ts, dur, external, more);
}
std::string kernel(std::string_view name, double ts, double dur, int external, std::string_view more = "") {
    return fmt::format(
        R"({{"ph":"X","cat":"kernel","name":"{}","pid":0,"tid":20,"ts":{},"dur":{},"args":{{"External id":{},"stream":20{}}}}},)",
        name, ts, dur, external, more);
}
std::string file_of(const std::string& events, std::string_view job = R"("rank":1,"world_size":4)") {
    return fmt::format(
        R"({{"schemaVersion":1,"distributedInfo":{{"backend":"nccl",{}}},"traceEvents":[{}{{"ph":"M","name":"x"}}]}})",
        job, events);
}

// Two steps of 100 us. On the device, from the first kernel of each:
//   conv 10..30   (idle 10)   relu 40..50   dgrad 50..60  wgrad 60..90   all-reduce 95..105 while nothing computes
std::string two_steps() {
    std::string events;
    for (int step = 0; step < 2; ++step) {
        const double t = 100.0 * step;
        const int id = 10 * step;
        events += fmt::format(
            R"({{"ph":"X","cat":"user_annotation","name":"ProfilerStep#{}","pid":1,"tid":7,"ts":{},"dur":100,"args":{{}}}},)",
            step + 5, t);
        events += host("aten::conv2d", t + 1, 10, id + 1,
                       fmt::format(R"(,"Sequence number":{},"Input Dims":[[2,3,8,8],[4,3,3,3],[]])", id));
        events += host("aten::cudnn_convolution", t + 2, 5, id + 2);
        events += host("aten::relu", t + 12, 3, id + 3, fmt::format(R"(,"Sequence number":{})", id + 1));
        events += host("autograd::engine::evaluate_function: ConvolutionBackward0", t + 20, 20, id + 4,
                       fmt::format(R"(,"Sequence number":{})", id));
        events += host("aten::convolution_backward", t + 21, 15, id + 5);
        events += kernel("implicit_gemm", t + 10, 20, id + 2);
        events += kernel("vectorized_elementwise", t + 40, 10, id + 3);
        events += kernel("cudnn_dgrad_engine", t + 50, 10, id + 5);
        events += kernel("cudnn_wgrad_engine", t + 60, 30, id + 5);
        events += kernel(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", t + 95, 10, id + 4,
            R"(,"Collective name":"allreduce","In msg nelems":1000,"Out msg nelems":1000,"dtype":"Float","Group size":4)");
    }
    return events;
}

class Recorded : public testing::Test {
protected:
    ~Recorded() override { ::unlink(path_.c_str()); }
    Recording read(const std::string& content) {
        put(path_, content);
        return read_recording(path_);
    }
    std::string refusal(const std::string& content) {
        try {
            read(content);
        } catch (const InputError& error) {
            return error.what();
        }
        return "no error";
    }
    std::string path_ = path_of(fmt::format("recording_{}.json", ::getpid()));
};

TEST_F(Recorded, KernelsCountForTheOperatorThatLaunchedThem) {
    const Recording recording = read(file_of(two_steps()));
    EXPECT_EQ(recording.rank, 1);
    EXPECT_EQ(recording.ranks, 4);
    EXPECT_TRUE(recording.on_device && recording.marked);
    ASSERT_EQ(recording.calls.size(), 6U);  // the convolution inside conv2d is none of its own
    const RecordedCall &conv = recording.calls[3], &relu = recording.calls[4], &node = recording.calls[5];
    EXPECT_EQ(recording.name_of(conv), "aten::conv2d");
    EXPECT_EQ(recording.texts[conv.shapes], "[[2, 3, 8, 8], [4, 3, 3, 3], []]");
    EXPECT_EQ(conv.busy, 20'000);
    EXPECT_EQ(conv.gap, 10'000);  // 90 to 110 without the first step's all-reduce, 95 to 105
    EXPECT_EQ(relu.busy, 10'000);
    EXPECT_EQ(relu.gap, 10'000);
    EXPECT_EQ(node.busy, 40'000);
    EXPECT_EQ(node.data, 10'000);
    EXPECT_EQ(node.weights, 30'000);
    ASSERT_EQ(node.inners, 1U);
    EXPECT_EQ(recording.inner[node.inner].busy, 40'000);
}

TEST_F(Recorded, StepsOfADeviceBeginWithTheirFirstKernel) {
    const Recording recording = read(file_of(two_steps()));
    ASSERT_EQ(recording.steps.size(), 2U);
    EXPECT_EQ(recording.steps[0].end - recording.steps[0].start, 100'000);
    EXPECT_EQ(recording.steps[0].collective, 10'000);
    EXPECT_EQ(recording.steps[0].exposed, 10'000);
    ASSERT_EQ(recording.collectives.size(), 2U);
    EXPECT_EQ(recording.collectives[0].kind, "all_reduce");
    EXPECT_EQ(recording.collectives[0].bytes, Bytes{4000});
    EXPECT_EQ(recording.collectives[0].ranks, 4);
}

// Without numbers of operators: launches of the runtime say by whose thread and when.
TEST_F(Recorded, LaunchesOfTheRuntimeSayWhoseKernelsThereAre) {
    std::string events =
        R"({"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","tid":7,"ts":0,"dur":50,"args":{}},)";
    events += R"({"ph":"X","cat":"cpu_op","name":"aten::mm","tid":7,"ts":1,"dur":9,"args":{}},)";
    events +=
        R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","tid":7,"ts":5,"dur":1,"args":{"correlation":77}},)";
    events += R"({"ph":"X","cat":"kernel","name":"sgemm","tid":20,"ts":20,"dur":8,"args":{"correlation":77}},)";
    const Recording recording = read(file_of(events));
    ASSERT_EQ(recording.calls.size(), 1U);
    EXPECT_EQ(recording.calls[0].busy, 8'000);
}

// 0..4 mm, 4..6 idle, 6..9 relu, 9..10 idle: the host computes.
TEST_F(Recorded, WhereTheHostComputesIdleTimeFollowsAnOperator) {
    std::string events = R"({"ph":"X","name":"ProfilerStep*","tid":1,"ts":0,"dur":10,"args":{}},)";
    events += R"({"ph":"X","name":"aten::mm","tid":1,"ts":0,"dur":4,"args":{}},)";
    events += R"({"ph":"X","name":"aten::relu","tid":1,"ts":6,"dur":3,"args":{}},)";
    const Recording recording = read(file_of(events));
    ASSERT_EQ(recording.calls.size(), 2U);
    EXPECT_EQ(recording.calls[0].busy, 4'000);
    EXPECT_EQ(recording.calls[0].gap, 2'000);
    EXPECT_EQ(recording.calls[1].gap, 1'000);
}

// PyTorch without Kineto: a bare list, no categories. mm relu, three times, behind a warm-up that is another.
TEST_F(Recorded, ARepetitionIsStepsWhereNoneIsMarked) {
    std::string events = R"([{"ph":"X","name":"aten::rand","tid":1,"ts":0,"dur":4,"args":{}})";
    for (int i = 0; i < 3; ++i) {
        events += fmt::format(R"(,{{"ph":"X","name":"aten::mm","tid":1,"ts":{},"dur":4,"args":{{}}}})", 10 + 10 * i);
        events += fmt::format(R"(,{{"ph":"X","name":"aten::relu","tid":1,"ts":{},"dur":2,"args":{{}}}})", 15 + 10 * i);
    }
    const Recording recording = read(events + "]");
    EXPECT_FALSE(recording.marked);
    ASSERT_EQ(recording.steps.size(), 3U);
    EXPECT_EQ(recording.steps[1].end - recording.steps[1].start, 10'000);
    EXPECT_EQ(recording.calls.size(), 6U);
}

TEST_F(Recorded, SaysAtWhichByteATraceIsBroken) {
    const std::string whole = file_of(two_steps());
    EXPECT_THAT(refusal(whole.substr(0, 1500)), HasSubstr("cut off at byte 1500"));
    std::string nan = whole;
    const std::size_t at = nan.find("\"dur\":10,");
    nan.replace(at + 6, 2, "NaN");
    EXPECT_THAT(refusal(nan), HasSubstr(fmt::format("broken at byte {}", at + 6)));
    std::string negative = whole;
    negative.replace(at + 6, 2, "-3");
    EXPECT_THAT(refusal(negative), HasSubstr("\"dur\" of 'aten::conv2d' is negative: -3 us"));
    EXPECT_THAT(refusal(negative), testing::ContainsRegex("broken at byte [0-9]+"));
    EXPECT_THAT(refusal(file_of("")), HasSubstr("no operator"));
    EXPECT_THAT(refusal(file_of(host("aten::mm", 0, 1, 1))), HasSubstr("no training step"));
    EXPECT_THAT(refusal(file_of(two_steps(), R"("rank":4,"world_size":4)")), HasSubstr("rank 4 of 4"));
}

TEST_F(Recorded, IsReadOutOfGzipFilesToo) {
    put(path_, file_of(two_steps()));
    ASSERT_EQ(std::system(fmt::format("gzip -k -f {0}", path_).c_str()), 0);
    const std::string zipped = path_ + ".gz", bytes = content_of(zipped);
    EXPECT_EQ(read_recording(zipped).calls.size(), 6U);
    const auto refused = [&](std::string content) {
        put(zipped, content);
        try {
            read_recording(zipped);
        } catch (const InputError& error) {
            return std::string{error.what()};
        }
        return std::string{"no error"};
    };
    EXPECT_THAT(refused(bytes.substr(0, bytes.size() - 20)),
                HasSubstr(fmt::format("cut off at byte {}", bytes.size() - 20)));
    std::string damaged = bytes;
    for (std::size_t i = damaged.size() / 2; i < damaged.size() / 2 + 40; ++i)
        damaged[i] = static_cast<char>(~damaged[i]);
    EXPECT_THAT(refused(damaged), testing::ContainsRegex("broken at byte [0-9]+"));
    ::unlink(zipped.c_str());
}

TEST_F(Recorded, BecomesATimelineByTheFrameworksNames) {
    const Timeline timeline = timeline_of(read(file_of(two_steps())));
    EXPECT_EQ(timeline.ranks, 4);
    EXPECT_EQ(timeline.events.size(), 8U);
    EXPECT_EQ(timeline.events.front().step, "aten::conv2d");
    EXPECT_EQ(timeline.events.front().rank, 1);
    EXPECT_THROW(trace::read(path_), OtherProgram);
}

}  // namespace

}  // namespace rehearse::trace
