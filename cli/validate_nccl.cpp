// SPDX-License-Identifier: Apache-2.0
#include "cli/validate_nccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/collectives/library.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "match/pattern.hpp"
#include "validate/library_fit.hpp"
#include "validate/library_tables.hpp"

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;
using validate::LibraryAnswer;

constexpr Bytes long_enough{256e6};  // from here on the bus bandwidth counts as what a table tends to

std::string group_of(const LibraryAnswer& answer) {
    return fmt::format("{}, {} x {}, {}", answer.row.table, answer.row.nodes, answer.row.devices_per_node,
                       validate::word_of(answer.row.kind));
}

double quantile(std::vector<double> values, double share) {
    std::ranges::sort(values);
    return values.empty() ? 0 : values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

struct Errors {
    std::vector<double> all, asymptotic, left_out;
    std::int64_t inside = 0;
    void add(const LibraryAnswer& answer, const std::optional<LibraryAnswer>& unseen) {
        if (unseen) left_out.push_back(std::abs(unseen->error()));
        const double error = std::abs(answer.error());
        all.push_back(error);
        inside += answer.band.contains(answer.row.time) ? 1 : 0;
        if (answer.row.bytes >= long_enough)
            asymptotic.push_back(std::abs(answer.row.time / answer.predicted.time - 1));
    }
    Json json(const std::string& name) const {
        Json json{{"table", name},
                  {"rows", all.size()},
                  {"median", quantile(all, 0.5)},
                  {"p90", quantile(all, 0.9)},
                  {"left_out_median", nullptr},
                  {"left_out_p90", nullptr},
                  {"in_band", static_cast<double>(inside) / static_cast<double>(all.size())}};
        if (!left_out.empty()) {
            json["left_out_median"] = quantile(left_out, 0.5);
            json["left_out_p90"] = quantile(left_out, 0.9);
        }
        if (!asymptotic.empty()) json["asymptotic"] = quantile(asymptotic, 0.5);
        return json;
    }
};

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
    Errors all;
    std::map<std::string, Errors> tables;
    std::vector<Json> shown;
    const match::Pattern pattern{options.filter, "--filter"};
    for (std::size_t i = 0; i < answers.size(); ++i) {
        const LibraryAnswer& each = answers[i];
        if (!pattern.is_in(group_of(each))) continue;
        all.add(each, unseen[i]);
        tables[group_of(each)].add(each, unseen[i]);
        if (options.rows) shown.push_back(row_json(each, unseen[i]));
    }
    if (all.all.empty()) throw InputError(fmt::format("--filter '{}' matches no row", options.filter));
    median = quantile(all.all, 0.5);
    Report report{
        document("validation", {{"set", "nccl"}, {"samples", options.samples}, {"filter", options.filter}}),
        {},
        "docs/collectives-nccl.md says which figures come from which of these tables; left out: by figures "
        "taken from other machines' rows alone; asymptotic: median error of the bus bandwidth from 256 MB on"};
    report.document["tables"] = Json::array({all.json("all")});
    for (const auto& [name, errors] : tables) report.document["tables"].push_back(errors.json(name));
    report.tables.push_back({"tables",
                             "",
                             {{"table", "table"},
                              {"rows", "rows", Show::count},
                              {"median", "median", Show::percent},
                              {"p90", "p90", Show::percent},
                              {"left_out_median", "left out", Show::percent},
                              {"left_out_p90", "p90", Show::percent},
                              {"asymptotic", "asymptotic", Show::percent},
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
