// SPDX-License-Identifier: Apache-2.0
#include "bench/rounds.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <sstream>

#include "calibrate/fit.hpp"
#include "core/error.hpp"

namespace rehearse::bench {

namespace {

// Collects the time of each run, and the JSON of all rounds in one document.
class Recorder : public benchmark::BenchmarkReporter {
public:
    Recorder() {
        json_.SetOutputStream(&text_);
        json_.SetErrorStream(&text_);
        SetOutputStream(&ignored_);
        SetErrorStream(&ignored_);
    }
    bool ReportContext(const Context& context) override {
        if (text_.str().empty()) json_.ReportContext(context);
        return true;
    }
    void ReportRuns(const std::vector<Run>& runs) override {
        std::vector<Run> named = runs;
        for (Run& run : named) {
            require(!run.error_occurred, "a benchmark does not report errors by itself");
            // The name is the case's own, without what Google Benchmark appends about iterations and clocks.
            run.run_name.iterations.clear();
            run.run_name.time_type.clear();
            run.repetition_index = round;
            run.repetitions = rounds;
            seconds.push_back(run.counters.at("median_s"));
        }
        if (keep_json) json_.ReportRuns(named);
    }
    std::string json() {
        json_.Finalize();
        return text_.str();
    }

    std::vector<double> seconds;  // medians, in the order in which they were timed
    int round = 0, rounds = 1;
    bool keep_json = false;

private:
    std::ostringstream text_, ignored_;
    benchmark::JSONReporter json_;
};

void time_case(benchmark::State& state, const Case& which, const Team& team) {
    using Clock = std::chrono::steady_clock;
    std::vector<double> seconds;
    seconds.reserve(static_cast<std::size_t>(state.max_iterations));
    which.set_up();
    team.barrier();
    for ([[maybe_unused]] auto _ : state) {
        which.before();
        const auto start = Clock::now();
        which.run();
        benchmark::ClobberMemory();
        seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
        state.SetIterationTime(seconds.back());
    }
    using benchmark::Counter;
    state.counters["flop/s"] = Counter(which.flops.value, Counter::kIsIterationInvariantRate);
    state.counters["median_s"] = calibrate::median(std::move(seconds));
    state.counters["B/s"] = Counter(which.bytes.value, Counter::kIsIterationInvariantRate);
}

void add_cases(const std::vector<Case>& cases, const std::vector<std::int64_t>& iterations, const Team& team) {
    benchmark::ClearRegisteredBenchmarks();
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const auto timed = [&which = cases[i], &team](benchmark::State& state) { time_case(state, which, team); };
        benchmark::RegisterBenchmark(cases[i].name.c_str(), timed)->Iterations(iterations[i])->UseManualTime();
    }
}

std::vector<double> run_once(Recorder& recorder, std::size_t cases, const Team& team) {
    recorder.seconds.clear();
    benchmark::RunSpecifiedBenchmarks(&recorder, ".");
    require(recorder.seconds.size() == cases, "Google Benchmark ran every case once");
    for (double& value : recorder.seconds) value = team.mean(value);
    return recorder.seconds;
}

}  // namespace

Times time(const std::vector<Case>& cases, const Rounds& rounds, const Team& team) {
    require(!cases.empty() && rounds.count > 0, "there is something to time");
    Recorder recorder;
    constexpr std::int64_t pilot = 2;  // the first run of a kernel may be slow
    std::vector<std::int64_t> iterations(cases.size(), pilot);
    add_cases(cases, iterations, team);
    const std::vector<double> first = run_once(recorder, cases.size(), team);

    const double share = rounds.budget.value / static_cast<double>(rounds.count) / static_cast<double>(cases.size());
    for (std::size_t i = 0; i < cases.size(); ++i) {
        iterations[i] = static_cast<std::int64_t>(std::clamp(share / first[i], 2.0, 1e5));
    }
    add_cases(cases, iterations, team);
    recorder.keep_json = true;
    recorder.rounds = rounds.count;
    Times times{std::vector<std::vector<double>>(cases.size()), {}};
    for (recorder.round = 0; recorder.round < rounds.count; ++recorder.round) {
        const std::vector<double> seconds = run_once(recorder, cases.size(), team);
        for (std::size_t i = 0; i < cases.size(); ++i) times.seconds[i].push_back(seconds[i]);
    }
    benchmark::ClearRegisteredBenchmarks();
    times.json = recorder.json();
    return times;
}

}  // namespace rehearse::bench
