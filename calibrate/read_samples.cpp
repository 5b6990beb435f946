// SPDX-License-Identifier: Apache-2.0
#include "calibrate/read_samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "calibrate/fit.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::calibrate {

namespace {

using Json = nlohmann::json;

std::vector<std::string_view> words_of(std::string_view line) {
    std::vector<std::string_view> words;
    for (const std::string_view word : split(line, ' ')) {
        if (!word.empty()) words.push_back(word);
    }
    return words;
}

MessageSample of_ring(double bytes, double seconds, std::int64_t ranks) {
    const auto n = static_cast<double>(ranks);
    return {Bytes{bytes / n}, Seconds{seconds / (2 * (n - 1))}};
}

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

FileSamples read_json(std::string_view text, const std::string& origin) {
    const Json document = Json::parse(text, nullptr, false);
    if (!document.is_object() || !document.contains("benchmarks"))
        throw InputError(fmt::format(
            "{}: JSON without \"benchmarks\": give what Google Benchmark or rehearse bench --out wrote", origin));
    FileSamples samples;
    const Json context = document.value("context", Json::object());
    samples.where = fmt::format("{}, {}", context.value("host_name", origin), context.value("date", "").substr(0, 10));
    std::map<std::string, std::vector<double>> by_name;
    for (const Json& row : document["benchmarks"]) {
        if (row.value("run_type", "iteration") == "aggregate" || row.value("error_occurred", false)) continue;
        const std::string name = row.value("name", "");
        const double seconds = seconds_of(row, origin);
        if (!(seconds > 0)) throw InputError(fmt::format("{}: benchmark '{}' took {} s", origin, name, seconds));
        if (const auto bytes = message_size(name)) {
            if (name.find("/mpi/") == std::string::npos) samples.messages.push_back({Bytes{*bytes}, Seconds{seconds}});
        } else {
            by_name[name].push_back(seconds);
        }
    }
    for (const auto& [name, seconds] : by_name) add_problem(samples, name, seconds);
    keep_fastest(samples.compute);
    return samples;
}

struct Lines {
    std::string_view text;
    const std::string& origin;

    template <typename Each>
    void each(const Each& take) const {
        std::int64_t number = 0;
        for (const std::string_view line : split(text, '\n')) take(line, fmt::format("{}:{}", origin, ++number));
    }
};

// size count type redop root time algbw busbw #wrong, then the same in place; the header names the columns.
FileSamples read_nccl(const Lines& lines) {
    FileSamples samples;
    std::int64_t ranks = 0;
    std::size_t time = 0, operation = 0;
    lines.each([&](std::string_view line, const std::string& here) {
        const std::vector<std::string_view> words = words_of(line);
        if (words.empty()) return;
        if (words.front().starts_with('#')) {
            if (words.size() > 1 && words[1] == "Rank") ++ranks;
            const auto column = std::ranges::find(words, "time");
            if (column == words.end() || std::ranges::find(words, "size") == words.end()) return;
            time = static_cast<std::size_t>(column - words.begin()) - 1;  // after the '#'
            operation = static_cast<std::size_t>(std::ranges::find(words, "redop") - words.begin()) - 1;
            return;
        }
        if (time == 0 || words.size() < time + 3) return;
        const double bytes = parse_number(words[0], here), seconds = parse_number(words[time], here) * 1e-6;
        if (!(bytes > 0) || !(seconds > 0)) return;
        const bool sums = operation < words.size() && words[operation] != "none";
        if (sums && ranks < 2)
            throw InputError(
                fmt::format("{}: the lines '# Rank ...' that say how many ranks there were are missing", here));
        const double factor = parse_number(words[time + 2], here) / parse_number(words[time + 1], here);
        const double expected = sums ? 2 * static_cast<double>(ranks - 1) / static_cast<double>(ranks) : 1;
        if (std::isfinite(factor) && std::abs(factor / expected - 1) > 0.2)  // bandwidths are printed with two decimals
            throw InputError(
                fmt::format("{}: busbw / algbw is {:.2f}: of nccl-tests, all_reduce_perf and sendrecv_perf are read",
                            here, factor));
        samples.messages.push_back(sums ? of_ring(bytes, seconds, ranks)
                                        : MessageSample{Bytes{bytes}, Seconds{seconds}});
    });
    return samples;
}

// "# OSU MPI Latency Test v7.2", "# Size   Latency (us)", then two columns or more.
FileSamples read_osu(const Lines& lines, std::int64_t ranks) {
    FileSamples samples;
    std::string title;
    lines.each([&](std::string_view line, const std::string& here) {
        if (line.find("OSU") != std::string_view::npos && title.empty()) title = line;
        const std::vector<std::string_view> words = words_of(line);
        if (words.size() < 2 || words.front().starts_with('#')) return;
        const double bytes = parse_number(words[0], here), value = parse_number(words[1], here);
        if (!(bytes > 0) || !(value > 0)) return;
        if (title.find("Allreduce") != std::string::npos) {
            if (ranks < 2)
                throw InputError(
                    fmt::format("{}: OSU's all-reduce does not say among how many ranks: give --ranks N", here));
            samples.messages.push_back(of_ring(bytes, value * 1e-6, ranks));
        } else if (title.find("Latency Test") != std::string::npos) {
            samples.messages.push_back({Bytes{bytes}, Seconds{value * 1e-6}});
        } else if (title.find("Bandwidth Test") != std::string::npos && title.find("Bi-") == std::string::npos) {
            if (bytes >= 65536)
                samples.messages.push_back({Bytes{bytes}, Seconds{bytes / (value * 1e6)}});  // a window in flight
        } else {
            throw InputError(fmt::format("{}: '{}': of OSU, latency, bandwidth and allreduce are read", here, title));
        }
    });
    return samples;
}

}  // namespace

FileSamples read_samples(std::string_view text, const std::string& origin, std::int64_t ranks) {
    FileSamples samples;
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && text[first] == '{') {
        try {
            samples = read_json(text, origin);
        } catch (const Json::exception& error) {  // a text where a number belongs
            throw InputError(fmt::format("{}: {}", origin, error.what()));
        }
    } else if (text.find("OSU ") != std::string_view::npos) {
        samples = read_osu({text, origin}, ranks);
    } else if (text.find("busbw") != std::string_view::npos) {
        samples = read_nccl({text, origin});
    } else {
        throw InputError(fmt::format(
            "{}:1: neither JSON of Google Benchmark, nor the text of nccl-tests or of the OSU micro-benchmarks",
            origin));
    }
    if (samples.where.empty()) samples.where = origin;
    if (!samples.compute.empty() || !samples.messages.empty()) return samples;
    throw InputError(fmt::format("{}: it holds no problem and no message{}", origin,
                                 samples.skipped.empty() ? "" : "; the first benchmark: " + samples.skipped.front()));
}

}  // namespace rehearse::calibrate
