// SPDX-License-Identifier: Apache-2.0
// bench stream and bench peak: the roofs of this host by themselves.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cli/bench.hpp"
#include "cli/command.hpp"
#include "cli/json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "match/pattern.hpp"

namespace rehearse::cli {

namespace {

void refuse_problems(const BenchOptions& options) {
    if (options.arguments.empty() && options.suite.empty()) return;
    throw InputError(fmt::format("bench {}: takes no problems and no --suite", options.kind));
}

std::vector<int> threads_of(const BenchOptions& options) {
    if (!options.threads.empty()) return options.threads;
    const int all = static_cast<int>(std::thread::hardware_concurrency());
    return all > 1 ? std::vector<int>{1, all} : std::vector<int>{1};
}

Report new_report(const BenchOptions& options, const std::vector<int>& threads) {
    return {document("bench-" + options.kind, {{"threads", threads}, {"rounds", options.rounds}}), {}, ""};
}

// One line a working set and number of threads, the kernels side by side.
Json side_by_side(const std::vector<bench::StreamSample>& samples) {
    Json rows = Json::array();
    for (const bench::StreamSample& sample : samples) {
        const bool fresh = rows.empty() || rows.back()["working_set_bytes"] != sample.working_set.value ||
                           rows.back()["threads"] != sample.threads;
        if (fresh) {
            rows.push_back({{"level", sample.level},
                            {"threads", sample.threads},
                            {"working_set_bytes", sample.working_set.value},
                            {"spread", 0.0}});
        }
        rows.back()[std::string{to_string(sample.kernel)}] = to_string(sample.rate);
        rows.back()["spread"] = std::max(rows.back()["spread"].get<double>(), sample.spread);
    }
    return rows;
}

}  // namespace

int bench_stream(const BenchOptions& options) {
    refuse_problems(options);
    bench::StreamOptions measuring;
    measuring.rounds = {options.rounds, options.budget};
    measuring.threads = threads_of(options);
    measuring.every_size = options.sweep || !options.plot.empty();
    if (!options.filter.empty()) {
        const match::Pattern pattern{options.filter, "--filter"};
        measuring.wanted = [pattern](const std::string& level) { return pattern.is_in(level); };
    }
    const bench::Streams streams = bench::measure_streams(measuring);
    Report report = new_report(options, measuring.threads);
    report.document["rows"] = Json::array();
    for (const bench::StreamSample& sample : streams.samples) {
        report.document["rows"].push_back({{"kernel", to_string(sample.kernel)},
                                           {"level", sample.level},
                                           {"threads", sample.threads},
                                           {"working_set_bytes", sample.working_set.value},
                                           {"bytes_per_s", sample.rate.value},
                                           {"error", sample.spread},
                                           {"checked", true}});
    }
    if (options.common.format == Format::table) {
        report.document["sizes"] = side_by_side(streams.samples);
        report.tables = {{"sizes",
                          "",
                          {{"level", "level"},
                           {"threads", "threads", Show::count},
                           {"working_set_bytes", "three arrays", Show::bytes},
                           {"copy", "copy"},
                           {"scale", "scale"},
                           {"add", "add"},
                           {"triad", "triad"},
                           {"spread", "spread", Show::percent}}}};
        report.footer = fmt::format(
            "f64, bytes as STREAM counts them (McCalpin 1995): without the read that a store may cause.\n"
            "best of {} rounds; spread: between the rounds, of the worst kernel; every result was checked",
            options.rounds);
    } else {
        report.tables = {{"rows", "", {}}};
    }
    if (!options.out.empty()) replace_file(options.out, streams.json);
    draw_streams(options, streams.samples);
    print(report, options.common);
    return good;
}

int bench_peak(const BenchOptions& options) {
    refuse_problems(options);
    if (!options.out.empty()) throw InputError("--out: not of bench peak; --format json gives its rows");
    const std::vector<int> threads = threads_of(options);
    Report report = new_report(options, threads);
    report.document["rows"] = Json::array();
    for (const int count : threads) {
        const Seconds budget = options.budget / static_cast<double>(threads.size());
        for (const bench::Peak& peak : bench::measure_peaks(count, {options.rounds, budget})) {
            Json row{{"type", peak.type}, {"threads", peak.threads}};
            if (peak.absent.empty()) {
                row.update({{"instruction", peak.how}, {"flops_per_s", peak.rate.value}, {"error", peak.spread}});
            } else {
                row["absent"] = peak.absent;
            }
            report.document["rows"].push_back(row);
        }
    }
    report.tables = {{"rows",
                      "",
                      {{"type", "type"},
                       {"threads", "threads", Show::count},
                       {"flops_per_s", "peak", Show::flop_rate},
                       {"error", "spread", Show::percent},
                       {"instruction", "instruction"},
                       {"absent", "why there is none"}}}};
    report.footer = fmt::format(
        "multiply-adds in registers, 2 operations each; best of {} rounds; spread: between the rounds", options.rounds);
    print(report, options.common);
    return good;
}

}  // namespace rehearse::cli
