// SPDX-License-Identifier: Apache-2.0
// What predictions under noise, traces of begins and ends, files in gzip and benchmarks are shown as.
#include <fmt/format.h>

#include <map>

#include "gui/pages.hpp"
#include "tests/gui/files_fixture.hpp"

namespace rehearse::gui {
namespace {

using testing::HasSubstr;

// A step of 0.5 s takes 0.625 s under noise: throughput, curve and the cards of the window are of that, as the training
// is, and the step without it is called so.
TEST_F(Files, OfNoisyPredictionsShowTheNoise) {
    const auto documents =
        load(write("p.json", R"({"schema": "rehearse.prediction/1", "model": "m", "machine": "summit",
        "plan": "data", "precision": "mixed", "points": [
        {"devices": 12, "global_batch": 50, "step_s": 0.5, "step_low_s": 0.4, "step_high_s": 0.8, "samples_per_s": 100,
         "noise": 0.1, "noise_samples": 50, "noisy_step_s": 0.625, "noisy_p05_s": 0.5, "noisy_p95_s": 0.75,
         "noisy_samples_per_s": 80, "speedup": 1, "efficiency": 1, "fits": true}]})"));
    const picture::ScalingCurve curve = curve_of(named(documents).at(0));
    EXPECT_THAT(curve.name, HasSubstr("noise 0.1"));
    EXPECT_EQ(curve.points.at(0).samples_per_s, 80);
    EXPECT_EQ(curve.points[0].step_s, 0.625);
    EXPECT_DOUBLE_EQ(curve.points[0].high_s, 1);
    EXPECT_TRUE(curve.points[0].baseline);
    std::string said;
    for (const picture::Mark& mark :
         overview_picture(*documents[0].prediction, 0, {1000, 800}, picture::Theme::light).marks)
        if (const auto* text = std::get_if<picture::Text>(&mark.shape)) said += text->text + "\n";
    EXPECT_THAT(said, testing::AllOf(HasSubstr("Step time without noise"), HasSubstr("Noisy step"), HasSubstr("625 ms"),
                                     HasSubstr("80 samples/s"), HasSubstr("global batch 50, with the noise")));
}

TEST_F(Files, OfPredictionsOfOneNameAreToldApart) {
    const auto file = [&](const char* name, const char* configuration) {
        return load(write(name, fmt::format(R"({{"schema": "rehearse.prediction/1", "model": "m", "machine": "s",
            "plan": "data", "precision": "fp32", "configuration": {}, "points": [{{"devices": 1}}]}})",
                                            configuration)))
            .at(0);
    };
    const auto names = [](const std::vector<Document>& documents) {
        std::vector<std::string> all;
        for (const NamedPrediction& each : named(documents)) all.push_back(each.name);
        return all;
    };
    const Document a = file("a.json", R"({"batch": 32, "optimizer": "sgd"})");
    const Document b = file("b.json", R"({"batch": 64, "optimizer": "sgd"})");
    const Document c = file("c.json", R"({"batch": 64, "optimizer": "sgd"})");
    EXPECT_THAT(names({a}), testing::ElementsAre("m on s, data, fp32"));
    EXPECT_THAT(names({a, b, c}),
                testing::ElementsAre("m on s, data, fp32, batch 32", "m on s, data, fp32, batch 64, b.json",
                                     "m on s, data, fp32, batch 64, c.json"));
}

