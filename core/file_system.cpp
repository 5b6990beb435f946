// SPDX-License-Identifier: Apache-2.0
#include "core/file_system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse {

namespace {

constexpr double endless = std::numeric_limits<double>::infinity();

double requests(const ReadPattern& pattern) {
    return pattern.request > Bytes{} ? std::max(1.0, std::ceil(pattern.sample / pattern.request)) : 1;
}

double operations(const FileSystem& system, const ReadPattern& pattern) {
    return pattern.files * (system.operations.source.empty() ? 1 : system.operations.value);
}

// Samples a second that the servers of names allow.
double by_metadata(const FileSystem& system, const ReadPattern& pattern) {
    const double asked = operations(system, pattern);
    return system.metadata.source.empty() || asked == 0 ? endless : system.metadata.value / asked;
}

// ... and those of data, where each has as much to do.
double by_targets(const FileSystem& system, const ReadPattern& pattern) {
    if (system.read.source.empty()) return endless;
    double busy = (pattern.sample / system.read.value).value;  // of all targets together, as a share of each
    if (!system.targets.source.empty()) busy += requests(pattern) * system.seek.value.value / system.targets.value;
    return 1 / busy;
}

}  // namespace

double expected_most(double balls, double bins) {
    if (bins <= 1 || balls <= 0) return std::max(balls, 0.0);
    const double mean = balls / bins, reach = 12 * std::sqrt(mean) + 40;  // beyond it, no load in 1e30
    const double first = std::max(0.0, std::floor(mean - reach)), last = std::ceil(mean + reach);
    std::vector<double> masses;  // of Poisson's law, from `first` on, over the mean's
    double all = 0;
    for (double m = first; m <= last; ++m) {
        masses.push_back(std::exp((m - mean) * std::log(mean) - std::lgamma(m + 1) + std::lgamma(mean + 1)));
        all += masses.back();
    }
    double below = 0, most = first;  // the largest load is hardly ever less than `first`
    for (const double mass : masses) {
        below = std::min(1.0, below + mass / all);
        most -= std::expm1(bins * std::log(below));
    }
    return std::min(most, balls);
}

Seconds reading_time(const FileSystem& system, const ReadPattern& pattern, double samples) {
    Seconds each = operations(system, pattern) * system.operation.value + requests(pattern) * system.request.value;
    if (!system.stream.source.empty()) each += pattern.sample / system.stream.value;
    return samples * each;
}

ReadRates read_rates(const FileSystem& system, const ReadPattern& pattern, std::int64_t processes, double samples) {
    ReadRates rates;
    const Seconds one = reading_time(system, pattern, 1);
    const double by_reader = one > Seconds{} ? static_cast<double>(pattern.readers) / one.value : endless;
    const double names = by_metadata(system, pattern);
    if (!system.targets.source.empty() && static_cast<double>(pattern.stripes) < system.targets.value) {
        const double pieces = samples * pattern.ahead * static_cast<double>(pattern.stripes);
        rates.busiest = std::max(1.0, expected_most(pieces, system.targets.value) * system.targets.value / pieces);
    }
    const double data = by_targets(system, pattern) / rates.busiest;
    rates.process = Bandwidth{pattern.sample.value * by_reader};
    rates.together = Bandwidth{pattern.sample.value * std::min(names, data)};
    const double all = by_reader * static_cast<double>(processes);
    rates.bound = all <= std::min(names, data) ? ReadBound::readers
                  : names < data               ? ReadBound::metadata
                                               : ReadBound::targets;
    return rates;
}

std::string_view to_string(ReadBound bound) {
    constexpr std::array<std::string_view, 3> names{"readers", "metadata", "targets"};
    return names.at(static_cast<std::size_t>(bound));
}

ReadPattern parse_read_pattern(std::string_view text, Bytes sample) {
    constexpr std::array<std::string_view, 5> known{"files", "request", "readers", "stripes", "ahead"};
    ReadPattern pattern{.sample = sample};
    for (const std::string_view word : split(text, ':')) {
        const std::size_t at = word.find('=');
        const std::string_view key = word.substr(0, at), value = at < word.size() ? word.substr(at + 1) : "";
        const std::string where = fmt::format("--reading {}", text);
        if (at == std::string_view::npos || std::ranges::find(known, key) == known.end()) {
            throw InputError(
                fmt::format("{}: '{}' is none of files=N, request=SIZE, readers=N, stripes=N, ahead=STEPS{}", where,
                            word, did_you_mean(key, known)));
        }
        if (key == "files") pattern.files = parse_number(value, where);
        if (key == "request") pattern.request = parse_quantity<Bytes>(value);
        if (key == "readers") pattern.readers = parse_int(value, where);
        if (key == "stripes") pattern.stripes = parse_int(value, where);
        if (key == "ahead") pattern.ahead = parse_number(value, where);
        if (pattern.files < 0 || pattern.readers < 1 || pattern.stripes < 1 || !(pattern.ahead > 0) ||
            (key == "request" && !(pattern.request > Bytes{}))) {
            throw InputError(fmt::format("{}: '{}' is too small", where, word));
        }
    }
    return pattern;
}

}  // namespace rehearse
