// SPDX-License-Identifier: Apache-2.0
#include "calibrate/read_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "calibrate/collective_lines.hpp"
#include "calibrate/collective_times.hpp"
#include "calibrate/merged_samples.hpp"
#include "calibrate/read_collectives.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::calibrate {

namespace {

using Json = nlohmann::json;

// What `rehearse bench` names after the ranks, the bytes and who sent them: "p2p:n2:1024B:f32/comm/direct".
struct Traffic {
    std::string_view kind;  // as CollectiveRow has it
    std::int64_t ranks = 0;
    Bytes bytes;
    std::string_view sender;
};

std::optional<Traffic> traffic_of(std::string_view name) {
    static const std::map<std::string_view, std::string_view> kinds{
        {"p2p", message_kind},       {"allreduce", "all_reduce"}, {"reducescatter", "reduce_scatter"},
        {"allgather", "all_gather"}, {"broadcast", "broadcast"},  {"alltoall", "all_to_all"}};
    const std::string_view head = name.substr(0, name.find('/'));
    const std::vector<std::string_view> parts = split(head, ':');
    const auto kind = kinds.find(parts.front());
    if (kind == kinds.end() || parts.size() < 4 || !parts[1].starts_with('n') || !parts[2].ends_with('B'))
        return std::nullopt;
    return Traffic{kind->second, parse_int(parts[1].substr(1), name),
                   Bytes{parse_number(parts[2].substr(0, parts[2].size() - 1), name)},
                   name.substr(std::min(head.size() + 1, name.size()))};
}

// Whether a machine's messages are such: between ranks of ours, in a ring where there are several rounds.
bool is_of_messages(const Traffic& traffic) {
    return traffic.sender == (traffic.kind == message_kind ? "comm/direct" : "comm/ring");
}

void add_traffic(FileSamples& samples, const Traffic& traffic, const std::string& name,
                 const std::vector<Seconds>& times) {
    const bool message = traffic.kind == message_kind;
    if (!is_of_messages(traffic)) {
        samples.skipped.push_back(
            fmt::format("{}: messages are fitted to what comm/{} takes", name, message ? "direct" : "ring"));
        return;
    }
    for (const Seconds time : times) {
        if (message) add_message(samples, traffic.bytes, time);
        if (!message) add_collective(samples, {std::string{traffic.kind}, traffic.ranks, traffic.bytes, time}, name);
    }
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

// By its name, where a file does not say whether a run takes it: these it takes only where it is asked for them, or
// where they were tuned.
bool is_asked_for(std::string_view algorithm) {
    constexpr std::array begins{"fp8", "winograd", "fft"};
    constexpr std::array ends{"-f16", "-chunked"};
    return algorithm.find("tf32") != std::string_view::npos ||
           std::ranges::any_of(begins, [&](std::string_view word) { return algorithm.starts_with(word); }) ||
           std::ranges::any_of(ends, [&](std::string_view word) { return algorithm.ends_with(word); });
}

void add_problem(FileSamples& samples, const Json& row, const std::string& name, std::vector<Seconds> times) {
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
    if (!row.value("taken", !is_asked_for(sample.algorithm))) {
        samples.skipped.push_back(fmt::format("{}: a run takes it only where it is asked for by name", name));
        return;
    }
    sample.times = std::move(times);
    sample.where = samples.where;
    samples.compute.push_back(std::move(sample));
}

bool is_aggregate(const Json& row) { return row.value("run_type", "iteration") == "aggregate"; }

// Why a benchmark has no time; "" where it has one.
std::string_view not_timed(const Json& row) {
    if (row.value("error_occurred", false)) return "it ended with an error";
    if (row.value("skipped", false)) return "it was skipped";  // SkipWithMessage, since version 1.8
    return "";
}

/// Of one name: what a row says beside its time, and all times.
struct Rows {
    Json row;
    std::vector<Seconds> times;
};

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
    std::map<std::string, Rows> by_name;
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
        Rows& rows = by_name[name];
        rows.row = row;
        rows.times.push_back(Seconds{seconds});
    }
    for (auto& [name, rows] : by_name) {
        if (const auto traffic = traffic_of(name)) {
            add_traffic(samples, *traffic, name, rows.times);
        } else {
            add_problem(samples, rows.row, name, std::move(rows.times));
        }
    }
    samples.compute = merged(samples.compute);
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
