// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/conditions.hpp"
#include "cli/job.hpp"
#include "cli/learner_options.hpp"
#include "cli/predict_tables.hpp"
#include "cli/report.hpp"
#include "cli/training.hpp"
#include "core/dependencies.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/models.hpp"
#include "picture/scaling.hpp"
#include "picture/write.hpp"
#include "schedule/memory.hpp"
#include "schedule/remedies.hpp"
#include "sim/band.hpp"
#include "sim/choose.hpp"
#include "sim/learners.hpp"
#include "sim/simulator.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
    Common common;
    JobOptions job;
    Conditions conditions;
    std::string machine = "summit";
    std::vector<std::int64_t> devices{1};
    sim::Mode mode = sim::Mode::automatic;
    int steps = 1;
    std::optional<std::int64_t> baseline;
    TrainingOptions training;
    std::string trace, plot;
    bool first_idle = false;
    std::vector<double> learner_paces;
    bool explain = false, memory = false, links = false, no_band = false, progress = false;
};

double wall_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Of as many steps as were simulated: when the quorum of the groups are through, and when all are.
void add_epoch(Json& json, const Schedule& schedule, const Timeline& timeline) {
    std::map<std::int64_t, double> through;  // by group
    for (const Event& event : timeline.events) {
        if (event.rank >= ranks(schedule.mesh)) continue;
        double& end = through[event.rank];
        end = std::max(end, event.end.value);
    }
    std::vector<double> ends;
    for (const auto& [rank, end] : through) ends.push_back(end);
    std::ranges::sort(ends);
    const auto waited = static_cast<std::size_t>(std::ceil(schedule.servers.quorum * static_cast<double>(ends.size())));
    json["quorum_through_s"] = ends.at(std::max<std::size_t>(waited, 1) - 1);
    json["all_through_s"] = ends.back();
}

// Learners of a device that are not equally fast: its pace is that of the last of them.
void slow_down(sim::Options& simulated, const Options& options, const Schedule& schedule) {
    const Averaging& averaging = schedule.averaging;
    if (options.learner_paces.empty() && !options.first_idle) return;
    if (averaging.learners == 1) {
        throw InputError(
            fmt::format("--assign and --learner-paces: of several learners, as in --plan data:learners=2; "
                        "plan '{}' has none",
                        options.job.plan));
    }
    if (options.learner_paces.empty()) return;
    if (static_cast<int>(options.learner_paces.size()) != averaging.learners) {
        throw InputError(fmt::format("--learner-paces: {} given, but a device has {} learners",
                                     options.learner_paces.size(), averaging.learners));
    }
    const double pace = sim::pace_of_learners(options.learner_paces, averaging.period, options.first_idle);
    simulated.pace.resize(static_cast<std::size_t>(ranks(schedule.mesh)), 1);
    for (double& each : simulated.pace) each *= pace;
}

Predicted predicted(const Options& options, const Network& network, const Machine& given, std::int64_t devices) {
    const std::optional<Served> served =
        with_data_servers(given, options.conditions, network, devices, options.training.dataset);
    Machine machine = served ? served->machine : given;
    const Conditions& conditions = served ? served->conditions : options.conditions;
    const double begin = wall_s();
    Predicted result;
    const schedule::Plan plan = schedule::parse_plan(options.job.plan);
    result.schedule = make_schedule(network, machine, plan, job_for(options.job, devices));
    if (plan.all_reduce && plan.all_reduce->name == "auto") sim::choose_all_reduce(result.schedule, machine);
    add_input(result.schedule, conditions, machine);
    const bool links = options.links || !options.trace.empty();
    sim::Options simulated =
        conditioned({.mode = options.mode, .iterations = options.steps, .links = links}, conditions, machine, devices);
    if (!simulated.pace.empty()) simulated.pace.resize(static_cast<std::size_t>(ranks(result.schedule.mesh)));
    slow_down(simulated, options, result.schedule);
    sim::Simulator simulator{result.schedule, machine};
    sim::Prediction middle = simulator.simulate(simulated);
    const Summary summary = summarize(result.schedule, middle.timeline);
    Json& json = result.point = point(result.schedule, summary);
    const schedule::Tightest tightest = schedule::tightest(result.schedule, machine);
    json["nodes"] = locate(machine, devices - 1).node + 1;
    json["mode"] = to_string(middle.mode);
    const sim::Band band = options.no_band ? sim::Band{summary.step, summary.step}
                                           : sim::band(result.schedule, machine, simulated, summary.step, simulator);
    json["step_low_s"] = band.low.value;
    json["step_high_s"] = band.high.value;
    json["memory_peak_bytes"] = total(tightest.use).value;
    json["memory_capacity_bytes"] = tightest.device->memory.value.value;
    json["fits"] = tightest.fits();
    json["flows_simulated"] = middle.flows;
    json["least_compute_s"] = middle.bounds.compute.value;
    json["least_wire_s"] = middle.bounds.wire.value;
    if (result.schedule.servers.count > 0) {
        add_staleness(json, middle.staleness);
        add_epoch(json, result.schedule, middle.timeline);
    }
    add_noise(json, result.schedule, machine, simulated, conditions);
    add_storage(json, result.schedule, machine, conditions, options.training.dataset);
    add_checkpoint(json, result.schedule, machine, conditions);
    json["simulation_wall_s"] = wall_s() - begin;
    result.timeline = std::move(middle.timeline);
    return result;
}

