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

bool is_printed(const LanguageRow& row) { return row.assumed.empty(); }
// Experts' recipes leave most open: who sends rows and what it hides.
bool is_of_experts(const LanguageRow& row) { return !is_printed(row) && row.sizes.experts > 0; }

using Holds = std::function<bool(const LanguageRow&)>;

// Standard deviation about no error, of the rows of which `counts` holds; each source's of a device count once.
std::optional<double> deviation(const std::vector<LanguageAnswer>& answers, const Error& error, const Holds& counts) {
    struct Squares {
        double sum = 0;
        int count = 0;
    };
    std::map<std::pair<std::string, std::string>, Squares> sets;
    for (const LanguageAnswer& each : answers) {
        if (!counts(each.row)) continue;
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

// By rows of other boards of other sources; where the recipe of a row is assumed as far as by other such rows. Of
// experts, which two sources measured, by those of other boards or of another source.
std::optional<double> deviation_elsewhere(const std::vector<LanguageAnswer>& answers, const LanguageRow& left_out,
                                          const Error& error) {
    const auto elsewhere = [&](const LanguageRow& row) {
        return row.source != left_out.source && row.device != left_out.device;
    };
    std::optional<double> off =
        deviation(answers, error, [&](const LanguageRow& row) { return elsewhere(row) && is_printed(row); });
    if (is_printed(left_out)) return off;
    const auto alike = [&](const LanguageRow& row) {
        if (is_printed(row) || is_of_experts(row) != is_of_experts(left_out)) return false;
        return is_of_experts(row) ? row.source != left_out.source || row.device != left_out.device : elsewhere(row);
    };
    const std::optional<double> assumed = deviation(answers, error, alike);
    return assumed ? std::max(off.value_or(0), *assumed) : off;
}

std::optional<LanguageBand> band_of(const std::vector<LanguageAnswer>& answers, const LanguageAnswer& answer,
                                    const Error& error, std::optional<Seconds> predicted, double host) {
    if (!predicted) return std::nullopt;
    const std::optional<double> off = deviation_elsewhere(answers, answer.row, error);
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