// Begins and ends in any order of the file; what cannot be shown is counted.
TEST_F(Files, OfBeginsAndEndsArePairedInTheOrderOfTime) {
    const auto durations = [&](const char* events) {
        std::map<std::string, std::int64_t> found;
        const auto documents = load(write("be.json", events));
        for (const picture::Lane& lane : documents.at(0).lanes->lanes)
            for (std::size_t i = 0; i < lane.size(); ++i)
                found[documents[0].lanes->whats[lane.what(i)].step] = lane.end(i) - lane.start(i);
        return std::pair{found, documents[0].warning};
    };
    using Durations = std::map<std::string, std::int64_t>;
    EXPECT_EQ(durations(R"([{"ph":"B","name":"a","pid":1,"tid":1,"ts":0},{"ph":"B","name":"b","pid":1,"tid":1,"ts":100},
        {"ph":"E","pid":1,"tid":1,"ts":50},{"ph":"E","pid":1,"tid":1,"ts":150}])"),
              (std::pair{Durations{{"a", 50'000}, {"b", 50'000}}, std::string{}}));
    EXPECT_EQ(durations(R"([{"ph":"E","pid":1,"tid":1,"ts":60},{"ph":"B","name":"a","pid":1,"tid":1,"ts":10}])").first,
              (Durations{{"a", 50'000}}));
    const auto [shown, warning] = durations(R"([{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1},
        {"ph":"X","name":"b","pid":1,"tid":1,"ts":0,"dur":-1},{"ph":"X","name":"c","pid":1,"tid":1,"ts":"300","dur":1},
        {"ph":"B","name":"d","pid":1,"tid":1,"ts":5},{"ph":"E","pid":1,"tid":2,"ts":5}])");
    EXPECT_EQ(shown, (Durations{{"a", 1'000}}));
    EXPECT_THAT(warning,
                HasSubstr("be.json: 4 events are left out: 2 without a time that is a number, or with a negative "
                          "duration, 1 that begin and do not end, 1 that end and do not begin"));
}

TEST_F(Files, InGzipAreReadAsTheirText) {
    const auto pack = [&](const char* name, const char* text) {
        const std::string path = write(name, text);
        EXPECT_EQ(std::system(fmt::format("gzip -f {}", path).c_str()), 0);
        return path + ".gz";
    };
    EXPECT_EQ(load(pack("k.json", kineto)).at(0).lanes->size(), 5U);
    EXPECT_NE(
        load(pack("p.json", R"({"schema": "rehearse.prediction/1", "points": [{"devices": 6}]})")).at(0).prediction,
        nullptr);
}

// What `rehearse bench --out` writes: the mean of a round is 9 us because of one disturbance, its median 1 us; of two
// rounds of 1 and 3 us the median is 2 us, in which 4000 operations are 2 GFLOP/s.
TEST_F(Files, OfRehearseBenchAreMediansAsItsTableHasThem) {
    const auto documents = load(write("b.json", R"({"context": {"host_name": "h"}, "benchmarks": [
        {"name": "a/cpu", "run_type": "iteration", "real_time": 9, "time_unit": "us", "median_s": 1e-6, "flop/s": 4e9},
        {"name": "a/cpu", "run_type": "iteration", "real_time": 9, "time_unit": "us", "median_s": 3e-6,
         "flop/s": 1333333333.3333333}]})"));
    const Benchmarks& benchmarks = *documents.at(0).benchmarks;
    ASSERT_EQ(benchmarks.rows.size(), 1U);
    EXPECT_TRUE(benchmarks.are_medians);
    EXPECT_DOUBLE_EQ(benchmarks.rows[0].seconds, 2e-6);
    EXPECT_NEAR(benchmarks.rows[0].flops_per_s, 2e9, 1);
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

// Of three repetitions one failed and took no time; of the next benchmark the file has a median of its own; the third
// failed altogether.
TEST_F(Files, OfGoogleBenchmarkTakeTheMedianOfRepetitionsThatSucceeded) {
    const auto documents = load(write("b.json", R"({"benchmarks": [
        {"name": "a", "run_name": "a", "run_type": "iteration", "real_time": 100, "time_unit": "us"},
        {"name": "a", "run_name": "a", "run_type": "iteration", "real_time": 0, "time_unit": "us",
         "error_occurred": true, "error_message": "bad"},
        {"name": "b", "run_name": "b", "run_type": "iteration", "real_time": 10, "time_unit": "us"},
        {"name": "b_median", "run_name": "b", "run_type": "aggregate", "aggregate_name": "median", "real_time": 20,
         "time_unit": "us"},
        {"name": "c", "run_type": "iteration", "real_time": 0, "error_occurred": true, "error_message": "worse"}]})"));
    const Benchmarks& benchmarks = *documents.at(0).benchmarks;
    ASSERT_EQ(benchmarks.rows.size(), 3U);
    EXPECT_DOUBLE_EQ(benchmarks.rows[0].seconds, 100e-6);
    EXPECT_EQ(benchmarks.rows[0].error, "");
    EXPECT_EQ(benchmarks.rows[1].name, "b");
    EXPECT_DOUBLE_EQ(benchmarks.rows[1].seconds, 20e-6);
    EXPECT_EQ(benchmarks.rows[2].error, "worse");
    EXPECT_TRUE(benchmarks.are_medians);
    EXPECT_THAT(documents[0].warning, HasSubstr("1 of 2 repetitions of a failed and are left out: bad"));
}

}  // namespace
}  // namespace rehearse::gui
