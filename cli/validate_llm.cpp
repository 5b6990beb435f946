// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_llm.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "match/pattern.hpp"
#include "validate/language_bands.hpp"
#include "validate/language_rows.hpp"
#include "validate/language_summary.hpp"

namespace rehearse::cli {

namespace {

using validate::BandedAnswer;
using validate::LanguageAnswer;

std::string set_of(const LanguageAnswer& answer) { return fmt::format("{}, {}", answer.row.source, answer.row.device); }

void add_bands(Json& group, const char* coverage, const char* reach,
               const std::optional<validate::LanguageSummary::Bands>& bands) {
    if (!bands) return;
    group[coverage] = bands->held;
    group[reach] = bands->reach;
}

Json group_of(const std::string& name, const std::vector<BandedAnswer>& rows) {
    const validate::LanguageSummary summary = validate::summarize(rows);
    Json group{{"set", name}, {"rows", summary.rows}, {"cold_mean", summary.cold}};
    if (summary.pilot) group["pilot_mean"] = *summary.pilot;
    if (summary.tau) group["tau"] = *summary.tau;
    add_bands(group, "cold_in_band", "cold_band", summary.cold_bands);
    add_bands(group, "pilot_in_band", "pilot_band", summary.pilot_bands);
    if (!summary.memory) return group;
    group["memory_rows"] = summary.memory->rows;
    group["memory_mean"] = summary.memory->mean;
    group["memory_most"] = summary.memory->most;
    return group;
}

Json row_of(const BandedAnswer& banded) {
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
    row["memory"] = {
        {"weights", m.weights.value},         {"gradients", m.gradients.value}, {"optimizer", m.optimizer.value},
        {"activations", m.activations.value}, {"again", m.again.value},         {"loss", m.loss.value},
        {"stand_ins", m.stand_ins.value},     {"messages", m.messages.value},   {"stage", int{m.stage}}};
    row["memory_bytes"] = predict::total(m).value;
    if (answer.row.memory) {
        row["measured_bytes"] = answer.row.memory->value;
        row["memory_error"] = *validate::memory_error(answer);
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
    std::map<std::string, std::vector<BandedAnswer>> sets;
    std::vector<BandedAnswer> all;
    Json shown = Json::array();
    const match::Pattern pattern{options.filter, "--filter"};
    const std::vector<LanguageAnswer> answers = validate::answer(rows);
    const validate::LanguageBands bands = validate::bands_of(answers);
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const BandedAnswer each{answers[i], bands.cold[i], bands.anchored[i]};
        if (!pattern.is_in(set_of(each.answer) + " " + each.answer.row.id)) continue;
        sets[set_of(each.answer)].push_back(each);
        all.push_back(each);
        if (options.rows) shown.push_back(row_of(each));
    }
    if (all.empty()) throw InputError(fmt::format("--filter '{}' matches no row", options.filter));
    middle = validate::summarize(all).middle;
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
