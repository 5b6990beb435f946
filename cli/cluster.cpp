// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "cli/cluster_options.hpp"
#include "cli/cluster_picture.hpp"
#include "cli/cluster_report.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "cluster/predict.hpp"
#include "cluster/report.hpp"
#include "cluster/workloads.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/models.hpp"
#include "picture/write.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

using Points = std::map<std::string, std::vector<cluster::SpeedPoint>>;

// What a job asks for is predicted; between other numbers of devices speeds are interpolated.
Points predicted_points(const ClusterOptions& options, const std::set<std::string>& names,
                        const std::vector<cluster::Job>& jobs, std::int64_t most_devices) {
    const Machine machine = models::load_machine(options.machine);
    if (const std::int64_t all = device_count(machine); options.devices > all)
        throw InputError(fmt::format("--devices {}: {} has only {}", options.devices, machine.name, all));
    std::set<std::int64_t> wanted;
    for (const cluster::Job& job : jobs) {
        if (job.devices <= most_devices) wanted.insert(job.devices);
    }
    const schedule::Plan plan = schedule::parse_plan(options.job.plan);
    Points points;
    for (const std::string& name : names) {
        talk(options.common, fmt::format("predicting {} on 1 to {} devices of {}", name, most_devices, machine.name));
        const Network network = load_network(name, options.job.fuse, options.job.import);
        points[name] = cluster::predicted_points(network, machine, plan, job_for(options.job, 1), most_devices,
                                                 options.most_per_device, wanted);
    }
    return points;
}

/// Of all models, and as CSV where that is asked for.
cluster::SpeedTable table_of(const ClusterOptions& options, const Points& points) {
    std::string csv = "model,devices,batch_per_device,step_s\n";
    cluster::SpeedTable table;
    for (const auto& [name, each] : points) {
        for (const cluster::SpeedPoint& p : each) {
            csv += fmt::format("{},{},{},{}\n", name, p.devices, p.batch_per_device, p.step.value);
        }
        table.emplace(name, cluster::Speeds(each));
    }
    if (!options.save_speeds.empty()) replace_file(options.save_speeds, csv);
    return table;
}

struct Study {
    std::vector<cluster::Job> jobs;
    cluster::SpeedTable speeds;
};

/// `launch` is how jobs are run, where they are.
Study study_of(const ClusterOptions& options, const cluster::Launch* launch) {
    Study study;
    std::set<std::string> names;
    std::optional<cluster::Workload> workload;
    std::int64_t most = 1;
    if (options.jobs.empty()) {
        workload = cluster::parse_workload(options.workload);
        names.insert(workload->models.begin(), workload->models.end());
        most = std::min(workload->most, options.devices);
    } else {
        study.jobs = cluster::read_jobs(read_file(options.jobs), options.jobs);
    }
    for (const cluster::Job& job : study.jobs) {
        names.insert(job.model);
        most = std::max(most, std::min(job.most_devices, options.devices));
    }
    if (launch != nullptr) check_even(study.jobs);
    if (launch != nullptr) prepare(*launch);
    if (!options.speeds.empty()) {
        study.speeds = cluster::read_speeds(read_file(options.speeds), options.speeds);
    } else if (options.run.pilot > 0) {
        talk(options.common, fmt::format("measuring speeds by {} steps each", options.run.pilot));
        study.speeds =
            table_of(options, cluster::measured_points(study.jobs, *launch, options.devices, options.run.pilot));
    } else {
        study.speeds = table_of(options, predicted_points(options, names, study.jobs, most));
    }
    if (workload) study.jobs = make_jobs(*workload, study.speeds, options.devices, options.seed);
    if (launch != nullptr) check_even(study.jobs);
    return study;
}

std::string where(const ClusterOptions& options) {
    if (options.run.pilot > 0) return "this host, as measured before";
    return options.speeds.empty() ? options.machine : options.speeds;
}

