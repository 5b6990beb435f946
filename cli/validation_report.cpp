// SPDX-License-Identifier: Apache-2.0
#include "cli/validation_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "cli/json.hpp"
#include "prices/interval.hpp"

namespace rehearse::cli {

namespace {

using calibrate::Judged;

Json summary_of(const std::vector<Judged>& rows) {
    const calibrate::ErrorSummary s = calibrate::summarize(rows);
    return {{"rows", s.rows}, {"median_error", s.median}, {"p90_error", s.p90}, {"in_band", s.in_band}};
}

Json groups_of(const std::vector<JudgedRow>& rows) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<Judged>> members;
    std::map<std::string, const JudgedRow*> first;
    for (const JudgedRow& row : rows) {
        const std::string name = row.group();
        if (first.emplace(name, &row).second) order.push_back(name);
        members[name].push_back(row.judged);
    }
    Json groups = Json::array();
    for (const std::string& name : order) {
        const JudgedRow& row = *first[name];
        Json group = {{"set", "deepbench"},
                      {"device", row.device},
                      {"precision", row.precision},
                      {"kind", row.kind},
                      {"pass", row.pass}};
        group.update(summary_of(members[name]));
        groups.push_back(group);
    }
    return groups;
}

Json rows_of(const std::vector<JudgedRow>& rows) {
    Json list = Json::array();
    for (const JudgedRow& row : rows) {
        const KernelPrice& price = row.judged.predicted;
        const double time = std::exp(price.log_time);
        const auto [low, high] = prices::around(time, prices::log_reach(price.deviation));
        list.push_back({{"id", fmt::format("{} {}", row.device, to_string(row.judged.problem))},
                        {"published", row.judged.measured.value},
                        {"predicted", time},
                        {"error", calibrate::error_of(row.judged)},
                        {"low", low},
                        {"high", high},
                        {"anchor", row.fitted},
                        {"source", row.source}});
    }
    return list;
}

}  // namespace

std::string JudgedRow::group() const { return fmt::format("{} {} {} {}", device, precision, kind, pass); }

std::vector<Judged> judged(const std::vector<JudgedRow>& rows, const std::function<bool(const JudgedRow&)>& wanted) {
    std::vector<Judged> some;
    for (const JudgedRow& row : rows) {
        if (wanted(row)) some.push_back(row.judged);
    }
    return some;
}

Report report_of(const Validation& validation, Json configuration) {
    Report report{document("validation", std::move(configuration)), {}, validation.footer};
    report.document["groups"] = groups_of(validation.rows);
    Json& summary = report.document["summary"] = Json::object();
    const auto add = [&](const char* name, const std::function<bool(const JudgedRow&)>& wanted) {
        const std::vector<Judged> some = judged(validation.rows, wanted);
        if (some.empty()) return;
        summary[name] = summary_of(some);
        const calibrate::ErrorSummary s = calibrate::summarize(some);
        report.footer += fmt::format("\n{}: {} rows, error {:.1f} % median, {:.1f} % p90; {:.0f} % in their band", name,
                                     s.rows, 100 * s.median, 100 * s.p90, 100 * s.in_band);
    };
    add("conv2d", [](const JudgedRow& row) { return row.kind == "conv2d"; });
    add("matmul", [](const JudgedRow& row) { return row.kind == "matmul"; });
    add("recurrent", [](const JudgedRow& row) { return row.kind == "recurrent"; });
    add("anchored", [](const JudgedRow& row) { return row.fitted; });
    add("cold", [](const JudgedRow& row) { return !row.fitted; });
    report.document["rows"] = rows_of(validation.rows);
    for (const Json& row : validation.skipped) report.document["rows"].push_back(row);
    report.tables = {{"groups",
                      "error = |predicted - measured| / measured; the band should hold 90 %",
                      {{"device", "device"},
                       {"precision", "type"},
                       {"kind", "kind"},
                       {"pass", "pass"},
                       {"rows", "rows", Show::count},
                       {"median_error", "median", Show::percent},
                       {"p90_error", "p90", Show::percent},
                       {"in_band", "in band", Show::percent}}}};
    return report;
}

}  // namespace rehearse::cli
