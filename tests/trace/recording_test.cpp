// SPDX-License-Identifier: Apache-2.0
// Profiler traces written by hand in the format of libkineto/src/output_json.cpp; figures are worked out beside them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdlib>
#include <tuple>

#include "core/error.hpp"
#include "tests/trace/timelines.hpp"
#include "trace/recorded_events.hpp"
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
std::string two_steps(double begin = 0) {
    std::string events;
    for (int step = 0; step < 2; ++step) {
        const double t = begin + 100.0 * step;
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

// Times are those of any clock: a trace may begin below zero.
TEST_F(Recorded, TimesBelowZeroAreTimes) {
    const Recording after = read(file_of(two_steps())), before = read(file_of(two_steps(-1000)));
    ASSERT_EQ(before.calls.size(), 6U);
    for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_EQ(before.calls[i].busy, after.calls[i].busy);
        EXPECT_EQ(before.calls[i].start, after.calls[i].start - 1'000'000);
    }
    EXPECT_EQ(before.steps[0].start, -990'000);
}

std::string annotation(std::string_view name, double ts, double dur, int thread = 7) {
    return fmt::format(
        R"({{"ph":"X","cat":"user_annotation","name":"{}","pid":1,"tid":{},"ts":{},"dur":{},"args":{{}}}},)", name,
        thread, ts, dur);
}

// A thread of the host waits for samples from 0.5 to 8 of each step. Of the second, the device computes until 90 and
// from 110 on, and sums from 95 to 105.
TEST_F(Recorded, AWaitForSamplesBesideTheDeviceCountsWhereItDoesNothingElse) {
    std::string loading = two_steps();
    for (const double t : {0.0, 100.0}) loading += annotation("enumerate(DataLoader)#_Iter.__next__", t + 0.5, 7.5, 8);
    const Recording recording = read(file_of(loading));
    ASSERT_EQ(recording.calls.size(), 8U);
    const RecordedCall &wait = recording.calls[4], &conv = recording.calls[5];
    EXPECT_EQ(wait.part, RecordedCall::Part::loader);
    EXPECT_EQ(wait.busy, 3'000);  // 100.5 to 108, of which the sum takes 4.5
    EXPECT_EQ(wait.at, 105'000);
    EXPECT_EQ(conv.gap, 7'000);  // 90 to 110, less the sum and the rest of the wait
    EXPECT_EQ(recording.steps[0].loader, 3'000);
    const Recording hidden = read(file_of(loading + kernel("still_going", 90, 20, 5)));
    EXPECT_EQ(hidden.calls[4].busy, 0) << "the device computes all the while";
    EXPECT_EQ(hidden.steps[0].loader, 0);
    for (const Event& event : timeline_of(hidden).events)
        EXPECT_TRUE(event.iteration == 0 || event.stream != Stream::io);
}

// The last step's sum ends at 205, its mark at 200; of a step that is marked longer, its mark.
TEST_F(Recorded, TheLastStepOfADeviceEndsWithAllThatIsOfIt) {
    EXPECT_EQ(read(file_of(two_steps())).steps[1].end, 205'000);
    std::string longer = two_steps();
    longer.replace(longer.rfind("\"dur\":100,"), 10, "\"dur\":130,");
    const Recording recording = read(file_of(longer));
    EXPECT_EQ(recording.steps[1].end, 230'000);
    const RecordedCall& tail = recording.calls.back();
    EXPECT_EQ(tail.part, RecordedCall::Part::idle);
    EXPECT_EQ(tail.gap, 15'000);  // 205 to 230, less the 10 that the step waited before its own first kernel
    EXPECT_EQ(tail.at, 220'000);
    EXPECT_NEAR(length(timeline_of(recording)).value, 220e-6, 1e-12) << "from the first kernel, at 10";
}

// Neither a function of the program's own nor a kernel that a compiler made is an operator. Of each step the former's
// kernel goes from 32 to 38, between 30 and 40, the latter's from 92 to 94, behind 90.
TEST_F(Recorded, KernelsThatNoOperatorLaunchedAreCallsByThemselves) {
    std::string events = two_steps();
    for (const int step : {0, 1}) {
        const double t = 100.0 * step;
        events += host("FlashAttnFunc", t + 11.2, 0.6, 50 + step, R"(,"Sequence number":7)");
        events += kernel("flash_fwd_kernel", t + 32, 6, 50 + step);
        events += fmt::format(
            R"({{"ph":"X","cat":"cuda_driver","name":"cuLaunchKernel","pid":1,"tid":7,"ts":{},"dur":1,"args":{{"correlation":{}}}}},)",
            t + 45, 80 + step);
        events += fmt::format(
            R"({{"ph":"X","cat":"kernel","name":"triton_poi_0","pid":0,"tid":20,"ts":{},"dur":2,"args":{{"correlation":{}}}}},)",
            t + 92, 80 + step);
    }
    const Recording recording = read(file_of(events));
    ASSERT_EQ(recording.calls.size(), 10U);
    const RecordedCall &flash = recording.calls[1], &relu = recording.calls[2], &triton = recording.calls[4];
    EXPECT_EQ(recording.name_of(flash), "FlashAttnFunc");
    EXPECT_EQ(std::tuple(flash.busy, flash.gap, flash.at, flash.sequence), std::tuple(6'000, 2'000, 32'000, 7));
    EXPECT_EQ(relu.gap, 2'000);
    EXPECT_EQ(recording.name_of(triton), "triton_poi_0");
    EXPECT_EQ(std::tuple(triton.busy, triton.gap, triton.step), std::tuple(2'000, 2'000, 0));
    EXPECT_EQ(recording.calls[9].step, 1);
}

// Calls stand where their kernels do, from the first one on, at 10; flatten launched none.
TEST_F(Recorded, OnADeviceTheTimelineIsThatOfTheKernels) {
    const Timeline timeline = timeline_of(read(file_of(two_steps() + host("aten::flatten", 16, 2, 50))));
    std::vector<std::string> steps;
    for (const Event& event : timeline.events) {
        if (event.iteration == 0)
            steps.push_back(
                fmt::format("{} {:.0f} {:.0f}", event.step, event.start.value * 1e6, event.end.value * 1e6));
    }
    EXPECT_THAT(steps, ElementsAre("aten::conv2d 0 20", "aten::relu 30 40",
                                   "autograd::engine::evaluate_function: ConvolutionBackward0 40 80",
                                   "all_reduce 85 95", "after the last operator 95 100"));
}

TEST_F(Recorded, WhatAProgramPutsAroundOperatorsIsNone) {
    const std::string around = annotation("model::forward", 0.5, 17) + annotation("FSDP::pre_forward", 0.6, 0.2) +
                               annotation("MyBackward", 19, 30);
    const Recording recording = read(file_of(around + two_steps()));
    ASSERT_EQ(recording.calls.size(), 6U);
    EXPECT_EQ(recording.name_of(recording.calls[0]), "aten::conv2d");
    EXPECT_EQ(role_of("FSDP::pre_forward", false), Role::annotation) << "as PyTorch before 2.0 wrote it";
}

// Where a group's ranks are cut short, nobody knows them.
TEST_F(Recorded, GroupsOfCollectivesAreReadWhereTheyAreListed) {
    const auto put_ranks = [&](std::string_view ranks) {
        std::string text = two_steps();
        const std::string_view size = "\"Group size\":4";
        for (std::size_t at = text.find(size); at != std::string::npos; at = text.find(size, at + size.size()))
            text.insert(at + size.size(), fmt::format(",\"Process Group Ranks\":{}", ranks));
        return read(file_of(text)).collectives.front().members;
    };
    EXPECT_THAT(put_ranks(R"("[0, 2, 4, 6]")"), ElementsAre(0, 2, 4, 6));
    EXPECT_THAT(put_ranks("[0, 2, 4, 6]"), ElementsAre(0, 2, 4, 6));
    EXPECT_THAT(put_ranks(R"("[0, 1, ..., 6]")"), ElementsAre());
}

// Of 4 ranks: each gives 1,000 numbers, and has 4,000 in the end; a sum is of what each gives.
TEST_F(Recorded, GatheredByGlooIsWhatAllRanksGive) {
    std::string events = annotation("ProfilerStep#1", 0, 50) + host("aten::mm", 1, 5, 1);
    for (const std::string_view name : {"gloo:all_gather", "gloo:all_reduce"}) {
        events += fmt::format(
            R"({{"ph":"X","cat":"cpu_op","name":"{}","pid":1,"tid":9,"ts":{},"dur":5,"args":{{"Input Dims":[[1000]],"Input type":["float"]}}}},)",
            name, name.ends_with("gather") ? 10 : 20);
    }
    const Recording recording = read(file_of(events));
    ASSERT_EQ(recording.collectives.size(), 2U);
    EXPECT_EQ(recording.collectives[0].bytes, Bytes{16'000});
    EXPECT_EQ(recording.collectives[1].bytes, Bytes{4'000});
}

TEST(RecordedCopies, AreNamedByTheirDirection) {
    EXPECT_EQ(direction_of("Memcpy HtoD (Pinned -> Device)"), "HtoD");
    EXPECT_EQ(direction_of("CopyHostToDevice"), "HtoD");
    EXPECT_EQ(direction_of("CopyDeviceToHost"), "DtoH");
    EXPECT_EQ(direction_of("Memset (Device)"), "memset");
    EXPECT_EQ(direction_of("something"), "copy");
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
    ASSERT_EQ(recording.calls.size(), 2U);  // and what the step is longer
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

// 0..3 the program's own, 3..6 mm, 6..9 relu, 9..10 idle; then 10..14 its own, and mm to the end.
TEST_F(Recorded, AStepOfTheHostIsAsLongAsItsMark) {
    std::string events = R"({"ph":"X","name":"ProfilerStep#1","tid":1,"ts":0,"dur":10,"args":{}},)";
    events += R"({"ph":"X","name":"aten::mm","tid":1,"ts":3,"dur":3,"args":{}},)";
    events += R"({"ph":"X","name":"aten::relu","tid":1,"ts":6,"dur":3,"args":{}},)";
    events += R"({"ph":"X","name":"ProfilerStep#2","tid":1,"ts":10,"dur":10,"args":{}},)";
    events += R"({"ph":"X","name":"aten::mm","tid":1,"ts":14,"dur":6,"args":{}},)";
    const Recording recording = read(file_of(events));
    ASSERT_EQ(recording.calls.size(), 5U);
    const RecordedCall &first = recording.calls[0], &second = recording.calls[3];
    EXPECT_EQ(recording.name_of(first), "before the first operator");
    EXPECT_EQ(std::tuple(first.part, first.busy, first.gap), std::tuple(RecordedCall::Part::idle, 0, 3'000));
    EXPECT_EQ(std::tuple(second.part, second.at, second.gap), std::tuple(RecordedCall::Part::idle, 10'000, 4'000));
    std::vector<std::string> steps;
    for (const Event& event : timeline_of(recording).events)
        steps.push_back(fmt::format("{} {:.0f} {:.0f}", event.step, event.start.value * 1e6, event.end.value * 1e6));
    EXPECT_THAT(steps,
                ElementsAre("before the first operator 0 3", "aten::mm 3 6", "aten::relu 6 9",
                            "after the last operator 9 10", "before the first operator 10 14", "aten::mm 14 20"));
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
    std::string begun = whole;
    begun.replace(begun.find("\"ph\":\"X\",\"cat\":\"cpu_op\""), 8, "\"ph\":\"B\"");
    EXPECT_THAT(refusal(begun), HasSubstr("phase B, which begins only"));
    std::string merged = two_steps();
    merged.replace(merged.rfind("\"pid\":1,"), 8, "\"pid\":2,");
    EXPECT_THAT(refusal(file_of(merged)), HasSubstr("operators of process 2 beside those of process 1"));
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
    EXPECT_EQ(timeline.events.size(), 9U);  // with the first step's end
    EXPECT_EQ(timeline.events.front().step, "aten::conv2d");
    EXPECT_EQ(timeline.events.front().rank, 1);
    EXPECT_THROW(trace::read(path_), OtherProgram);
}

}  // namespace

}  // namespace rehearse::trace
