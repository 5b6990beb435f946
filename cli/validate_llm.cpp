// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_llm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "core/error.hpp"
#include "core/file.hpp"
#include "match/pattern.hpp"
#include "validate/language_bands.hpp"
#include "validate/language_rows.hpp"

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;
using validate::LanguageAnswer;

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::string set_of(const LanguageAnswer& answer) { return fmt::format("{}, {}", answer.row.source, answer.row.device); }

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// An answer with its bands, cold and with a pilot.
struct Banded {
    LanguageAnswer answer;
    std::optional<validate::LanguageBand> cold, anchored;
};

double memory_error(const LanguageAnswer& answer) { return predict::total(answer.memory) / *answer.row.memory - 1; }

// Coverage of the bands and how far they reach above a prediction, in the middle.
void add_bands(Json& group, const std::vector<Banded>& rows, const char* coverage, const char* width,
               std::optional<validate::LanguageBand> Banded::*which) {
    std::vector<double> held, reach;
    for (const Banded& row : rows) {
        const auto& band = row.*which;
        if (!band) continue;
        held.push_back(band->holds ? 1 : 0);
        reach.push_back(band->reach - 1);
    }
    if (held.empty()) return;
    group[coverage] = mean(held);
    group[width] = median(reach);
}

Json group_of(const std::string& name, const std::vector<Banded>& rows) {
    std::vector<double> cold, pilot, memory;
    std::vector<LanguageAnswer> answers;
    for (const Banded& row : rows) {
        const LanguageAnswer& each = answers.emplace_back(row.answer);
        cold.push_back(std::abs(each.cold()));
        if (each.with_pilot) pilot.push_back(*each.with_pilot);
        if (each.row.memory) memory.push_back(std::abs(memory_error(each)));
    }
    Json group{{"set", name}, {"rows", answers.size()}, {"cold_mean", mean(cold)}};
    if (!pilot.empty()) group["pilot_mean"] = mean(pilot);
    if (const auto tau = validate::rank_correlation(answers)) group["tau"] = *tau;
    add_bands(group, rows, "cold_in_band", "cold_band", &Banded::cold);
    add_bands(group, rows, "pilot_in_band", "pilot_band", &Banded::anchored);
    if (memory.empty()) return group;
    group["memory_rows"] = memory.size();
    group["memory_mean"] = mean(memory);
    group["memory_most"] = *std::ranges::max_element(memory);
    return group;
}

Json row_of(const Banded& banded) {
    const LanguageAnswer& answer = banded.answer;
    const predict::LanguageMemory& m = answer.memory;
    Json row{{"id", answer.row.id},
             {"measured_s", answer.row.measured.value},
             {"predicted_s", predict::total(answer.time).value},
             {"cold_error", answer.cold()}};
    if (answer.with_pilot) row["pilot_error"] = *answer.with_pilot;
    if (banded.cold) {
        row["low_s"] = banded.cold->band.low.value;
        row["high_s"] = banded.cold->band.high.value;
    }
    if (!answer.row.assumed.empty()) row["assumed"] = answer.row.assumed;
    row["compute_s"] = answer.time.compute.value;
    row["messages_s"] = answer.time.messages.value;
    row["bubble_s"] = answer.time.bubble.value;
    row["gradients_s"] = answer.time.gradients.value;
    row["update_s"] = answer.time.update.value;
    row["memory"] = {{"weights", m.weights.value},     {"gradients", m.gradients.value},
                     {"optimizer", m.optimizer.value}, {"activations", m.activations.value},
                     {"loss", m.loss.value},           {"stand_ins", m.stand_ins.value},
                     {"messages", m.messages.value},   {"stage", int{m.stage}}};
    row["memory_bytes"] = predict::total(m).value;
    if (answer.row.memory) {
        row["measured_bytes"] = answer.row.memory->value;
        row["memory_error"] = memory_error(answer);
    }
    return row;
}

std::vector<Table> tables_of(bool rows) {
    std::vector<Table> tables;
    if (rows) {
        tables.push_back({"rows",
                          "",
                          {{"id", "row"},
                           {"measured_s", "measured", Show::seconds},
                           {"predicted_s", "cold", Show::seconds},
                           {"cold_error", "error", Show::percent},
                           {"low_s", "from", Show::seconds},
                           {"high_s", "to", Show::seconds},
                           {"pilot_error", "with pilot", Show::percent},
                           {"memory_bytes", "memory", Show::bytes},
                           {"measured_bytes", "measured", Show::bytes},
                           {"memory_error", "error", Show::percent}}});
    }
    tables.push_back({"groups",
                      "error = |predicted - measured| / measured, means over rows",
                      {{"set", "set"},
                       {"rows", "rows", Show::count},
                       {"cold_mean", "cold", Show::percent},
                       {"pilot_mean", "with pilot", Show::percent},
                       {"tau", "tau", Show::number},
                       {"cold_in_band", "in band", Show::percent},
                       {"cold_band", "reach", Show::percent},
                       {"pilot_in_band", "pilot in band", Show::percent},
                       {"pilot_band", "its reach", Show::percent},
                       {"memory_rows", "with memory", Show::count},
                       {"memory_mean", "memory", Show::percent},
                       {"memory_most", "most", Show::percent}}});
    return tables;
}

}  // namespace

Report validate_llm(const LanguageTableOptions& options, double& middle) {
    const auto rows = options.samples.empty()
                          ? validate::shipped_language_rows()
                          : validate::read_language_rows(read_file(options.samples), options.samples);
    std::map<std::string, std::vector<Banded>> sets;
    std::vector<Banded> all;
    std::vector<double> errors;
    Json shown = Json::array();
    const match::Pattern pattern{options.filter, "--filter"};
    const std::vector<LanguageAnswer> answers = validate::answer(rows);
    const validate::LanguageBands bands = validate::bands_of(answers);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const Banded each{answers[i], bands.cold[i], bands.anchored[i]};
        if (!pattern.is_in(set_of(each.answer) + " " + each.answer.row.id)) continue;
        sets[set_of(each.answer)].push_back(each);
        all.push_back(each);
        errors.push_back(each.answer.with_pilot.value_or(std::abs(each.answer.cold())));
        if (options.rows) shown.push_back(row_of(each));
    }
    if (errors.empty()) throw InputError(fmt::format("--filter '{}' matches no row", options.filter));
    middle = median(errors);
    Report report{
        document("validation", {{"set", "llm"}, {"samples", options.samples}, {"filter", options.filter}}),
        tables_of(options.rows),
        "with pilot: each other row of the model and machine in turn was measured, and all times are scaled by "
        "it; tau: Kendall's, of plans of one model on as many devices; in band: share of rows in a band of 90 %, "
        "cold and with a pilot, from the errors on other boards of other sources, which reaches so far above the "
        "prediction; memory: what PyTorch had allocated on the fullest rank (docs/language_models.md)"};
    if (options.rows) report.document["rows"] = shown;
    for (const auto& [name, some] : sets) report.document["groups"].push_back(group_of(name, some));
    if (sets.size() > 1) report.document["groups"].push_back(group_of("all", all));
    return report;
}

}  // namespace rehearse::cli