Report report_of(const ClusterOptions& options, const Study& study) {
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
    report.tables.push_back(
        policies_table(fmt::format("{} jobs on {} devices of {}", study.jobs.size(), options.devices, where(options))));
    report.document["policies"] = report.document["jobs"] = Json::array();
    return report;
}

/// What the starts of jobs cost, measured where the user did not say.
void measure_costs(const ClusterOptions& options, const Study& study, const cluster::Launch& launch,
                   std::vector<cluster::Options>& policies) {
    if (!options.start.empty() && !options.restart.empty()) return;
    talk(options.common, "measuring what it costs to start a job, and to start it again");
    const cluster::Costs costs = measured_costs(study.jobs, launch, options.devices);
    for (cluster::Options& policy : policies) {
        if (options.start.empty()) policy.start = costs.start;
        if (options.restart.empty()) policy.restart = costs.restart;
    }
}

Ran run(const ClusterOptions& options, const Study& study, const cluster::Launch& launch, cluster::Outcome predicted) {
    talk(options.common,
         fmt::format("{}: {} predicted", to_string(predicted.options.policy), to_string(figures(predicted).makespan)));
    cluster::Processes world(study.jobs, launch, std::string{to_string(predicted.options.policy)});
    cluster::Outcome measured = run_policy(study.jobs, study.speeds, predicted.options, world);
    return {std::move(predicted), std::move(measured), world.measured()};
}

void write_pictures(const ClusterOptions& options, const Study& study, const std::vector<cluster::Outcome>& outcomes,
                    const std::vector<Ran>& runs) {
    std::vector<picture::Gantt> gantts;
    std::vector<Timeline> timelines;
    const auto add = [&](const cluster::Outcome& outcome, const std::string& on) {
        gantts.push_back(gantt_of(study.jobs, outcome, on));
        timelines.push_back(timeline(study.jobs, outcome));
    };
    for (const cluster::Outcome& outcome : outcomes) add(outcome, where(options));
    for (const Ran& ran : runs) add(ran.measured, "this host, measured");
    if (!options.gantt.empty()) {
        replace_file(options.gantt, picture::encoded(picture::gantt_picture(gantts), options.gantt));
        talk(options.common, fmt::format("picture: {}", options.gantt));
    }
    if (!options.trace.empty()) {
        trace::write(timelines, options.trace, trace::format_of(options.trace));
        talk(options.common, fmt::format("trace: {}", options.trace));
    }
}

int cluster_of_jobs(ClusterOptions& options) {
    if (options.workload == "help") {
        std::cout << workload_help();
        return good;
    }
    if (options.machine.empty()) options.machine = options.run.folder.empty() ? "summit" : "this-host";
    check(options);
    std::optional<LongWork> work;
    std::optional<cluster::Launch> launch;
    if (!options.run.folder.empty()) launch = launch_of(options.run, options.job, work.emplace(options.common));
    const Study study = study_of(options, launch ? &*launch : nullptr);
    std::vector<cluster::Options> policies;
    for (const std::string& policy : options.policies) policies.push_back(simulated(options, policy));
    if (launch) measure_costs(options, study, *launch, policies);
    Report report = report_of(options, study);
    std::vector<cluster::Outcome> outcomes;
    std::vector<Ran> runs;
    for (const cluster::Options& policy : policies) {
        const cluster::Outcome& outcome = outcomes.emplace_back(simulate(study.jobs, study.speeds, policy));
        add_outcome(report, study.jobs, outcome);
        if (launch && !work->interrupted()) runs.push_back(run(options, study, *launch, outcome));
    }
    if (launch) add_runs(report, study.jobs, runs);
    if (work) work->mark(report);
    print(report, options.common);
    write_pictures(options, study, outcomes, runs);
    return work ? work->exit_code(good) : good;
}

}  // namespace

Run add_cluster(CommandLine& app) {
    const auto options = std::make_shared<ClusterOptions>();
    add_cluster_options(app, *options);
    return [options] { return cluster_of_jobs(*options); };
}

}  // namespace rehearse::cli
