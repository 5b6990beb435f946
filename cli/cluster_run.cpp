// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_run.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <tuple>

#include "cli/cluster_report.hpp"
#include "cli/command_line.hpp"
#include "cli/json.hpp"
#include "cluster/report.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::cli {

namespace {

/// How far the prediction is off, as a share of what was measured; null where nothing was.
Json error_of(double predicted, double measured) { return measured > 0 ? Json(predicted / measured - 1) : Json{}; }

Json row_of(const Ran& ran) {
    const cluster::Figures predicted = figures(ran.predicted), measured = figures(ran.measured);
    return {
        {"policy", to_string(ran.measured.options.policy)},
        {"complete", measured.complete},
        {"predicted_makespan_s", predicted.makespan.value},
        {"makespan_s", measured.makespan.value},
        {"makespan_error", error_of(predicted.makespan.value, measured.makespan.value)},
        {"predicted_mean_completion_s", seconds_or_null(predicted.complete, predicted.mean_completion)},
        {"mean_completion_s", seconds_or_null(measured.complete, measured.mean_completion)},
        {"mean_completion_error",
         predicted.complete > 0 ? error_of(predicted.mean_completion.value, measured.mean_completion.value) : Json{}},
        {"utilisation", measured.utilisation},
        {"predicted_restarts", predicted.restarts},
        {"restarts", measured.restarts},
        {"decisions", ran.measured.decisions},
        {"start_s", ran.measured.options.start.value},
        {"restart_s", ran.measured.options.restart.value}};
}

/// Steps of one share, of all jobs of a model: seconds in all, as its mean steps are.
struct Steps {
    double steps = 0, seconds = 0, samples_per_s = 0;
};

Json speeds_of(const std::vector<cluster::Job>& jobs, const std::vector<Ran>& runs) {
    std::map<std::tuple<std::string, std::int64_t, std::int64_t>, Steps> all;
    for (const Ran& ran : runs) {
        for (const cluster::Measured& span : ran.spans) {
            const std::string& model = jobs[static_cast<std::size_t>(span.job)].model;
            Steps& steps = all[{model, span.share.devices, span.share.batch}];
            steps.steps += static_cast<double>(span.steps);
            steps.seconds += static_cast<double>(span.steps) * span.step.value;
            steps.samples_per_s = span.share.samples_per_s;
        }
    }
    Json rows = Json::array();
    for (const auto& [share, steps] : all) {
        const auto& [model, devices, batch] = share;
        const double measured = static_cast<double>(batch) * steps.steps / steps.seconds;
        rows.push_back({{"model", model},
                        {"devices", devices},
                        {"global_batch", batch},
                        {"steps", steps.steps},
                        {"predicted_samples_per_s", steps.samples_per_s},
                        {"samples_per_s", measured},
                        {"error", error_of(steps.samples_per_s, measured)}});
    }
    return rows;
}

}  // namespace

void add_cluster_run(CommandLine& app, ClusterRun& run) {
    app.add_option("--run", run.folder,
                   "train the jobs on this host's cores, scheduled live; this folder (new, or empty) keeps their "
                   "checkpoints and logs")
        ->option_text("FOLDER");
    app.add_option("--launcher", run.launcher,
                   "with --run: what starts ranks; {ranks} is how many, {devices} which (0,2), {job} the job's folder")
        ->option_text("COMMAND")
        ->capture_default_str();
    app.add_option("--pilot", run.pilot,
                   "with --run: measure each model's speeds by so many steps before, instead of predicting them")
        ->option_text("STEPS");
    app.add_option("--run-options", run.options, "with --run: more options of `rehearse run`, for all jobs")
        ->option_text("OPTIONS");
}

void check(const ClusterRun& run, bool has_jobs, bool has_speeds) {
    if (run.folder.empty()) {
        if (run.pilot > 0) throw InputError("--pilot: with --run FOLDER");
        return;
    }
    if (run.pilot > 0 && !has_jobs) throw InputError("--pilot: with --jobs, as a workload's jobs are made of speeds");
    if (run.pilot > 0 && has_speeds) throw InputError("--pilot and --speeds: one of them says how fast models are");
}

cluster::Launch launch_of(const ClusterRun& run, const JobOptions& job, const LongWork& work) {
    cluster::Launch launch{.folder = run.folder, .launcher = run.launcher, .program = {}, .options = {}};
    launch.program = std::filesystem::read_symlink("/proc/self/exe").string();
    launch.pins = run.launcher.find("{devices}") == std::string::npos;
    launch.is_over = [&work] { return work.interrupted(); };
    launch.options = {"--plan",      job.plan,
                      "--precision", std::string{to_string(job.precision)},
                      "--optimizer", std::string{to_string(job.optimizer)},
                      "--fuse",      job.fuse};
    for (const std::string_view word : split(run.options, ' ')) {
        if (!word.empty()) launch.options.emplace_back(word);
    }
    return launch;
}

void add_runs(Report& report, const std::vector<cluster::Job>& jobs, const std::vector<Ran>& runs) {
    Json rows = Json::array();
    for (const Ran& ran : runs) rows.push_back(row_of(ran));
    report.document["runs"] = rows;
    report.document["run_speeds"] = speeds_of(jobs, runs);
    report.tables.push_back({"runs",
                             "run on this host, predicted and measured",
                             {{"policy", "policy"},
                              {"complete", "complete", Show::count},
                              {"predicted_makespan_s", "predicted makespan", Show::seconds},
                              {"makespan_s", "measured", Show::seconds},
                              {"makespan_error", "error", Show::percent},
                              {"predicted_mean_completion_s", "predicted mean completion", Show::seconds, true},
                              {"mean_completion_s", "measured", Show::seconds},
                              {"mean_completion_error", "error", Show::percent},
                              {"utilisation", "in use", Show::percent},
                              {"predicted_restarts", "predicted restarts", Show::count, true},
                              {"restarts", "measured", Show::count},
                              {"decisions", "decisions", Show::count},
                              {"start_s", "a start", Show::seconds},
                              {"restart_s", "a restart", Show::seconds}}});
    report.tables.push_back({"run_speeds",
                             "speeds, predicted and measured",
                             {{"model", "model"},
                              {"devices", "devices", Show::count},
                              {"global_batch", "batch", Show::count},
                              {"steps", "steps", Show::count},
                              {"predicted_samples_per_s", "predicted samples/s", Show::number},
                              {"samples_per_s", "measured", Show::number},
                              {"error", "error", Show::percent}}});
}

}  // namespace rehearse::cli