// Throughput a device relative to the baseline: the smallest point, or what --baseline asks for.
void add_scaling(Json& points, const Json& baseline) {
    const double base = baseline["samples_per_s"].get<double>();
    const double base_devices = baseline["devices"].get<double>();
    for (Json& p : points) {
        const double speedup = p["samples_per_s"].get<double>() / base;
        p["speedup"] = speedup;
        p["efficiency"] = speedup * base_devices / p["devices"].get<double>();
    }
}

Table points_table(const Options& options) {
    Table table{"points",
                fmt::format("{} on {}, plan {}, {}", options.job.model, options.machine, options.job.plan,
                            to_string(options.job.precision)),
                {{"devices", "devices", Show::count},
                 {"nodes", "nodes", Show::count},
                 {"global_batch", "batch", Show::count},
                 {"step_s", "step", Show::seconds},
                 {"step_low_s", "low", Show::seconds},
                 {"step_high_s", "high", Show::seconds},
                 {"samples_per_s", "samples/s", Show::number},
                 {"efficiency", "efficiency", Show::percent},
                 {"compute_s", "compute", Show::seconds},
                 {"exposed_comm_s", "exposed comm", Show::seconds},
                 {"memory_peak_bytes", "memory", Show::bytes},
                 {"mode", "  mode", Show::text}}};
    if (!options.conditions.noise.empty()) {
        table.columns.push_back({"noisy_step_s", "noisy step", Show::seconds});
        table.columns.push_back({"noisy_p95_s", "95 %", Show::seconds});
    }
    if (schedule::parse_plan(options.job.plan).servers.count > 0) {
        table.columns.push_back({"mean_staleness", "mean staleness", Show::number});
        table.columns.push_back({"most_staleness", "most", Show::count});
    }
    const bool inside = inline_loader(options.conditions.loader).has_value();
    if (inside || !options.conditions.input.empty()) table.columns.push_back({"io_wait_s", "I/O wait", Show::seconds});
    if (!options.conditions.input.empty()) {
        table.columns.push_back({"input_bytes_per_s", "input a second", Show::bytes});
    }
    if (!options.conditions.stage.empty()) table.columns.push_back({"staging_s", "staging", Show::seconds});
    if (!options.conditions.checkpoint.empty()) {
        table.columns.push_back({"checkpoint_s", "checkpoint", Show::seconds});
        table.columns.push_back({"checkpoint_share", "of training", Show::percent});
    }
    add_columns(table.columns, options.training);
    return table;
}

// The table of what takes the memory, when it is too much, and what would make it fit.
void require_memory(const Options& options, const Network& network, const Machine& machine, const Predicted& last) {
    if (last.point["fits"].get<bool>()) return;
    const schedule::Tightest tightest = schedule::tightest(last.schedule, machine);
    const DeviceClass& device = *tightest.device;
    const RankClass& fullest = last.schedule.classes[static_cast<std::size_t>(tightest.rank_class)];
    std::string text =
        fmt::format("batch {} does not fit: a device of class '{}' of {} has {}, it would take",
                    batch_of(last.schedule, fullest), device.name, options.machine, to_string(device.memory.value));
    for (const schedule::MemoryRow& row : schedule::rows(tightest.use)) {
        text += fmt::format("\n  {:<22} {:>10}", row.kind, to_string(row.bytes));
    }
    const std::vector<schedule::Remedy> remedies =
        schedule::remedies(network, machine, schedule::parse_plan(options.job.plan),
                           job_for(options.job, options.devices.back()), device.memory.value);
    if (remedies.empty()) throw InfeasibleError(text + "\nno three changes of plan, batch or precision make it fit");
    text += "\nit fits with (tried, the fullest device takes)";
    for (const schedule::Remedy& remedy : remedies) {
        text += fmt::format("\n  {:<44} {:>10}", remedy.text, to_string(remedy.memory));
    }
    throw InfeasibleError(text);
}

void check(const Options& options) {
    check_writable(options.trace, options.common);
    if (!options.trace.empty()) trace::format_of(options.trace);
    check_writable(options.plot, options.common);
    if (!options.plot.empty()) picture::check_suffix(options.plot);
    check(options.conditions);
    if (options.steps < 1) throw InputError(fmt::format("--steps {}: at least 1", options.steps));
    check(options.training);
}

