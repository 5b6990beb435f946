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
#include "validate/language_rows.hpp"

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;
using validate::LanguageAnswer;

double mean(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::string set_of(const LanguageAnswer& answer) { return fmt::format("{}, {}", answer.row.source, answer.row.device); }

double memory_error(const LanguageAnswer& answer) { return predict::total(answer.memory) / *answer.row.memory - 1; }

Json group_of(const std::string& name, const std::vector<LanguageAnswer>& answers) {
    std::vector<double> cold, pilot, memory;
    for (const LanguageAnswer& each : answers) {
        cold.push_back(std::abs(each.cold()));
        if (each.with_pilot) pilot.push_back(*each.with_pilot);
        if (each.row.memory) memory.push_back(std::abs(memory_error(each)));
    }
    Json group{{"set", name}, {"rows", answers.size()}, {"cold_mean", mean(cold)}};
    if (!pilot.empty()) group["pilot_mean"] = mean(pilot);
    if (const auto tau = validate::rank_correlation(answers)) group["tau"] = *tau;
    if (memory.empty()) return group;
    group["memory_rows"] = memory.size();
    group["memory_mean"] = mean(memory);
    group["memory_most"] = *std::ranges::max_element(memory);
    return group;
}

Json row_of(const LanguageAnswer& answer) {
    const predict::LanguageMemory& m = answer.memory;
    Json row{{"id", answer.row.id},
             {"measured_s", answer.row.measured.value},
             {"predicted_s", predict::total(answer.time).value},
             {"cold_error", answer.cold()}};
    if (answer.with_pilot) row["pilot_error"] = *answer.with_pilot;
    row["compute_s"] = answer.time.compute.value;
    row["messages_s"] = answer.time.messages.value;
    row["bubble_s"] = answer.time.bubble.value;
    row["gradients_s"] = answer.time.gradients.value;
    row["update_s"] = answer.time.update.value;
    row["memory"] = {{"weights", m.weights.value},     {"gradients", m.gradients.value},
                     {"optimizer", m.optimizer.value}, {"activations", m.activations.value},
                     {"loss", m.loss.value},           {"stand_ins", m.stand_ins.value},
                     {"messages", m.messages.value},   {"stage", m.stage}};
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
                       {"memory_rows", "with memory", Show::count},
                       {"memory_mean", "memory", Show::percent},
                       {"memory_most", "most", Show::percent}}});
    return tables;
}

}  // namespace

Report validate_llm(const LanguageTableOptions& options, double& median) {
    const auto rows = options.samples.empty()
                          ? validate::shipped_language_rows()
                          : validate::read_language_rows(read_file(options.samples), options.samples);
    std::map<std::string, std::vector<LanguageAnswer>> sets;
    std::vector<double> errors;
    Json shown = Json::array();
    const match::Pattern pattern{options.filter, "--filter"};
    for (const LanguageAnswer& each : validate::answer(rows)) {
        if (!pattern.is_in(set_of(each) + " " + each.row.id)) continue;
        sets[set_of(each)].push_back(each);
        errors.push_back(each.with_pilot.value_or(std::abs(each.cold())));
        if (options.rows) shown.push_back(row_of(each));
    }
    if (errors.empty()) throw InputError(fmt::format("--filter '{}' matches no row", options.filter));
    std::ranges::sort(errors);
    median = errors[errors.size() / 2];
    Report report{
        document("validation", {{"set", "llm"}, {"samples", options.samples}, {"filter", options.filter}}),
        tables_of(options.rows),
        "with pilot: each other row of the model and machine in turn was measured, and all times are scaled by "
        "it; tau: Kendall's, of plans of one model on as many devices; memory: what PyTorch had allocated on "
        "the fullest rank (docs/language_models.md)"};
    if (options.rows) report.document["rows"] = shown;
    for (const auto& [name, answers] : sets) report.document["groups"].push_back(group_of(name, answers));
    return report;
}

}  // namespace rehearse::cli
