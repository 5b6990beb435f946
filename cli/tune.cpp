// SPDX-License-Identifier: Apache-2.0
// Tuning from the command line: what is missing, or everything; and lists of what is kept.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <ctime>
#include <set>

#include "cli/command.hpp"
#include "cli/json.hpp"
#include "cli/progress.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"
#include "kernels/threads.hpp"
#include "models/models.hpp"

namespace rehearse::cli {

namespace {

using kernels::tuned::Winner;

Json row_of(const Winner& w) {
    return {{"problem", w.problem},
            {"backend", w.backend},
            {"algorithm", w.algorithm},
            {"threads", w.threads},
            {"median_s", w.median.value},
            {"runner_up_s", w.runner_up.value},
            {"scratch_bytes", w.scratch.value},
            {"scratch_limit_bytes", w.scratch_limit.value},
            {"tried", w.tried},
            {"date", w.date}};
}

Report report_of(const Json& rows, bool of_all_hosts) {
    const std::string fingerprint = kernels::tuned::fingerprint(kernels::threads_now());
    Report report{document("tuned", Json::object()), {}, ""};
    report.document["file"] = models::tuned_path();
    report.document["fingerprint"] = fingerprint;
    report.document["rows"] = rows;
    std::vector<Column> columns{{"problem", "problem"},
                                {"backend", "backend"},
                                {"algorithm", "algorithm"},
                                {"median_s", "time", Show::seconds},
                                {"runner_up_s", "next best", Show::seconds},
                                {"scratch_bytes", "scratch", Show::bytes},
                                {"tried", "tried", Show::count},
                                {"date", "date"}};
    if (of_all_hosts) columns.push_back({"here", "here"});
    report.tables = {{"rows", "", columns}};
    report.footer = fmt::format("kept in {}\nthis host: {}", models::tuned_path(), fingerprint);
    return report;
}

std::string operator_of(const Problem& p) { return to_string(Problem{p.op, Pass::forward, p.batch, p.type}); }

void require_store() {
    if (!kernels::tuned::absent().empty()) {
        throw BackendError(fmt::format("tuned kernels are not kept: {}", kernels::tuned::absent()));
    }
}

void keep(const std::vector<Winner>& winners) {
    kernels::tuned::save(models::tuned_path(), kernels::tuned::fingerprint(kernels::threads_now()), winners);
}

void complete(bench::TuneOptions& options, const Common& common) {
    options.date = today();
    options.say = [&common](std::string_view text) { talk(common, text); };
}

}  // namespace

std::string today() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::array<char, 16> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%d", std::gmtime(&now));
    return text.data();
}

kernels::Choices tune_missing(const std::vector<calibrate::Needed>& problems, bench::TuneOptions options, Tune tune,
                              const Common& common) {
    kernels::Choices choices = tuned_for_all(options.scratch_limit, common);
    if (!kernels::tuned::absent().empty()) return choices;
    // All passes of an operator of which one is missing: some are decided together.
    std::set<std::string> operators;
    for (const calibrate::Needed& each : problems) {
        if (tune == Tune::again || !choices.contains(to_string(each.problem)))
            operators.insert(operator_of(each.problem));
    }
    std::vector<calibrate::Needed> missing;
    for (const calibrate::Needed& each : problems) {
        if (operators.contains(operator_of(each.problem))) missing.push_back(each);
    }
    complete(options, common);
    const std::vector<Winner> winners = bench::tune(missing, options);
    if (options.team.rank == 0) {
        keep(winners);
        if (!winners.empty()) {
            talk(common, fmt::format("tuned {} problems, kept in {}", winners.size(), models::tuned_path()));
        }
    }
    for (auto& [problem, choice] : kernels::tuned::choices(winners, options.scratch_limit)) choices[problem] = choice;
    return choices;
}

int tune_and_list(const std::vector<calibrate::Needed>& problems, bench::TuneOptions options, const Common& common) {
    require_store();
    check_writable(common.output, common);
    kernels::choose_threads();
    kernels::tuned::stored(models::tuned_path());  // a damaged file is said before the work
    complete(options, common);
    const LongWork work{common};
    options.checking = work.part("checking operators");
    options.timing = work.part("tuning");
    const std::vector<Winner> winners = bench::tune(problems, options);
    keep(winners);
    Json rows = Json::array();
    for (const Winner& winner : winners) rows.push_back(row_of(winner));
    Report report = report_of(rows, false);
    work.mark(report);
    print(report, common);
    return work.exit_code(good);
}

int list_tuned(const Common& common) {
    require_store();
    kernels::choose_threads();
    const std::string here = kernels::tuned::fingerprint(kernels::threads_now());
    Json rows = Json::array();
    for (const kernels::tuned::Stored& each : kernels::tuned::stored(models::tuned_path())) {
        rows.push_back(row_of(each.winner));
        rows.back()["here"] = each.fingerprint == here ? "yes" : "no";
        rows.back()["fingerprint"] = each.fingerprint;
    }
    print(report_of(rows, true), common);
    return good;
}

}  // namespace rehearse::cli
