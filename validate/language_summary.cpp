// SPDX-License-Identifier: Apache-2.0
#include "validate/language_summary.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/error.hpp"

namespace rehearse::validate {

namespace {

double mean(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The upper one of two in the middle.
double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

std::optional<LanguageSummary::Bands> bands_of(std::span<const BandedAnswer> rows,
                                               std::optional<LanguageBand> BandedAnswer::*which) {
    std::vector<double> held, reach;
    for (const BandedAnswer& row : rows) {
        const auto& band = row.*which;
        if (!band) continue;
        held.push_back(band->holds ? 1 : 0);
        reach.push_back(band->reach - 1);
    }
    if (held.empty()) return std::nullopt;
    return LanguageSummary::Bands{mean(held), median(reach)};
}

}  // namespace

std::optional<double> memory_error(const LanguageAnswer& answer) {
    if (!answer.row.memory) return std::nullopt;
    return predict::total(answer.memory) / *answer.row.memory - 1;
}

LanguageSummary summarize(std::span<const BandedAnswer> rows) {
    require(!rows.empty(), "a summary of something");
    std::vector<double> cold, pilot, best, memory;
    std::vector<LanguageAnswer> answers;
    for (const BandedAnswer& row : rows) {
        const LanguageAnswer& each = answers.emplace_back(row.answer);
        cold.push_back(std::abs(each.cold()));
        if (each.with_pilot) pilot.push_back(*each.with_pilot);
        best.push_back(each.with_pilot.value_or(cold.back()));
        if (const auto error = memory_error(each)) memory.push_back(std::abs(*error));
    }
    LanguageSummary summary;
    summary.rows = rows.size();
    summary.cold = mean(cold);
    summary.tau = rank_correlation(answers);
    summary.cold_bands = bands_of(rows, &BandedAnswer::cold);
    summary.pilot_bands = bands_of(rows, &BandedAnswer::anchored);
    summary.middle = median(best);
    if (!pilot.empty()) summary.pilot = mean(pilot);
    if (!memory.empty()) summary.memory = {memory.size(), mean(memory), *std::ranges::max_element(memory)};
    return summary;
}

}  // namespace rehearse::validate
