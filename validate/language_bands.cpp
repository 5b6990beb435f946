// SPDX-License-Identifier: Apache-2.0
#include "validate/language_bands.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

namespace rehearse::validate {

namespace {

using Error = std::function<std::optional<double>(const LanguageAnswer&)>;  // a logarithm

std::optional<double> cold_error(const LanguageAnswer& answer) {
    return std::log(predict::total(answer.time) / answer.row.measured);
}

std::optional<double> anchored_error(const LanguageAnswer& answer) {
    if (!answer.anchored) return std::nullopt;
    return std::log(*answer.anchored / answer.row.measured);
}

// Standard deviation about no error, of rows from elsewhere of which `kind` holds.
std::optional<double> deviation(const std::vector<LanguageAnswer>& answers, const LanguageRow& left_out,
                                const Error& error, const std::function<bool(const LanguageRow&)>& kind) {
    struct Squares {
        double sum = 0;
        int count = 0;
    };
    std::map<std::pair<std::string, std::string>, Squares> sets;
    for (const LanguageAnswer& each : answers) {
        if (each.row.source == left_out.source || each.row.device == left_out.device || !kind(each.row)) continue;
        const std::optional<double> off = error(each);
        if (!off) continue;
        Squares& set = sets[{each.row.source, each.row.device}];
        set.sum += *off * *off;
        ++set.count;
    }
    if (sets.empty()) return std::nullopt;
    double sum = 0;
    for (const auto& [name, set] : sets) sum += set.sum / set.count;
    return std::sqrt(sum / static_cast<double>(sets.size()));
}

std::optional<LanguageBand> band_of(const std::vector<LanguageAnswer>& answers, const LanguageAnswer& answer,
                                    const Error& error, std::optional<Seconds> predicted, double host) {
    if (!predicted) return std::nullopt;
    const auto printed = [](const LanguageRow& row) { return row.assumed.empty(); };
    std::optional<double> off = deviation(answers, answer.row, error, printed);
    if (!printed(answer.row)) {
        const auto assumed = deviation(answers, answer.row, error, std::not_fn(printed));
        if (assumed) off = std::max(off.value_or(0), *assumed);
    }
    if (!off) return std::nullopt;
    LanguageBand band;
    band.reach = prices::log_reach(std::hypot(*off, host));
    band.band = prices::around(*predicted, band.reach);
    band.holds = band.band.contains(answer.row.measured);
    return band;
}

}  // namespace

LanguageBands bands_of(const std::vector<LanguageAnswer>& answers) {
    LanguageBands bands;
    for (const LanguageAnswer& each : answers) {
        bands.cold.push_back(band_of(answers, each, cold_error, predict::total(each.time), each.host));
        bands.anchored.push_back(band_of(answers, each, anchored_error, each.anchored, each.anchored_host));
    }
    return bands;
}

}  // namespace rehearse::validate
