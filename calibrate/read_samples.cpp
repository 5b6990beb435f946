// SPDX-License-Identifier: Apache-2.0
#include "calibrate/read_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "calibrate/collective_lines.hpp"
#include "calibrate/fit.hpp"
#include "calibrate/read_collectives.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::calibrate {

namespace {

using Json = nlohmann::json;

// "p2p:n2:1024B:f32/comm/direct": bytes of the message.
std::optional<double> message_size(std::string_view name) {
    if (!name.starts_with("p2p:n")) return std::nullopt;
    const std::vector<std::string_view> parts = split(name, ':');
    if (parts.size() < 4 || !parts[2].ends_with('B')) return std::nullopt;
    return parse_number(parts[2].substr(0, parts[2].size() - 1), name);
}

double seconds_of(const Json& row, const std::string& origin) {
    if (row.contains("median_s")) return row["median_s"].get<double>();
    static const std::map<std::string, double> units{{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
    const auto unit = units.find(row.value("time_unit", "ns"));
    if (unit == units.end() || !row.contains("real_time"))
        throw InputError(
            fmt::format("{}: benchmark '{}' has no real_time in ns, us, ms or s", origin, row.value("name", "")));
    return row["real_time"].get<double>() * unit->second;
}

void add_problem(FileSamples& samples, const std::string& name, const std::vector<double>& seconds) {
    const std::vector<std::string_view> parts = split(name, '/');
    Sample sample;
    try {
        sample.problem = parse_problem(parts.front());
    } catch (const InputError& error) {
        samples.skipped.push_back(fmt::format("{}: {}", name, error.what()));
        return;
    }
    sample.backend = parts.size() > 1 ? std::string{parts[1]} : "unnamed";
    sample.algorithm = parts.size() > 2 ? std::string{parts[2]} : "";
    const double middle = median(seconds);
    sample.median = Seconds{middle};
    sample.error = robust_deviation(seconds) / middle;
    sample.count = static_cast<std::int64_t>(seconds.size());
    samples.compute.push_back(sample);
}

// Of one problem by several backends the fastest is what a run would take.
void keep_fastest(std::vector<Sample>& samples) {
    std::map<std::string, Sample> best;
    for (Sample& sample : samples) {
        const auto [entry, fresh] = best.try_emplace(to_string(sample.problem), sample);
        if (!fresh && sample.median < entry->second.median) entry->second = sample;
    }
    samples.clear();
    for (auto& [name, sample] : best) samples.push_back(std::move(sample));
}

bool is_aggregate(const Json& row) { return row.value("run_type", "iteration") == "aggregate"; }

// Why a benchmark has no time; "" where it has one.
std::string_view not_timed(const Json& row) {
    if (row.value("error_occurred", false)) return "it ended with an error";
    if (row.value("skipped", false)) return "it was skipped";  // SkipWithMessage, since version 1.8
    return "";
}

FileSamples read_json(std::string_view text, const std::string& origin) {
    const Json document = Json::parse(text, nullptr, false);
    if (!document.is_object() || !document.contains("benchmarks"))
        throw InputError(fmt::format(
            "{}: JSON without \"benchmarks\": give what Google Benchmark or rehearse bench --out wrote", origin));
    FileSamples samples;
    const Json context = document.value("context", Json::object());
    if (const std::string layout = context.value("layout", "nchw"); layout != "nchw") {
        throw InputError(fmt::format("{}: samples of tensors in {}, in which no network is run: leave out --layout",
                                     origin, layout));
    }
    samples.where = fmt::format("{}, {}", context.value("host_name", origin), context.value("date", "").substr(0, 10));
    std::map<std::string, std::vector<double>> by_name;
    // --benchmark_report_aggregates_only leaves nothing but these: of the medians, each is a sample.
    const bool aggregates = std::ranges::all_of(document["benchmarks"], is_aggregate);
    for (const Json& row : document["benchmarks"]) {
        if (const std::string_view why = not_timed(row); !why.empty()) {
            samples.skipped.push_back(fmt::format("{}: {}", row.value("name", ""), why));
            continue;
        }
        if (is_aggregate(row) && !(aggregates && row.value("aggregate_name", "") == "median")) continue;
        const std::string name = row.value(aggregates ? "run_name" : "name", "");
        const double seconds = seconds_of(row, origin);
        if (!(seconds > 0)) throw InputError(fmt::format("{}: benchmark '{}' took {} s", origin, name, seconds));
        if (const auto bytes = message_size(name)) {
            if (name.find("/mpi/") == std::string::npos) add_message(samples, Bytes{*bytes}, Seconds{seconds});
        } else {
            by_name[name].push_back(seconds);
        }
    }
    for (const auto& [name, seconds] : by_name) add_problem(samples, name, seconds);
    keep_fastest(samples.compute);
    return samples;
}

}  // namespace

FileSamples read_samples(std::string_view text, const std::string& origin, std::int64_t ranks) {
    FileSamples samples;
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && text[first] == '{') {
        try {
            samples = is_inspector(text) ? read_inspector(text, origin) : read_json(text, origin);
        } catch (const Json::exception& error) {  // a text where a number belongs
            throw InputError(fmt::format("{}: {}", origin, error.what()));
        }
    } else if (text.find("OSU ") != std::string_view::npos) {
        samples = read_osu(text, origin, ranks);
    } else if (text.find("busbw") != std::string_view::npos) {
        samples = read_nccl(text, origin, ranks);
    } else {
        throw InputError(fmt::format(
            "{}:1: neither JSON of Google Benchmark or NCCL Inspector, nor the text of nccl-tests or of the OSU "
            "micro-benchmarks",
            origin));
    }
    if (samples.where.empty()) samples.where = origin;
    if (!samples.compute.empty() || !samples.messages.empty()) return samples;
    throw InputError(
        fmt::format("{}: it holds no problem and no message{}", origin,
                    samples.skipped.empty() ? "" : "; the first line or benchmark: " + samples.skipped.front()));
}

}  // namespace rehearse::calibrate
