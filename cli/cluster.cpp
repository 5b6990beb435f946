// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <set>

#include "cli/cluster_picture.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/job.hpp"
#include "cli/report.hpp"
#include "cluster/predict.hpp"
#include "cluster/report.hpp"
#include "cluster/workloads.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/text.hpp"
#include "models/models.hpp"
#include "picture/write.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
    Common common;
    JobOptions job;
    std::string machine = "summit";
    std::int64_t devices = 16, most_per_device = 256;
    std::string jobs, workload, speeds, save_speeds, gantt, trace;
    std::vector<std::string> policies{"fifo", "fixed-batch", "elastic"};
    std::string interval = "0s", restart = "30s", end;
    bool drop = false;
    std::uint64_t seed = 1;
};

std::string help() {
    std::string text = "A workload is KIND:OPTION=VALUE[:OPTION=VALUE...].\n";
    const auto add = [&](std::span<const cluster::WorkloadWord> words) {
        for (const cluster::WorkloadWord& word : words) {
            text += fmt::format("  {:<12} {:<16} {}\n", word.name, word.values, word.summary);
        }
    };
    add(cluster::workload_kinds());
    text += "Options:\n";
    add(cluster::workload_options());
    return text;
}

cluster::Policy policy_of(const std::string& name) {
    std::vector<std::string_view> known;
    for (const cluster::Policy policy : cluster::policies()) {
        if (to_string(policy) == name) return policy;
        known.push_back(to_string(policy));
    }
    throw InputError(
        fmt::format("--policy: unknown policy '{}'{}; there are {}", name, did_you_mean(name, known), join(known)));
}

Seconds time_of(const char* option, const std::string& text) {
    const auto time = parse_quantity<Seconds>(text);
    if (time.value < 0) throw InputError(fmt::format("{} {}: not below 0", option, text));
    return time;
}

cluster::Options simulated(const Options& options, const std::string& policy) {
    cluster::Options simulated{.policy = policy_of(policy), .devices = options.devices};
    simulated.interval = time_of("--interval", options.interval);
    simulated.restart = time_of("--restart", options.restart);
    simulated.queue = !options.drop;
    if (!options.end.empty()) simulated.end = time_of("--end", options.end);
    return simulated;
}

void check(const Options& options) {
    if (options.jobs.empty() == options.workload.empty()) {
        throw InputError("cluster: give --jobs FILE.csv or --workload WORKLOAD (--workload help lists them)");
    }
    if (options.devices < 1) throw InputError(fmt::format("--devices {}: at least 1", options.devices));
    if (options.most_per_device < 1)
        throw InputError(fmt::format("--most-batch {}: at least 1", options.most_per_device));
    for (const std::string& policy : options.policies) simulated(options, policy);
    for (const std::string* file : {&options.save_speeds, &options.gantt, &options.trace}) {
        check_writable(*file, options.common);
    }
    if (!options.gantt.empty()) picture::check_suffix(options.gantt);
    if (!options.trace.empty()) trace::format_of(options.trace);
}

/// Of all models, from the file or by simulating steps; the latter as CSV, too.
cluster::SpeedTable speeds_of(const Options& options, const std::set<std::string>& names, std::int64_t most_devices) {
    if (!options.speeds.empty()) return cluster::read_speeds(read_file(options.speeds), options.speeds);
    const Machine machine = models::load_machine(options.machine);
    const schedule::Plan plan = schedule::parse_plan(options.job.plan);
    std::string csv = "model,devices,batch_per_device,step_s\n";
    cluster::SpeedTable table;
    for (const std::string& name : names) {
        talk(options.common, fmt::format("predicting {} on 1 to {} devices of {}", name, most_devices, machine.name));
        const Network network = load_network(name, options.job.fuse, options.job.import);
        const auto points = cluster::predicted_points(network, machine, plan, job_for(options.job, 1), most_devices,
                                                      options.most_per_device);
        for (const cluster::SpeedPoint& p : points) {
            csv += fmt::format("{},{},{},{}\n", name, p.devices, p.batch_per_device, p.step.value);
        }
        table.emplace(name, cluster::Speeds(points));
    }
    if (!options.save_speeds.empty()) replace_file(options.save_speeds, csv);
    return table;
}

struct Study {
    std::vector<cluster::Job> jobs;
    cluster::SpeedTable speeds;
};

Study study_of(const Options& options) {
    Study study;
    std::set<std::string> names;
    std::int64_t most = 1;
    if (!options.jobs.empty()) {
        study.jobs = cluster::read_jobs(read_file(options.jobs), options.jobs);
        for (const cluster::Job& job : study.jobs) {
            names.insert(job.model);
            most = std::max(most, std::min(job.most_devices, options.devices));
        }
        study.speeds = speeds_of(options, names, most);
        return study;
    }
    const cluster::Workload workload = cluster::parse_workload(options.workload);
    names.insert(workload.models.begin(), workload.models.end());
    study.speeds = speeds_of(options, names, std::min(workload.most, options.devices));
    study.jobs = make_jobs(workload, study.speeds, options.devices, options.seed);
    return study;
}

Json row_of(const cluster::Outcome& outcome) {
    const cluster::Figures f = figures(outcome);
    return {{"policy", to_string(outcome.options.policy)},
            {"complete", f.complete},
            {"turned_away", f.turned_away},
            {"unfinished", f.unfinished},
            {"mean_completion_s", f.mean_completion.value},
            {"p95_completion_s", f.p95_completion.value},
            {"mean_wait_s", f.mean_wait.value},
            {"makespan_s", f.makespan.value},
            {"utilisation", f.utilisation},
            {"restarts", f.restarts},
            {"decisions", outcome.decisions}};
}

