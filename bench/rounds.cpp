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
        std::erase_if(named, [](const Run& run) { return run.error_occurred; });  // left out, as the work should end
        for (Run& run : named) {
            require(!run.error_occurred, "a benchmark does not report errors by itself");
            // The name is the case's own, without what Google Benchmark appends about iterations and clocks.
            run.run_name.iterations.clear();
            run.run_name.time_type.clear();
            run.repetition_index = round;
            run.repetitions = rounds;
        }
        if (keep_json) json_.ReportRuns(named);
    }
    std::string json() {
        json_.Finalize();
        return text_.str();
    }

    int round = 0, rounds = 1;
    bool keep_json = false;

private:
    std::ostringstream text_, ignored_;
    benchmark::JSONReporter json_;
};

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Round time_case(benchmark::State& state, const Case& which, const Team& team) {
    std::vector<double> seconds;
    seconds.reserve(static_cast<std::size_t>(state.max_iterations));
    which.set_up();
    team.barrier();
    const auto begin = Clock::now();
    for ([[maybe_unused]] auto _ : state) {
        which.before();
        const auto start = Clock::now();
        which.run();
        benchmark::ClobberMemory();
        seconds.push_back(since(start));
        state.SetIterationTime(seconds.back());
    }
    const double whole = since(begin) / static_cast<double>(seconds.size());
    const double median = calibrate::median(std::move(seconds));
    // Rates of the median, as our tables have them; Google Benchmark's own real_time is the mean.
    state.counters["flop/s"] = which.flops.value / median;
    state.counters["B/s"] = which.bytes.value / median;
    state.counters["median_s"] = median;
    return {median, whole};
}

// Every case once, each as many times as `iterations` says. Ranks that time together all go on to the end of a round;
// one alone ends where it is told to, and gives the rounds of the cases before that.
std::vector<Round> run_once(Recorder& recorder, const std::vector<Case>& cases,
                            const std::vector<std::int64_t>& iterations, const Team& team,
                            const std::function<bool(std::size_t)>& goes_on_after = {}) {
    std::vector<Round> results(cases.size());
    std::size_t timed = 0;
    bool ended = false;
    benchmark::ClearRegisteredBenchmarks();
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const auto run = [&, i](benchmark::State& state) {
            if (ended) return state.SkipWithError("ended");
            results[i] = time_case(state, cases[i], team);
            ++timed;
            const bool ends = goes_on_after && !goes_on_after(i);
            ended = ends && team.ranks == 1;
        };
        benchmark::RegisterBenchmark(cases[i].name.c_str(), run)->Iterations(iterations[i])->UseManualTime();
    }
    benchmark::RunSpecifiedBenchmarks(&recorder, ".");
    benchmark::ClearRegisteredBenchmarks();
    require(timed == cases.size() || ended, "Google Benchmark runs every case once");
    results.resize(timed);
    for (Round& round : results) round = {team.mean(round.median), team.mean(round.whole)};
    return results;
}

// The same on all ranks, because `whole` is. A median of a hundred runs is good enough, and leaves time to others.
std::vector<std::int64_t> iterations_within(double seconds, const std::vector<Round>& pilot) {
    std::vector<std::int64_t> iterations;
    for (const Round& round : pilot) {
        iterations.push_back(static_cast<std::int64_t>(std::clamp(seconds / round.whole, 2.0, 100.0)));
    }
    return iterations;
}

}  // namespace

std::vector<Round> time_round(const std::vector<Case>& cases, const std::vector<std::int64_t>& iterations,
                              const Team& team) {
    Recorder recorder;
    return run_once(recorder, cases, iterations, team);
}

Times time(const std::vector<Case>& cases, const Rounds& rounds, const Team& team) {
    require(!cases.empty() && rounds.count > 0, "there is something to time");
    Recorder recorder;
    const std::int64_t size = std::ssize(cases), all = size * (rounds.count + 1);
    const auto in_round = [&](std::int64_t number) {
        return [&, number](std::size_t i) {
            return goes_on(rounds.progress, number * size + static_cast<std::int64_t>(i) + 1, all);
        };
    };
    const auto ends_after = [&](std::int64_t number) {  // on all ranks, when on one
        return team.mean(goes_on(rounds.progress, (number + 1) * size, all) ? 0 : 1) > 0;
    };
    // The first run of a kernel may be slow, the second tells how long it takes.
    Times times{std::vector<std::vector<double>>(cases.size()), {}};
    const std::vector<Round> pilot =
        run_once(recorder, cases, std::vector<std::int64_t>(cases.size(), 2), team, in_round(0));
    if (ends_after(0)) return times;
    const double share = rounds.budget.value / static_cast<double>(rounds.count) / static_cast<double>(cases.size());
    std::vector<std::int64_t> iterations = iterations_within(share, pilot);
    if (rounds.iterations > 0) std::ranges::fill(iterations, rounds.iterations);
    recorder.keep_json = true;
    recorder.rounds = rounds.count;
    for (recorder.round = 0; recorder.round < rounds.count; ++recorder.round) {
        const std::vector<Round> results = run_once(recorder, cases, iterations, team, in_round(recorder.round + 1));
        for (std::size_t i = 0; i < results.size(); ++i) times.seconds[i].push_back(results[i].median);
        if (ends_after(recorder.round + 1)) break;
    }
    times.json = recorder.json();
    return times;
}

}  // namespace rehearse::bench
