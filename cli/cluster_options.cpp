// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster_options.hpp"

#include <fmt/format.h>

#include <set>

#include "cli/choice.hpp"
#include "cli/command_line.hpp"
#include "cluster/workloads.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "picture/write.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

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
    const auto time = quantity_of<Seconds>(option, text);
    if (time.value < 0) throw InputError(fmt::format("{} {}: not below 0", option, text));
    return time;
}

void add_files(CommandLine& app, ClusterOptions& options) {
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

std::string workload_help() {
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

cluster::Options simulated(const ClusterOptions& options, const std::string& policy) {
    cluster::Options simulated{.policy = policy_of(policy), .devices = options.devices};
    simulated.interval = time_of("--interval", options.interval);
    simulated.start = time_of("--start", options.start.empty() ? "0s" : options.start);
    simulated.restart = time_of("--restart", options.restart.empty() ? "30s" : options.restart);
    simulated.even = !options.run.folder.empty();
    simulated.queue = !options.drop;
    if (!options.end.empty()) simulated.end = time_of("--end", options.end);
    return simulated;
}

void check(const ClusterOptions& options) {
    if (options.jobs.empty() == options.workload.empty()) {
        throw InputError("cluster: give --jobs FILE.csv or --workload WORKLOAD (--workload help lists them)");
    }
    if (options.devices < 1) throw InputError(fmt::format("--devices {}: at least 1", options.devices));
    if (options.most_per_device < 1)
        throw InputError(fmt::format("--most-batch {}: at least 1", options.most_per_device));
    std::set<std::string> policies;
    for (const std::string& policy : options.policies) {
        simulated(options, policy);
        if (!policies.insert(policy).second) throw InputError(fmt::format("--policy: '{}' stands twice", policy));
    }
    check(options.run, !options.jobs.empty(), !options.speeds.empty());
    for (const std::string* file : {&options.save_speeds, &options.gantt, &options.trace}) {
        check_writable(*file, options.common);
    }
    if (!options.gantt.empty()) picture::check_suffix(options.gantt);
    if (!options.trace.empty()) trace::format_of(options.trace);
}

void add_cluster_options(CommandLine& app, ClusterOptions& options) {
    add_job(app, options.job);
    for (const char* option : {"--model", "--batch", "--global-batch"}) app.remove_option(option);
    app.add_option("--machine", options.machine,
                   "a machine by name (rehearse machines) or a .toml file; with --run: this-host, unless given")
        ->option_text("NAME|FILE.toml")
        ->default_str("summit");
    app.add_option("--devices", options.devices, "of the cluster")->option_text("N")->capture_default_str();
    app.add_option("--most-batch", options.most_per_device, "samples a device that are predicted, at most")
        ->option_text("N")
        ->capture_default_str();
    add_files(app, options);
    app.add_option("--policy", options.policies, "fifo, fixed-batch (devices follow the load), elastic (batches too)")
        ->delimiter(',')
        ->option_text("NAME[,NAME...]")
        ->capture_default_str();
    app.add_option("--interval", options.interval, "between decisions; 0s: whenever a job comes or goes")
        ->option_text("TIME")
        ->capture_default_str();
    app.add_option("--restart", options.restart,
                   "what a job loses when its share changes; with --run: measured, unless given")
        ->option_text("TIME")
        ->default_str("30s");
    app.add_option("--start", options.start, "what a job loses when it begins; with --run: measured, unless given")
        ->option_text("TIME")
        ->default_str("0s");
    app.add_option("--end", options.end, "of the simulation")->option_text("TIME");
    app.add_flag("--drop", options.drop, "turn away who does not get devices at the first decision: no queue");
    app.add_option("--seed", options.seed, "of the made-up jobs")->option_text("N")->capture_default_str();
    add_cluster_run(app, options.run);
    add_common(app, options.common);
}

}  // namespace rehearse::cli
