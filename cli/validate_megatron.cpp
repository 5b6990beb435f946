// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_megatron.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/json.hpp"
#include "cli/validate_published.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "match/pattern.hpp"
#include "validate/megatron_rows.hpp"

namespace rehearse::cli {

namespace {

using validate::MegatronAnswer;
using validate::MegatronRow;
using validate::RowErrors;

std::string group_of(const MegatronAnswer& answer) {
    return fmt::format("{}{}", answer.row.set, answer.fitted ? ", fitted on" : "");
}

void add(RowErrors& errors, const MegatronAnswer& answer) {
    const Seconds published = answer.row.published;
    errors.add(answer.cold.value, published.value, {answer.low.value, answer.high.value});
}

Json row_json(const MegatronAnswer& answer) {
    const MegatronRow& row = answer.row;
    Json json{{"id", row.id},
              {"system", row.set},
              {"model", network_of(row)},
              {"devices", row.devices},
              {"global_batch", row.global_batch},
              {"plan", plan_of(row)},
              {"published", row.published.value},
              {"source", "VIA-Research/vTrain (MIT)"}};
    if (!answer.skipped.empty()) {
        json["skipped"] = answer.skipped;
        return json;
    }
    json.update({{"predicted", answer.cold.value},
                 {"error", validate::error_of(row, answer.cold)},
                 {"low", answer.low.value},
                 {"high", answer.high.value},
                 {"fitted", answer.fitted},
                 {"anchor", answer.anchor}});
    if (answer.anchored) {
        json["anchored_predicted"] = answer.anchored->value;
        json["anchored_error"] = validate::error_of(row, *answer.anchored);
    }
    return json;
}

std::vector<MegatronRow> rows_of(const MegatronOptions& options) {
    std::vector<MegatronRow> rows =
        options.samples.empty() ? validate::shipped_megatron()
                                : validate::read_megatron(read_file(options.samples), options.samples, options.samples);
    if (options.filter.empty()) return rows;
    const match::Pattern pattern{options.filter, "--filter"};
    std::erase_if(rows, [&](const MegatronRow& row) {
        return !pattern.is_in(row.id + " " + network_of(row) + " " + plan_of(row));
    });
    if (rows.empty()) throw InputError(fmt::format("--filter '{}' matches no row", options.filter));
    return rows;
}

std::vector<Table> tables() {
    return {{"groups",
             "error = |predicted - published| / published; the band should hold 90 %",
             {{"system", "rows of"},
              {"kind", "prediction"},
              {"rows", "rows", Show::count},
              {"mean_error", "mean", Show::percent},
              {"median_error", "median", Show::percent},
              {"p90_error", "p90", Show::percent},
              {"in_band", "in band", Show::percent}}}};
}

}  // namespace

Report validate_megatron(const MegatronOptions& options, const Progress& progress, double& median) {
    const std::vector<MegatronRow> rows = rows_of(options);
    const std::vector<MegatronAnswer> answers = validate::answer_megatron(rows, options.machine, progress);
    std::map<std::string, RowErrors> cold, anchored;
    RowErrors all_cold, all_anchored;
    Report report{
        document("validation", {{"set", "megatron"}, {"samples", options.samples}, {"machine", options.machine}}),
        tables(), ""};
    Json list = Json::array();
    std::map<std::string, int> reasons;
    for (const MegatronAnswer& answer : answers) {
        list.push_back(row_json(answer));
        if (!answer.skipped.empty()) {
            ++reasons[answer.skipped];
            continue;
        }
        add(cold[group_of(answer)], answer);
        if (!answer.fitted) add(all_cold, answer);
        if (!answer.anchored) continue;
        const double error = std::abs(validate::error_of(answer.row, *answer.anchored));
        anchored[group_of(answer)].add(error);
        all_anchored.add(error);
    }
    Json& groups = report.document["groups"] = Json::array();
    for (const auto& [kind, errors] : {std::pair{"cold", &cold}, std::pair{"anchored", &anchored}}) {
        for (const auto& [name, group] : *errors) {
            Json json{{"set", "megatron"}, {"system", name}, {"kind", kind}};
            json.update(json_of(group.summary()));
            if (errors == &anchored) json.erase("in_band");
            groups.push_back(json);
        }
    }
    Json& summary = report.document["summary"] = Json::object();
    if (!all_anchored.empty()) summary["anchored"] = json_of(all_anchored.summary());
    if (!all_cold.empty()) summary["cold"] = json_of(all_cold.summary());
    report.document["rows"] = std::move(list);
    report.footer =
        "cold: from the machine file alone; anchored: scaled by the smallest row of the same width, micro-batch "
        "and tensor ranks";
    for (const auto& [why, count] : reasons) report.footer += fmt::format("\n{} rows skipped: {}", count, why);
    median = all_cold.empty() ? 0 : all_cold.quantile(0.5);
    return report;
}

}  // namespace rehearse::cli