// Throughput over devices with its band; of a point that does not fit, too.
void write_plot(const Options& options, const Json& points) {
    if (options.plot.empty()) return;
    picture::ScalingCurve curve{options.job.plan, {}};
    for (const Json& p : points) {
        curve.points.push_back({p["devices"].get<double>(), p["step_s"].get<double>(), p["step_low_s"].get<double>(),
                                p["step_high_s"].get<double>(), p["samples_per_s"].get<double>(),
                                p["efficiency"].get<double>(), p["fits"].get<bool>()});
    }
    const picture::Chart chart = picture::scaling_chart(
        {curve}, picture::ScalingMetric::throughput, fmt::format("{} on {}", options.job.model, options.machine),
        fmt::format("plan {}, {}; band: error of the prices; dashed: perfect scaling", options.job.plan,
                    to_string(options.job.precision)));
    replace_file(options.plot, picture::encoded(picture::xy_chart(chart), options.plot));
    talk(options.common, fmt::format("scaling curve: {}", options.plot));
}

int predict(Options& options) {
    if (options.job.plan == "help") {
        std::cout << plan_help();
        return good;
    }
    check(options);
    const Machine machine = models::load_machine(options.machine);
    const Network network = load_network(options.job.model, options.job.fuse, options.job.allow_unknown);
    std::ranges::sort(options.devices);
    options.devices.erase(std::unique(options.devices.begin(), options.devices.end()), options.devices.end());
    Json points = Json::array();
    Predicted last;
    for (const std::int64_t devices : options.devices) {
        last = predicted(options, network, machine, devices);
        points.push_back(last.point);
        if (options.progress)
            std::cerr << fmt::format("progress {}/{} {} devices\n", points.size(), options.devices.size(), devices);
    }
    add_scaling(points, options.baseline ? predicted(options, network, machine, *options.baseline).point : points[0]);
    for (Json& p : points) add_training_time(p, options.training);

    Json config = configuration(options.job);
    config["machine"] = options.machine;
    config["steps"] = options.steps;
    if (!options.conditions.loader.empty()) config["loader"] = options.conditions.loader;
    Report report{document("prediction", config), {points_table(options)}, ""};
    report.document["model"] = network.name;
    report.document["machine"] = machine.name;
    report.document["plan"] = options.job.plan;
    report.document["precision"] = to_string(options.job.precision);
    report.document["points"] = points;
    if (options.explain) add_explanation(report, last, machine);
    if (options.memory) add_memory(report, last);
    if (options.links) add_links(report, last);
    print(report, options.common);
    write_plot(options, points);
    if (!options.trace.empty()) {
        std::set<std::int64_t> ranks;
        for (const Event& event : last.timeline.events) ranks.insert(event.rank);
        const std::vector<std::int64_t> each(ranks.begin(), ranks.end());
        trace::write(last.timeline, dependencies_of(last.schedule, each), options.trace);
        talk(options.common, fmt::format("trace of {} devices: {}", options.devices.back(), options.trace));
    }
    require_memory(options, network, machine, last);
    return good;
}

}  // namespace

Run add_predict(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    add_job(app, options->job);
    app.add_option("--machine", options->machine, "a machine by name (rehearse machines) or a .toml file")
        ->option_text("NAME|FILE.toml")
        ->capture_default_str();
    app.add_option("--devices", options->devices, "how many devices; several, separated by commas, are a scaling study")
        ->delimiter(',')
        ->option_text("N[,N...]");
    add_choice<sim::Mode>(app, "--mode", options->mode,
                          {{"auto", sim::Mode::automatic}, {"folded", sim::Mode::folded}, {"exact", sim::Mode::exact}},
                          "exact: each message is a flow; folded: rounds of messages, at any scale");
    app.add_option("--steps", options->steps, "training steps to simulate")->capture_default_str()->option_text("N");
    app.add_option("--baseline", options->baseline,
                   "efficiency relative to this many devices, not to the smallest point")
        ->option_text("N");
    add_training(app, options->training);
    app.add_option("--trace", options->trace, "write the timeline of the largest point (.pftrace, .json or .csv)")
        ->option_text("FILE");
    app.add_option("--plot", options->plot, "draw throughput over devices (.svg, .png or .pdf)")->option_text("FILE");
    app.add_flag("--explain", options->explain, "what takes the time of the largest point, at which price, from where");
    app.add_flag("--memory", options->memory, "what the memory of the largest point's devices is taken by");
    app.add_flag("--no-band", options->no_band,
                 "a third of the time: the band's ends are not simulated, low and high are the step itself");
    app.add_flag("--progress", options->progress, "a line on stderr for each point that is done");
    add_conditions(app, options->conditions);
    add_learner_options(app, options->first_idle, options->learner_paces);
    app.add_flag("--links", options->links,
                 "what the largest point's links carry, by kind; in JSON the busiest ones too");
    add_common(app, options->common);
    return [options] { return predict(*options); };
}

}  // namespace rehearse::cli
