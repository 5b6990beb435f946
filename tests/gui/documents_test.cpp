// SPDX-License-Identifier: Apache-2.0
// What the window reads and says without Qt: files of every kind, good and bad, experiments, and rows of ranks.
#include "gui/document.hpp"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.hpp"
#include "core/file.hpp"
#include "gui/experiment.hpp"
#include "gui/pages.hpp"
#include "gui/start.hpp"
#include "gui/timeline_rows.hpp"
#include "gui/timeline_tables.hpp"
#include "models/models.hpp"
#include "prices/prices.hpp"
#include "schedule/axes/orders.hpp"
#include "tests/gui/files_fixture.hpp"
#include "trace/trace.hpp"

namespace rehearse::gui {
namespace {

using picture::Activity;
using testing::HasSubstr;

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

// A launch on a CPU thread, the kernel on the GPU, two asynchronous requests that overlap, and labels, as Kineto and
// Chrome write them. The launch of 1 us at 10 us lies inside the call from 5 to 25 us; the arrow goes from it.
TEST_F(Files, OfKinetoKeepArgumentsFlowsAsynchronousEventsAndLabels) {
    const auto documents = load(write("k.json", R"({"traceEvents": [
 {"ph": "M", "name": "process_name", "pid": 100, "args": {"name": "python"}},
 {"ph": "M", "name": "process_labels", "pid": 100, "args": {"labels": "CPU"}},
 {"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "GPU 0"}},
 {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 1, "ts": 5, "dur": 20,
  "args": {"Input Dims": [[64, 32], [32, 8]], "External id": 17}},
 {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 1, "ts": 10, "dur": 1},
 {"ph": "X", "cat": "kernel", "name": "sgemm", "pid": 0, "tid": 7, "ts": 30, "dur": 8,
  "args": {"grid": [4, 1, 1], "est. achieved occupancy %": 50.5, "queued": true, "name": null}},
 {"ph": "s", "cat": "ac2g", "id": 9, "pid": 100, "tid": 1, "ts": 10},
 {"ph": "f", "cat": "ac2g", "id": 9, "pid": 0, "tid": 7, "ts": 30, "bp": "e"},
 {"ph": "b", "cat": "net", "id": "0x1", "name": "get", "pid": 100, "tid": 1, "ts": 0, "args": {"url": "a"}},
 {"ph": "b", "cat": "net", "id": "0x2", "name": "put", "pid": 100, "tid": 1, "ts": 2},
 {"ph": "e", "cat": "net", "id": "0x1", "pid": 100, "tid": 2, "ts": 6, "args": {"status": 200}},
 {"ph": "e", "cat": "net", "id": "0x2", "pid": 100, "tid": 2, "ts": 4}]})"));
    const picture::Lanes& lanes = *documents.at(0).lanes;
    EXPECT_EQ(lanes.rank_names.at(100), "python (CPU)");
    EXPECT_EQ(lanes.rank_names.at(0), "GPU 0");
    std::map<std::string, picture::EventAt> of;
    for (std::size_t l = 0; l < lanes.lanes.size(); ++l) {
        for (std::size_t i = 0; i < lanes.lanes[l].size(); ++i) of[lanes.whats[lanes.lanes[l].what(i)].step] = {l, i};
    }
    const auto arguments = [&](const char* name) {
        const auto place = lanes.lanes[of.at(name).lane].arguments(of.at(name).event);
        return place ? lanes.arguments[*place] : "";
    };
    EXPECT_EQ(arguments("aten::mm"), "Input Dims: [[64, 32], [32, 8]]\nExternal id: 17");
    EXPECT_EQ(arguments("sgemm"), "grid: [4, 1, 1]\nest. achieved occupancy %: 50.5\nqueued: true\nname: null");
    EXPECT_EQ(arguments("cudaLaunchKernel"), "");
    EXPECT_EQ(arguments("get"), "url: a\nstatus: 200");
    EXPECT_EQ(partners(lanes, of.at("cudaLaunchKernel")), std::vector{of.at("sgemm")});
    EXPECT_EQ(partners(lanes, of.at("sgemm")), std::vector{of.at("cudaLaunchKernel")});
    EXPECT_EQ(lanes.lanes[of.at("aten::mm").lane].flow(of.at("aten::mm").event), 0U);
    const picture::Lane& get = lanes.lanes[of.at("get").lane];
    EXPECT_EQ(get.end(of.at("get").event) - get.start(of.at("get").event), 6000);  // ended on another thread
    EXPECT_EQ(get.name, "asynchronous net");
    EXPECT_NE(of.at("get").lane, of.at("put").lane);  // they overlap
    const Rows rows = details_of(lanes, nullptr, of.at("sgemm"));
    EXPECT_TRUE(std::ranges::any_of(
        rows.rows, [](const auto& row) { return row[0].text == "grid" && row[1].text == "[4, 1, 1]"; }));
}

// Events at 1.2345678 s: the selection says it to the nanosecond.
TEST_F(Files, KeepTheirNanosecondsInTheTables) {
    picture::LanesBuilder builder("t", false, 1);
    builder.add(builder.lane(0, Stream::compute, "c"), 1'234'567'800, 1'500,
                builder.what({"s", "", "", 0, 0, 0, Activity::other}));
    const Rows rows = details_of(builder.finish(), nullptr, {0, 0});
    EXPECT_EQ(rows.rows.at(3)[1].text, "1.2345678 s");
    EXPECT_EQ(rows.rows.at(4)[1].text, "1.5 us");
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

// A number that JSON may write and no double holds.
TEST_F(Files, WithNumbersBeyondAllAreRefusedByName) {
    for (const char* devices : {"1e999", "1e300"}) {
        const std::string text =
            std::string{R"({"schema": "rehearse.prediction/1", "points": [{"devices": )"} + devices + "}]}";
        EXPECT_NE(problem(write("beyond.json", text)), "") << devices;
    }
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

// Cut at any place, or with any byte changed: a message or what is there, and nothing else.
TEST_F(Files, ThatAreDamagedAnywhereGiveAMessage) {
    Timeline timeline{"t", false, 2, {}, {}, {}};
    timeline.events.push_back(
        {RankIndex{0}, Stream::compute, "a:forward", "a", "forward", 0, 0, Seconds{0}, Seconds{1e-3}, {}, {}, 3});
    timeline.events.push_back(
        {RankIndex{1}, Stream::communication, "b", "b", "allreduce", 0, 0, Seconds{0}, Seconds{1e-3}, Bytes{8}, {}, 3});
    timeline.links.push_back({"nic:up", "nic:up", 1, Bandwidth{1e9}, Bytes{8}, Bytes{8}});
    trace::write(timeline, (folder_ / "t.pftrace").string());
    trace::write(timeline, (folder_ / "t.json").string());
    const std::vector<std::pair<std::string, std::string>> whole{
        {"x.pftrace", read_file((folder_ / "t.pftrace").string())},
        {"x.json", read_file((folder_ / "t.json").string())},
        {"k.json", kineto},
        {"p.json",
         R"({"schema": "rehearse.prediction/1", "points": [{"devices": 6, "step_s": 0.1, "fits": true}], "memory": [{"class": "all", "kind": "weights", "bytes": 5}]})"},
        {"b.json",
         R"({"context": {"host_name": "h"}, "benchmarks": [{"name": "a", "real_time": 1, "time_unit": "us"}]})"}};
    std::size_t shown = 0, refused = 0;
    for (const auto& [name, content] : whole) {
        const auto look = [&](const std::string& damaged) {
            try {
                shown += load(write(name, damaged)).empty() ? 0 : 1;
            } catch (const InputError& error) {
                EXPECT_THAT(error.what(), HasSubstr(name));
                ++refused;
            }
        };
        for (std::size_t length = 0; length < content.size(); length += 1 + content.size() / 60)
            look(content.substr(0, length));
        for (std::size_t at = 0; at < content.size(); at += 1 + content.size() / 120) {
            std::string damaged = content;
            damaged[at] = static_cast<char>(damaged[at] ^ 0x15);
            look(damaged);
        }
    }
    EXPECT_GT(refused, 200U);
    EXPECT_GT(shown, 20U);
}

// 20 GB that take no room on the disk, of every kind that is read as a whole and of those that are not.
TEST_F(Files, ThatAreHugeAreRefusedBeforeTheMemoryIsFull) {
    const auto huge = [&](const char* name, const char* head) {
        const std::string path = write(name, head);
        std::error_code error;
        std::filesystem::resize_file(path, 20'000'000'000, error);
        if (error) return std::string{"skipped"};
        return problem(path);
    };
    const std::string first = huge("h.pftrace", "");
    if (first == "skipped") GTEST_SKIP() << "this disk has no sparse files of 20 GB";
    EXPECT_THAT(first, HasSubstr("h.pftrace"));
    EXPECT_THAT(huge("p.json", R"({"schema": "rehearse.prediction/1", "points": [)"), HasSubstr("too large"));
    EXPECT_THAT(huge("b.json", R"({"benchmarks": [)"), HasSubstr("too large"));
    EXPECT_THAT(huge("k.json", R"({"traceEvents": [)"), HasSubstr("k.json"));
    huge("m.toml", "[experiment]");
    EXPECT_THROW(experiment_in((folder_ / "m.toml").string(), {}), InputError);
}

TEST_F(Files, OfPredictionsKeepTheirFigures) {
    const auto documents =
        load(write("p.json", R"({"schema": "rehearse.prediction/1", "model": "m", "machine": "summit",
        "plan": "data", "precision": "mixed", "points": [
        {"devices": 12, "global_batch": 50, "step_s": 0.5, "step_low_s": 0.4, "step_high_s": 0.75, "samples_per_s": 100, "efficiency": 1, "fits": true},
        {"devices": 6, "global_batch": 25, "step_s": 0.25, "samples_per_s": 100, "efficiency": null, "fits": false}],
        "memory": [{"class": "all", "kind": "weights", "bytes": 8}]})"));
    const Prediction& prediction = *documents.at(0).prediction;
    ASSERT_EQ(prediction.points.size(), 2U);
    EXPECT_EQ(prediction.points[0].figures.devices, 6);  // in order
    EXPECT_EQ(prediction.points[1].band.high, Seconds{0.75});
    EXPECT_FALSE(prediction.points[0].memory.fits);
    EXPECT_EQ(prediction.memory[0].bytes, Bytes{8});
    // The band of the throughput is the other way round: 100 * 0.5 / 0.75.
    const picture::Chart chart =
        scaling_chart({curve_of(named(documents).at(0))}, picture::ScalingMetric::throughput, "");
    ASSERT_EQ(chart.series[0].low.size(), 1U) << "a point that does not fit is in a series of its own";
    EXPECT_NEAR(chart.series[0].low[0], 100 * 0.5 / 0.75, 1e-9);
    EXPECT_NEAR(chart.series[0].high[0], 100 * 0.5 / 0.4, 1e-9);
}

// 1 MB in 1 ms is 1 GB/s; of an all-reduce of four ranks each link carries 2 * 3/4 of it (nccl-tests).
TEST(ACollective, IsKnownByItsName) {
    const auto ring = collective_of({"allreduce:n4:1000000B:f32/comm/ring/real_time", 1e-3, 0, 0, 0, ""});
    ASSERT_TRUE(ring);
    EXPECT_EQ(ring->kind, "allreduce");
    EXPECT_EQ(ring->ranks, 4);
    EXPECT_EQ(ring->algorithm, "ring");
    EXPECT_DOUBLE_EQ(ring->bus_bytes_per_s, 1.5e9);
    const auto gather = collective_of({"allgather:n2:1000000B:f16/mpi/default/real_time", 1e-3, 0, 0, 0, ""});
    ASSERT_TRUE(gather);
    EXPECT_EQ(gather->algorithm, "MPI");
    EXPECT_DOUBLE_EQ(gather->bus_bytes_per_s, 0.5e9);
    EXPECT_FALSE(collective_of({"conv2d:n32c64h56w56k64r3s3:pad1:stride1:f32:forward/onednn", 1e-3, 1e9, 0, 0, ""}));
    EXPECT_FALSE(collective_of({"allreduce:n4:1000000B:f32/comm/ring", 0, 0, 0, 0, "refused"}));
    EXPECT_THROW(collectives_picture({"host", "", {}, {{"a", 1, 0, 0, 0, ""}}}, {600, 400}, picture::Theme::light),
                 InputError);
}

TEST(Residuals, AreOfTheFastestImplementation) {
    const Machine machine = models::load_machine("summit");
    const std::string problem = "conv2d:n32c64h56w56k64r3s3:pad1:stride1:f32:forward";
    const double priced = price(parse_problem(problem), class_of(machine, 0)).time.value;
    const Benchmarks benchmarks{"host",
                                "",
                                {},
                                {{problem + "/slow/real_time", 8 * priced, 1e9, 1e9, 0, ""},
                                 {problem + "/fast/real_time", 2 * priced, 1e9, 1e9, 0, ""},
                                 {"nonsense/fast", 1, 1e9, 1e9, 0, ""}}};
    const auto residuals = residuals_of(benchmarks, machine);
    ASSERT_EQ(residuals.size(), 2U);
    EXPECT_EQ(residuals[0].implementation, "fast");
    EXPECT_DOUBLE_EQ(residuals[0].price_s / residuals[0].measured_s - 1, -0.5);
    EXPECT_EQ(residuals[1].price_s, 0);
    EXPECT_THAT(residuals[1].source, HasSubstr("nonsense"));
    const auto picture = residuals_picture(residuals, "summit", {600, 400}, picture::Theme::light);
    EXPECT_TRUE(std::ranges::any_of(picture.marks, [&](const auto& m) { return m.title.starts_with(problem); }));
}

TEST_F(Files, OfOursKeepTheirTimelineAndLanes) {
    Timeline timeline{"t", true, 2, {}, {}};
    for (const std::int64_t rank : {0, 1}) {
        timeline.events.push_back(
            {RankIndex{rank}, Stream::compute, "a:forward", "a", "forward", 0, 0, Seconds{0}, Seconds{1e-3}, {}, {}});
        timeline.events.push_back({RankIndex{rank},
                                   Stream::send_gradients,
                                   "b:send",
                                   "b",
                                   "send",
                                   0,
                                   0,
                                   Seconds{1e-3},
                                   Seconds{2e-3},
                                   {},
                                   {}});
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

TEST_F(Files, OfExperimentsAreReadBack) {
    const Experiment asked{"vgg16", "summit", "pipe=2:microbatches=4,data", "fp32", "adam", "12,24", 8};
    Experiment other;
    other.batch = 99;
    EXPECT_EQ(experiment_in(write("e.toml", to_toml(asked)), other), asked);
    // What a file does not say is as `rehearse predict` has it; a machine beside it is found.
    write("m.toml", models::to_toml(models::load_machine("summit")));
    const Experiment part =
        experiment_in(write("part.toml", "[experiment]\nmachine = 'm.toml'\nplan = 'data=6'"), asked);
    EXPECT_EQ(part.machine, (folder_ / "m.toml").string());
    EXPECT_EQ(part.plan, "data=6");
    EXPECT_EQ(part, (Experiment{"resnet50", part.machine, "data=6", "fp32", "sgd", "1", 32}));
    EXPECT_EQ(experiment_in((folder_ / "m.toml").string(), asked).machine, (folder_ / "m.toml").string());
    const auto why = [&](const char* text) {
        try {
            experiment_in(write("bad.toml", text), asked);
        } catch (const InputError& error) {
            return std::string{error.what()};
        }
        return std::string{};
    };
    EXPECT_THAT(why("[experiment]\nplant = 'data'"), HasSubstr("plant"));
    EXPECT_THAT(why("[experiment]\nbatch = 'many'"), HasSubstr("bad.toml:2"));
    EXPECT_THAT(why("name = 'no machine'"), HasSubstr("bad.toml"));
    EXPECT_THAT(why("= ="), HasSubstr("not TOML"));
    EXPECT_THAT(why(""), HasSubstr("bad.toml"));
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

TEST(AnExample, CanBeRun) {
    for (const Example& example : examples()) EXPECT_EQ(check(example.experiment).problem, "") << example.name;
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

}  // namespace
}  // namespace rehearse::gui
