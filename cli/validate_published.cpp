// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_published.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "calibrate/validate_kernels.hpp"
#include "cli/json.hpp"
#include "cli/published_pictures.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "validate/replay_rows.hpp"

namespace rehearse::cli {

namespace {

using validate::Answer;
using validate::PublishedRow;
using validate::ReplayedRow;
using validate::RowErrors;

void add(RowErrors& errors, const Answer& answer, double published) {
    errors.add(answer.predicted, published, {answer.low, answer.high});
}

struct Group {
    int rows = 0, skipped = 0;
    RowErrors cold, anchored;
};

Json row_json(const ReplayedRow& replayed) {
    const PublishedRow& row = replayed.row;
    Json json{{"id", row.text("id")},
              {"system", row.text("system")},
              {"machine", row.text("machine")},
              {"model", row.text("model")},
              {"devices", row.devices},
              {"precision", row.text("precision")},
              {"metric", row.text("metric")},
              {"unit", row.text("unit")},
              {"published", row.value},
              {"source", row.text("provenance")},
              {"from_memory", replayed.from_memory}};
    if (!replayed.answered()) {
        json["skipped"] = replayed.skipped;
        return json;
    }
    const Answer& best = replayed.anchored ? *replayed.anchored : *replayed.cold;
    json.update({{"predicted", best.predicted},
                 {"error", error_of(best, row.value)},
                 {"low", best.low},
                 {"high", best.high},
                 {"anchor", replayed.anchor}});
    if (replayed.twice) {
        json.update({{"second_pilot", replayed.second},
                     {"two_pilots_predicted", replayed.twice->predicted},
                     {"two_pilots_error", error_of(*replayed.twice, row.value)},
                     {"two_pilots_low", replayed.twice->low},
                     {"two_pilots_high", replayed.twice->high}});
    }
    if (!replayed.cold) {
        json["cold_skipped"] = replayed.settings.at("cold");
        return json;
    }
    json.update({{"cold_predicted", replayed.cold->predicted},
                 {"cold_error", error_of(*replayed.cold, row.value)},
                 {"cold_low", replayed.cold->low},
                 {"cold_high", replayed.cold->high}});
    return json;
}

void add_errors(Json& json, const char* name, const RowErrors& errors) {
    if (errors.empty()) return;
    const Json all = json_of(errors.summary());  // outlives the loop
    for (const auto& [key, value] : all.items()) {
        json[key == "rows" ? fmt::format("{}_rows", name) : fmt::format("{}_{}", name, key)] = value;
    }
}

Json groups_json(const std::vector<ReplayedRow>& rows) {
    std::vector<std::pair<std::string, std::string>> order;
    std::map<std::pair<std::string, std::string>, Group> groups;
    for (const ReplayedRow& row : rows) {
        const std::pair name{row.row.text("system"), row.row.text("machine")};
        if (!groups.contains(name)) order.push_back(name);
        Group& group = groups[name];
        ++group.rows;
        if (!row.answered()) ++group.skipped;
        if (!row.answered() || row.from_memory) continue;
        if (row.cold) add(group.cold, *row.cold, row.row.value);
        if (row.anchored) add(group.anchored, *row.anchored, row.row.value);
    }
    Json list = Json::array();
    for (const auto& name : order) {
        const Group& group = groups[name];
        const RowErrors& best = group.anchored.empty() ? group.cold : group.anchored;
        Json json{{"set", "published"},
                  {"system", name.first},
                  {"machine", name.second},
                  {"rows", group.rows},
                  {"skipped", group.skipped}};
        if (!best.empty()) {
            const Json all = json_of(best.summary());
            for (const char* key : {"median_error", "p90_error", "in_band"}) json[key] = all[key];
        }
        add_errors(json, "anchored", group.anchored);
        add_errors(json, "cold", group.cold);
        list.push_back(json);
    }
    return list;
}

// How many rows lie in bands that were stretched until they held nine in ten of all other systems' rows; nothing where
// these are few, or not all there are.
void add_unseen(const std::vector<ReplayedRow>& rows, std::optional<Answer> ReplayedRow::*kind, const char* name,
                Report& report) {
    std::vector<validate::Residual> residuals;
    std::set<std::string> systems;
    for (const ReplayedRow& row : rows) {
        const std::optional<Answer>& answer = row.*kind;
        if (!answer || row.from_memory || !(answer->low < answer->predicted && answer->predicted < answer->high))
            continue;
        systems.insert(row.row.text("system"));
        residuals.push_back(validate::residual_of(row.row.text("system"), answer->predicted, row.row.value,
                                                  {answer->low, answer->high}));
    }
    if (systems.size() < 2) return;
    const bool few = std::ranges::any_of(systems, [&](const std::string& system) {
        const auto others = std::ranges::count_if(residuals, [&](const auto& each) { return each.system != system; });
        return others < validate::fewest_others;
    });
    if (few) return;
    const validate::Coverage coverage = validate::coverage_without_system(residuals);
    report.document["summary"][name]["in_band_unseen"] = coverage.in_band;
    report.document["summary"][name]["band_width_unseen"] = coverage.width;
    report.footer +=
        fmt::format("{}: {:.0f} % in bands that hold nine in ten of all other systems' rows, a factor of {:.2f} wide\n",
                    name, 100 * coverage.in_band, coverage.width);
}

void summarize(const std::vector<ReplayedRow>& rows, bool filtered, Report& report, double& median) {
    RowErrors anchored, cold, memory, once, twice;
    std::map<std::string, int> reasons, only_anchored;
    for (const ReplayedRow& row : rows) {
        if (!row.answered()) {
            ++reasons[row.skipped];
            continue;
        }
        if (row.cold) add(row.from_memory ? memory : cold, *row.cold, row.row.value);
        if (!row.cold) ++only_anchored[row.settings.at("cold")];
        if (row.anchored && !row.from_memory) add(anchored, *row.anchored, row.row.value);
        if (!row.twice || row.from_memory) continue;
        add(once, *row.anchored, row.row.value);
        add(twice, *row.twice, row.row.value);
    }
    Json& summary = report.document["summary"] = Json::object();
    const auto add = [&](const char* name, const RowErrors& errors, std::string_view what) {
        if (errors.empty()) return;
        const validate::ErrorSummary of = errors.summary();
        summary[name] = json_of(of);
        report.footer += fmt::format(
            "{}: {} rows, error {:.1f} % median, {:.1f} % p90; {:.0f} % in their band, a factor of {:.2f} wide in the "
            "median ({})\n",
            name, of.rows, 100 * of.median, 100 * of.p90, 100 * of.in_band, of.width, what);
    };
    add("anchored", anchored, "scaled to the smallest run of the same kind");
    add("cold", cold, "nothing measured on the system");
    add("memory", memory, "cold; figures that were written down from memory");
    add("one_pilot", once, "rows that have a second pilot, on more nodes, without it");
    add("two_pilots", twice, "the same rows with it");
    if (!filtered) {  // else other systems' rows are not here
        add_unseen(rows, &ReplayedRow::anchored, "anchored", report);
        add_unseen(rows, &ReplayedRow::cold, "cold", report);
    }
    for (const auto& [why, count] : only_anchored)
        report.footer += fmt::format("{} rows anchored only: {}\n", count, why);
    for (const auto& [why, count] : reasons) report.footer += fmt::format("{} rows skipped: {}\n", count, why);
    if (!report.footer.empty()) report.footer.pop_back();
    const RowErrors& judged = anchored.empty() ? cold : anchored;
    median = judged.empty() ? 0 : judged.quantile(0.5);
}

std::vector<Table> tables(bool rows) {
    std::vector<Table> tables{{"groups",
                               "error = |predicted - published| / published; the band should hold 90 %",
                               {{"system", "system"},
                                {"machine", "machine"},
                                {"rows", "rows", Show::count},
                                {"skipped", "skipped", Show::count},
                                {"anchored_rows", "anchored", Show::count},
                                {"anchored_median_error", "median", Show::percent},
                                {"anchored_p90_error", "p90", Show::percent},
                                {"anchored_in_band", "in band", Show::percent},
                                {"cold_rows", "cold", Show::count},
                                {"cold_median_error", "median", Show::percent},
                                {"cold_p90_error", "p90", Show::percent},
                                {"cold_in_band", "in band", Show::percent}}}};
    if (!rows) return tables;
    tables.insert(tables.begin(), {"rows",
                                   "each row; predicted is anchored where there is an anchor, else cold",
                                   {{"id", "id"},
                                    {"devices", "devices", Show::count},
                                    {"published", "published", Show::number},
                                    {"predicted", "predicted", Show::number},
                                    {"error", "error", Show::percent},
                                    {"low", "low", Show::number},
                                    {"high", "high", Show::number},
                                    {"cold_predicted", "cold", Show::number},
                                    {"cold_error", "error", Show::percent},
                                    {"skipped", "  skipped"}}});
    return tables;
}

}  // namespace

Json json_of(const validate::ErrorSummary& summary) {
    Json json{{"rows", summary.rows},
              {"mean_error", summary.mean},
              {"median_error", summary.median},
              {"p90_error", summary.p90},
              {"in_band", summary.in_band}};
    if (summary.width > 0) json["band_width"] = summary.width;
    return json;
}

Report validate_published(const PublishedOptions& options, const Progress& progress, double& median) {
    const auto all = options.file.empty() ? validate::shipped_published()
                                          : validate::read_published(read_file(options.file), options.file);
    validate::ReplayRules rules = validate::shipped_replay_rules();
    if (!options.rules.empty()) rules.add(read_file(options.rules), options.rules);
    const std::vector<ReplayedRow> rows = validate::replay_rows(
        all, rules, validate::rows_matching(options.filter, "--filter"), progress, validate::Pilots{options.pilots});
    if (rows.empty()) {
        throw InputError(options.filter.empty() ? fmt::format("{}: it has no rows", options.file)
                                                : fmt::format("--filter '{}' matches no row", options.filter));
    }
    if (!options.plot.empty()) draw_published(rows, options.plot);
    Report report{document("validation",
                           {{"set", options.file.empty() ? "published" : options.file}, {"filter", options.filter}}),
                  {},
                  ""};
    report.document["groups"] = groups_json(rows);
    summarize(rows, !options.filter.empty(), report, median);
    Json& list = report.document["rows"] = Json::array();
    for (const ReplayedRow& row : rows) list.push_back(row_json(row));
    report.tables = tables(options.rows);
    return report;
}

}  // namespace rehearse::cli
