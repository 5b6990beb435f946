// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_nccl.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "cli/json.hpp"
#include "core/collectives/library.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "match/pattern.hpp"
#include "validate/library_fit.hpp"
#include "validate/library_summary.hpp"
#include "validate/library_tables.hpp"

namespace rehearse::cli {

namespace {

using validate::LibraryAnswer;

std::string group_of(const LibraryAnswer& answer) {
    return fmt::format("{}, {} x {}, {}", answer.row.table, answer.row.nodes, answer.row.devices_per_node,
                       validate::word_of(answer.row.kind));
}

Json json_of(const std::string& name, const validate::LibrarySummary& summary) {
    Json json{{"table", name},
              {"rows", summary.rows},
              {"median", summary.errors.median},
              {"p90", summary.errors.p90},
              {"left_out_median", nullptr},
              {"left_out_p90", nullptr},
              {"in_band", summary.in_band}};
    if (summary.left_out) {
        json["left_out_median"] = summary.left_out->median;
        json["left_out_p90"] = summary.left_out->p90;
    }
    if (summary.asymptotic) json["asymptotic"] = *summary.asymptotic;
    if (summary.asymptotic_left_out) json["asymptotic_left_out"] = *summary.asymptotic_left_out;
    return json;
}

Json row_json(const LibraryAnswer& answer, const std::optional<LibraryAnswer>& unseen) {
    const validate::LibraryRow& row = answer.row;
    const std::int64_t ranks = row.nodes * row.devices_per_node;
    return {{"table", group_of(answer)},
            {"version", row.version},
            {"bytes", row.bytes.value},
            {"measured_s", row.time.value},
            {"predicted_s", answer.predicted.time.value},
            {"error", answer.error()},
            {"left_out_s", unseen ? Json(unseen->predicted.time.value) : Json(nullptr)},
            {"low_s", answer.band.low.value},
            {"high_s", answer.band.high.value},
            {"busbw_GBps", validate::bus_bandwidth(row.kind, row.bytes, answer.predicted.time, ranks)},
            {"algorithm", library_algorithm_words[static_cast<std::size_t>(answer.predicted.algorithm)]},
            {"protocol", library_protocol_words[static_cast<std::size_t>(answer.predicted.protocol)]},
            {"provenance", row.provenance}};
}

}  // namespace

Report validate_nccl(const LibraryTableOptions& options, const Progress& progress, double& median) {
    std::vector<validate::LibraryRow> rows =
        options.samples.empty() ? validate::shipped_library_rows()
                                : validate::read_library_rows(read_file(options.samples), options.samples);
    const std::vector<LibraryAnswer> answers = validate::answer(rows);
    const std::vector<std::optional<LibraryAnswer>> unseen = validate::answer_left_out(
        rows, options.samples.empty() ? std::vector<validate::LibraryRow>{} : validate::shipped_library_rows(),
        progress);
    validate::LibraryErrors all;
    std::map<std::string, validate::LibraryErrors> tables;
    std::vector<Json> shown;
    const match::Pattern pattern{options.filter, "--filter"};
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const LibraryAnswer& each = answers[i];
        if (!pattern.is_in(group_of(each))) continue;
        all.add(each, unseen[i]);
        tables[group_of(each)].add(each, unseen[i]);
        if (options.rows) shown.push_back(row_json(each, unseen[i]));
    }
    if (all.empty()) throw InputError(fmt::format("--filter '{}' matches no row", options.filter));
    median = all.summary().errors.median;
    Report report{document("validation", {{"set", "nccl"}, {"samples", options.samples}, {"filter", options.filter}}),
                  {},
                  "docs/collectives-nccl.md says which figures come from which of these tables; left out: by figures "
                  "taken from other machines' rows alone; long: median error of the bus bandwidth from 256 MB on"};
    report.document["tables"] = Json::array({json_of("all", all.summary())});
    for (const auto& [name, errors] : tables) report.document["tables"].push_back(json_of(name, errors.summary()));
    report.tables.push_back({"tables",
                             "",
                             {{"table", "table"},
                              {"rows", "rows", Show::count},
                              {"median", "median", Show::percent},
                              {"p90", "p90", Show::percent},
                              {"asymptotic", "long", Show::percent},
                              {"left_out_median", "left out", Show::percent},
                              {"left_out_p90", "p90", Show::percent},
                              {"asymptotic_left_out", "long", Show::percent},
                              {"in_band", "in band", Show::percent}}});
    if (!options.rows) return report;
    report.document["rows"] = shown;
    report.tables.insert(report.tables.begin(), {"rows",
                                                 "",
                                                 {{"table", "table"},
                                                  {"bytes", "size", Show::bytes},
                                                  {"measured_s", "measured", Show::seconds},
                                                  {"predicted_s", "predicted", Show::seconds},
                                                  {"error", "error", Show::percent},
                                                  {"left_out_s", "left out", Show::seconds},
                                                  {"algorithm", "algorithm"},
                                                  {"protocol", "protocol"}}});
    return report;
}

}  // namespace rehearse::cli