Json jobs_of(const Study& study, const cluster::Outcome& outcome) {
    Json list = Json::array();
    for (std::size_t j = 0; j < study.jobs.size(); ++j) {
        const cluster::JobResult& result = outcome.jobs[j];
        Json json{{"policy", to_string(outcome.options.policy)},
                  {"job", study.jobs[j].name},
                  {"model", study.jobs[j].model},
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

Report report_of(const Options& options, const Study& study) {
    Json config = configuration(options.job);
    for (const char* key : {"model", "batch"}) config.erase(key);
    config.update({{"machine", options.machine},
                   {"devices", options.devices},
                   {"jobs", options.jobs},
                   {"workload", options.workload},
                   {"speeds", options.speeds},
                   {"seed", options.seed},
                   {"interval", options.interval},
                   {"restart", options.restart},
                   {"drop", options.drop}});
    Report report{document("cluster", config), {}, ""};
    report.tables.push_back({"policies",
                             fmt::format("{} jobs on {} devices of {}", study.jobs.size(), options.devices,
                                         options.speeds.empty() ? options.machine : options.speeds),
                             {{"policy", "policy"},
                              {"complete", "complete", Show::count},
                              {"turned_away", "turned away", Show::count},
                              {"unfinished", "unfinished", Show::count},
                              {"mean_completion_s", "mean completion", Show::seconds},
                              {"p95_completion_s", "95 %", Show::seconds},
                              {"mean_wait_s", "mean wait", Show::seconds},
                              {"makespan_s", "makespan", Show::seconds},
                              {"utilisation", "in use", Show::percent},
                              {"restarts", "restarts", Show::count}}});
    report.document["policies"] = report.document["jobs"] = Json::array();
    return report;
}

int cluster_of_jobs(const Options& options) {
    if (options.workload == "help") {
        std::cout << help();
        return good;
    }
    check(options);
    const Study study = study_of(options);
    Report report = report_of(options, study);
    std::vector<picture::Gantt> gantts;
    std::vector<Timeline> timelines;
    for (const std::string& policy : options.policies) {
        const cluster::Outcome outcome = simulate(study.jobs, study.speeds, simulated(options, policy));
        report.document["policies"].push_back(row_of(outcome));
        for (const Json& job : jobs_of(study, outcome)) report.document["jobs"].push_back(job);
        gantts.push_back(gantt_of(study.jobs, outcome, options.speeds.empty() ? options.machine : options.speeds));
        timelines.push_back(timeline(study.jobs, outcome));
    }
    print(report, options.common);
    if (!options.gantt.empty()) {
        replace_file(options.gantt, picture::encoded(picture::gantt_picture(gantts), options.gantt));
        talk(options.common, fmt::format("picture: {}", options.gantt));
    }
    if (!options.trace.empty()) {
        trace::write(timelines, options.trace, trace::format_of(options.trace));
        talk(options.common, fmt::format("trace: {}", options.trace));
    }
    return good;
}

void add_files(CommandLine& app, Options& options) {
    app.add_option("--jobs", options.jobs, "a table of jobs (docs/systems/cluster.md)")->option_text("FILE.csv");
    app.add_option("--workload", options.workload, "jobs that are made up; --workload help lists the words")
        ->option_text("WORKLOAD");
    app.add_option("--speeds", options.speeds, "step times by devices and batch, instead of predicting them")
        ->option_text("FILE.csv");
    app.add_option("--save-speeds", options.save_speeds, "write the predicted ones")->option_text("FILE.csv");
    app.add_option("--gantt", options.gantt, "draw who has which devices when (.svg, .png or .pdf)")
        ->option_text("FILE");
    app.add_option("--trace", options.trace, "the same as timelines (.pftrace, .json or .csv)")->option_text("FILE");
}

}  // namespace

Run add_cluster(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    add_job(app, options->job);
    for (const char* option : {"--model", "--batch", "--global-batch"}) app.remove_option(option);
    app.add_option("--machine", options->machine, "a machine by name (rehearse machines) or a .toml file")
        ->option_text("NAME|FILE.toml")
        ->capture_default_str();
    app.add_option("--devices", options->devices, "of the cluster")->option_text("N")->capture_default_str();
    app.add_option("--most-batch", options->most_per_device, "samples a device that are predicted, at most")
        ->option_text("N")
        ->capture_default_str();
    add_files(app, *options);
    app.add_option("--policy", options->policies, "fifo, fixed-batch (devices follow the load), elastic (batches too)")
        ->delimiter(',')
        ->option_text("NAME[,NAME...]")
        ->capture_default_str();
    app.add_option("--interval", options->interval, "between decisions; 0s: whenever a job comes or goes")
        ->option_text("TIME")
        ->capture_default_str();
    app.add_option("--restart", options->restart, "what a job loses when its share changes")
        ->option_text("TIME")
        ->capture_default_str();
    app.add_option("--end", options->end, "of the simulation")->option_text("TIME");
    app.add_flag("--drop", options->drop, "turn away who does not get devices at the first decision: no queue");
    app.add_option("--seed", options->seed, "of the made-up jobs")->option_text("N")->capture_default_str();
    add_common(app, options->common);
    return [options] { return cluster_of_jobs(*options); };
}

}  // namespace rehearse::cli
