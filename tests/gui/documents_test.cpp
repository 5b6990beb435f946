// SPDX-License-Identifier: Apache-2.0
// What the window reads and says without Qt: files of every kind, good and bad, experiments, and rows of ranks.
#include "gui/document.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/error.hpp"
#include "gui/experiment.hpp"
#include "gui/pages.hpp"
#include "gui/timeline_rows.hpp"
#include "picture/critical_path.hpp"
#include "schedule/orders.hpp"
#include "trace/trace.hpp"

namespace rehearse::gui {
namespace {

using picture::Activity;
using testing::HasSubstr;

class Files : public testing::Test {
protected:
    Files() {
        std::string name = (std::filesystem::temp_directory_path() / "rehearse_gui_XXXXXX").string();
        folder_ = mkdtemp(name.data());
    }
    ~Files() override { std::filesystem::remove_all(folder_); }
    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream{folder_ / name, std::ios::binary} << text;
        return (folder_ / name).string();
    }
    std::string problem(const std::string& path) const {
        try {
            load(path);
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    }
    std::filesystem::path folder_;
};

constexpr const char* kineto = R"({"schemaVersion": 1, "distributedInfo": {"rank": 3}, "traceEvents": [
 {"ph": "X", "cat": "kernel", "name": "volta_sgemm_128x64", "pid": 0, "tid": 7, "ts": 10.5, "dur": 4.25, "args": {"stream": 7}},
 {"ph": "X", "cat": "kernel", "name": "ncclKernel_AllReduce_RING", "pid": 0, "tid": 20, "ts": 12, "dur": 8},
 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 1, "ts": 1, "dur": 20, "args": {"shape": [1, [2]]}},
 {"ph": "X", "cat": "cpu_op", "name": "inner", "pid": 100, "tid": 1, "ts": 2, "dur": 5},
 {"ph": "B", "name": "step", "pid": 100, "tid": 2, "ts": 0},
 {"ph": "E", "pid": 100, "tid": 2, "ts": 30},
 {"ph": "s", "id": 1, "pid": 0, "tid": 7, "ts": 10},
 {"ph": "M", "name": "process_name", "pid": 100, "args": {"name": "python"}},
 {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}}]})";

TEST_F(Files, OfKinetoBecomeLanesWithNames) {
    const auto documents = load(write("kineto.json", kineto));
    ASSERT_EQ(documents.size(), 1U);
    const picture::Lanes& lanes = *documents[0].lanes;
    EXPECT_EQ(lanes.size(), 5U);
    ASSERT_EQ(lanes.lanes.size(), 5U);  // two streams, two calls that nest, one thread of B and E
    EXPECT_EQ(lanes.rank_names.at(100), "python");
    const picture::Lane& stream = lanes.lanes[0];
    EXPECT_EQ(stream.name, "stream 7");
    EXPECT_EQ(stream.start(0), 10500);
    EXPECT_EQ(stream.end(0), 14750);
    EXPECT_EQ(lanes.lanes[1].activity(0), Activity::collective);
    EXPECT_EQ(lanes.first, 0);
    EXPECT_EQ(lanes.last, 30000);
}

TEST_F(Files, OfABareArrayOfEventsAreRead) {
    const auto documents = load(write("array.json", R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1}])"));
    EXPECT_EQ(documents.at(0).lanes->size(), 1U);
}

TEST_F(Files, OfAnotherProgramThatAreCutOffShowWhatIsThere) {
    const std::string text = kineto;
    const auto documents = load(write("cut.json", text.substr(0, text.find("\"step\""))));
    EXPECT_EQ(documents.at(0).lanes->size(), 4U);
    EXPECT_THAT(documents[0].warning, HasSubstr("cut off"));
}

TEST_F(Files, ThatAreBrokenAreToldApartFromThoseThatAreCutOff) {
    std::string text = kineto;
    text.replace(text.find("\"pid\": 100"), 5, "!!!!!");
    EXPECT_THAT(problem(write("broken.json", text)), HasSubstr("broken at byte"));
}

