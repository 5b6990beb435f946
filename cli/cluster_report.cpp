// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_report.hpp"

#include "cli/json.hpp"
#include "cluster/report.hpp"

namespace rehearse::cli {

namespace {

Json row_of(const cluster::Outcome& outcome) {
    const cluster::Figures f = figures(outcome);
    return {{"policy", to_string(outcome.options.policy)},
            {"complete", f.complete},
            {"turned_away", f.turned_away},
            {"unfinished", f.unfinished},
            {"mean_completion_s", seconds_or_null(f.complete, f.mean_completion)},
            {"p95_completion_s", seconds_or_null(f.complete, f.p95_completion)},
            {"mean_wait_s", seconds_or_null(f.started, f.mean_wait)},
            {"makespan_s", f.makespan.value},
            {"utilisation", f.utilisation},
            {"restarts", f.restarts},
            {"decisions", outcome.decisions}};
}

Json jobs_of(const std::vector<cluster::Job>& jobs, const cluster::Outcome& outcome) {
    Json list = Json::array();
    for (std::size_t j = 0; j < jobs.size(); ++j) {
        const cluster::JobResult& result = outcome.jobs[j];
        Json json{{"policy", to_string(outcome.options.policy)},
                  {"job", jobs[j].name},
                  {"model", jobs[j].model},
                  {"ready_s", result.ready.value},
                  {"turned_away", result.turned_away},
                  {"restarts", result.restarts},
                  {"samples", result.trained}};
        if (result.start) json["start_s"] = result.start->value;
        if (result.end) json["end_s"] = result.end->value;
        list.push_back(json);
    }
    return list;
}

}  // namespace

Json seconds_or_null(std::int64_t jobs, Seconds value) { return jobs > 0 ? Json(value.value) : Json{}; }

Table policies_table(const std::string& title) {
    return {"policies",
            title,
            {{"policy", "policy"},
             {"complete", "complete", Show::count},
             {"turned_away", "turned away", Show::count},
             {"unfinished", "unfinished", Show::count},
             {"mean_completion_s", "mean completion", Show::seconds},
             {"p95_completion_s", "95 %", Show::seconds},
             {"mean_wait_s", "mean wait", Show::seconds},
             {"makespan_s", "makespan", Show::seconds},
             {"utilisation", "in use", Show::percent},
             {"restarts", "restarts", Show::count}}};
}

void add_outcome(Report& report, const std::vector<cluster::Job>& jobs, const cluster::Outcome& outcome) {
    report.document["policies"].push_back(row_of(outcome));
    for (const Json& job : jobs_of(jobs, outcome)) report.document["jobs"].push_back(job);
}

}  // namespace rehearse::cli