TEST_F(Files, ThatCannotBeShownSayWhy) {
    EXPECT_THAT(problem((folder_ / "missing.json").string()), HasSubstr("No such file"));
    EXPECT_THAT(problem(folder_.string()), HasSubstr("directory"));
    EXPECT_THAT(problem(write("empty.json", "")), HasSubstr("empty"));
    EXPECT_THAT(problem(write("noise.bin", "\x01\x02\x03 noise")), HasSubstr("not a trace"));
    EXPECT_THAT(problem(write("x.json", R"({"a": 1})")), HasSubstr("traceEvents"));
    EXPECT_THAT(problem(write("none.json", R"({"traceEvents": []})")), HasSubstr("without one event"));
    EXPECT_THAT(problem(write("v.json", R"({"schema": "rehearse.validation/1"})")), HasSubstr("none that is shown"));
    EXPECT_THAT(problem(write("p.json", R"({"schema": "rehearse.prediction/1", "points": []})")),
                HasSubstr("without points"));
    EXPECT_THAT(problem(write("p2.json", R"({"schema": "rehearse.prediction/1", "poi)")), HasSubstr("cut off"));
}

TEST_F(Files, OfPredictionsKeepTheirFigures) {
    const auto documents =
        load(write("p.json", R"({"schema": "rehearse.prediction/1", "model": "m", "machine": "summit",
        "plan": "data", "precision": "mixed", "points": [
        {"devices": 12, "step_s": 0.5, "step_low_s": 0.4, "step_high_s": 0.75, "samples_per_s": 100, "efficiency": 0.5, "fits": false},
        {"devices": 6, "step_s": 0.25, "samples_per_s": 100, "efficiency": 1, "fits": true}],
        "memory": [{"class": "all", "kind": "weights", "bytes": 8}]})"));
    const Prediction& prediction = *documents.at(0).prediction;
    ASSERT_EQ(prediction.points.size(), 2U);
    EXPECT_EQ(prediction.points[0].devices, 6);  // in order
    EXPECT_EQ(prediction.points[1].step_high_s, 0.75);
    EXPECT_FALSE(prediction.points[1].fits);
    EXPECT_EQ(prediction.memory[0].bytes, 8);
    // The band of the throughput is the other way round: 100 * 0.5 / 0.75.
    const picture::Chart chart = scaling_chart({curve_of(prediction)}, picture::ScalingMetric::throughput, "");
    EXPECT_NEAR(chart.series[0].low[1], 100 * 0.5 / 0.75, 1e-9);
    EXPECT_NEAR(chart.series[0].high[1], 100 * 0.5 / 0.4, 1e-9);
}

TEST_F(Files, OfGoogleBenchmarkBecomeSeconds) {
    const auto documents = load(write("b.json", R"({"context": {"host_name": "h"}, "benchmarks": [
        {"name": "conv/onednn", "run_type": "iteration", "real_time": 2.5, "time_unit": "ms", "flop/s": 1e9},
        {"name": "conv_mean", "run_type": "aggregate", "aggregate_name": "mean", "real_time": 2, "time_unit": "ms"}]})"));
    const Benchmarks& benchmarks = *documents.at(0).benchmarks;
    ASSERT_EQ(benchmarks.rows.size(), 1U);
    EXPECT_DOUBLE_EQ(benchmarks.rows[0].seconds, 2.5e-3);
    EXPECT_EQ(benchmarks.host, "h");
}

TEST_F(Files, OfOursKeepTheirTimelineAndLanes) {
    Timeline timeline{"t", true, 2, {}, {}};
    for (const std::int64_t rank : {0, 1}) {
        timeline.events.push_back(
            {rank, Stream::compute, "a:forward", "a", "forward", 0, 0, Seconds{0}, Seconds{1e-3}, {}, {}});
        timeline.events.push_back(
            {rank, Stream::send_gradients, "b:send", "b", "send", 0, 0, Seconds{1e-3}, Seconds{2e-3}, {}, {}});
    }
    const std::string path = (folder_ / "t.pftrace").string();
    trace::write(timeline, path);
    const auto documents = load(path);
    EXPECT_EQ(documents.at(0).lanes->size(), 4U);
    EXPECT_EQ(documents[0].timeline->events.size(), 4U);
    EXPECT_TRUE(documents[0].lanes->measured);
    EXPECT_EQ(documents[0].lanes->lanes[1].activity(0), Activity::point_to_point);
}

TEST(AnExperiment, IsTheWordsThatRehearseTakes) {
    Experiment e{.model = "my net.onnx",
                 .machine = "summit",
                 .plan = "data:allreduce=hierarchical(ring,halving)",
                 .devices = "6,12",
                 .batch = 8};
    EXPECT_EQ(command_line(e),
              "rehearse predict --model 'my net.onnx' --machine summit --devices 6,12 --plan "
              "'data:allreduce=hierarchical(ring,halving)' --batch 8 --precision mixed --optimizer sgd");
}

TEST(AnExperiment, IsCheckedForMeshAndMemory) {
    Experiment e{.model = "resnet50", .machine = "summit", .plan = "data", .devices = "6", .batch = 32};
    const Check good = check(e);
    EXPECT_EQ(good.problem, "");
    EXPECT_EQ(good.capacity_bytes, 16e9);
    EXPECT_FALSE(good.memory.empty());
    e.batch = 100'000;
    EXPECT_THAT(check(e).problem, HasSubstr("does not fit"));
    e.batch = 32;
    e.plan = "data=4";
    EXPECT_NE(check(e).problem, "");
    e.plan = "datta";
    EXPECT_THAT(check(e).problem, HasSubstr("data"));
    e.plan = "data";
    e.devices = "6,x";
    EXPECT_NE(check(e).problem, "");
}

// In units of a forward: GPipe takes (m + p - 1) * 3; 1F1B as long, and interleaving cuts the bubble by the chunks.
TEST(APlannedPipeline, TakesItsClosedForm) {
    EXPECT_DOUBLE_EQ(time_of(planned_pipeline("gpipe", 4, 8, 1)).high, 33);
    EXPECT_DOUBLE_EQ(time_of(planned_pipeline("1f1b", 4, 8, 1)).high, 33);
    EXPECT_DOUBLE_EQ(time_of(planned_pipeline("interleaved", 4, 8, 2)).high, 24 + 9 / 2.0);
    EXPECT_NEAR(idle_share(planned_pipeline("gpipe", 4, 8, 1)), 3.0 / 11, 1e-12);
    EXPECT_THROW(planned_pipeline("nonsense", 4, 8, 1), InputError);
}

picture::Lanes many_ranks(int ranks) {
    picture::LanesBuilder builder("t", false, ranks);
    const auto f = builder.what({"f", "", "", 0, 0, 0, Activity::forward});
    for (int r = 0; r < ranks; ++r) {
        builder.add(builder.lane(r, Stream::compute, "compute"), 0, 10, f);
        builder.add(builder.lane(r, Stream::communication, "communication"), 10, 10, f);
    }
    return builder.finish();
}

TEST(Rows, OfManyRanksShareTheRoom) {
    const auto lanes = many_ranks(1000);
    const auto rows = lay_out(lanes, {}, 500);
    EXPECT_EQ(rows.size(), 500U);
    EXPECT_EQ(rows.back().y + rows.back().height, 500);
    EXPECT_EQ(rows[1].name, "ranks 2–3");
    RowChoice open;
    open.open = {2};
    open.pinned = {7};
    const auto opened = lay_out(lanes, open, 500);
    EXPECT_EQ(opened[0].rank, 7);
    const auto rank2 = std::ranges::find_if(opened, [](const TimelineRow& row) { return row.is_open; });
    ASSERT_NE(rank2, opened.end());
    EXPECT_EQ((rank2 + 1)->name, "compute");
    EXPECT_TRUE((rank2 + 1)->is_lane);
    open.filter = "rank 99";
    EXPECT_EQ(lay_out(lanes, open, 500).size(), 11U);  // 99 and 990 to 999
    double y = 0;
    for (const TimelineRow& row : opened) {
        EXPECT_GE(row.y, y);
        y = row.y + row.height;
    }
}

// Two ranks compute 10 and 30, then sum: the sum waits for rank 1, and so does the end.
TEST(ACriticalPath, GoesThroughTheRankThatCameLast) {
    picture::LanesBuilder builder("t", false, 2);
    const auto fast = builder.what({"fast", "", "", 0, 0, 0, Activity::forward});
    const auto slow = builder.what({"slow", "", "", 0, 0, 0, Activity::forward});
    const auto sum = builder.what({"sum", "", "", 0, 8, 0, Activity::collective});
    builder.add(builder.lane(0, Stream::compute, "compute"), 0, 10, fast);
    builder.add(builder.lane(1, Stream::compute, "compute"), 0, 30, slow);
    builder.add(builder.lane(0, Stream::communication, "communication"), 10, 40, sum);
    builder.add(builder.lane(1, Stream::communication, "communication"), 30, 20, sum);
    const picture::Lanes lanes = builder.finish();
    std::vector<std::string> names;
    for (const auto& step : critical_path(lanes))
        names.push_back(lanes.whats[lanes.lanes[step.at.lane].what(step.at.event)].step);
    EXPECT_THAT(names, testing::ElementsAre("slow", "sum", "sum"));
    EXPECT_EQ(partners(lanes, {1, 0}), (std::vector<picture::EventAt>{{3, 0}}));
    EXPECT_EQ(free_slack(lanes, {0, 0}), 0);  // the sum begins at once
    EXPECT_EQ(free_slack(lanes, {1, 0}), 0);  // the end
}

}  // namespace
}  // namespace rehearse::gui
