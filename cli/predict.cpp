// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <utility>

#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/conditions.hpp"
#include "cli/job.hpp"
#include "cli/json.hpp"
#include "cli/learner_options.hpp"
#include "cli/pilots.hpp"
#include "cli/predict_growth.hpp"
#include "cli/predict_programs.hpp"
#include "cli/predict_tables.hpp"
#include "cli/report.hpp"
#include "cli/training.hpp"
#include "core/dependencies.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/index.hpp"
#include "core/methods/servers.hpp"
#include "models/frameworks.hpp"
#include "models/models.hpp"
#include "picture/scaling.hpp"
#include "picture/write.hpp"
#include "predict/language_network.hpp"
#include "predict/predict.hpp"
#include "predict/remarks.hpp"
#include "report/prediction_json.hpp"
#include "report/scaling_point.hpp"
#include "schedule/memory.hpp"
#include "schedule/remedies.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

/// Large: one member an option of the command line.
struct Options {
    Common common;
    JobOptions job;
    ConditionOptions conditions;
    std::string machine = "summit", framework{models::default_framework};
    std::vector<std::int64_t> devices{1};
    sim::Mode mode = sim::Mode::automatic;
    int steps = 1;
    std::optional<std::int64_t> baseline;
    predict::Training training;
    std::string trace, plot;
    bool first_idle = false;
    std::vector<double> learner_paces;
    std::vector<std::string> pilots, growth;
    ProgramsAsked programs;
    bool explain = false, memory = false, links = false, no_band = false, progress = false;
};

predict::Job job_of(const Options& options, Network network, Machine machine) {
    predict::Job job{.network = std::move(network),
                     .machine = std::move(machine),
                     .plan = schedule::parse_plan(options.job.plan),
                     .devices = options.devices,
                     .baseline = options.baseline,
                     .batch = options.job.batch,
                     .global_batch = options.job.global_batch,
                     .precision = options.job.precision,
                     .optimizer = options.job.optimizer,
                     .conditions = {},
                     .training = options.training,
                     .mode = options.mode,
                     .steps = options.steps,
                     .bands = !options.no_band,
                     .links = options.links || !options.trace.empty()};
    job.conditions = conditions_of(options.conditions, job.machine);
    job.conditions.learners = {options.learner_paces, options.first_idle};
    const std::optional<sim::Loader> loader = job.conditions.loader;
    predict::follow(job, models::load_framework(options.framework));
    if (!options.conditions.loader.empty()) job.conditions.loader = loader;
    job.pilots = pilots_of(options.pilots, job);
    return job;
}

Table points_table(const Options& options, const predict::Job& job) {
    const schedule::Plan plan = schedule::parse_plan(options.job.plan);
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
                 {"memory_peak_bytes", "memory", Show::bytes},
                 {"mode", "mode", Show::text},
                 {"compute_s", "compute", Show::seconds, true},
                 {"exposed_comm_s", "exposed comm", Show::seconds}}};
    if (!options.pilots.empty()) {
        table.columns.push_back({"basis", "basis"});
        table.columns.push_back({"measured_step_s", "measured", Show::seconds});
    }
    if (!options.conditions.noise.empty()) {
        table.columns.push_back({"noisy_step_s", "noisy step", Show::seconds});
        table.columns.push_back({"noisy_p95_s", "95 %", Show::seconds});
    }
    const auto memory = std::ranges::find(table.columns, "memory_peak_bytes", &Column::key);
    if (axis_index(plan.mesh, "pipe") >= 0) table.columns.insert(memory, {"bubble_s", "bubble", Show::seconds});
    if (plan.methods.get<Servers>().count > 0) {
        table.columns.push_back({"rest_s", "rest", Show::seconds});
        table.columns.push_back({"mean_staleness", "mean staleness", Show::number});
        table.columns.push_back({"most_staleness", "most", Show::count});
    }
    const bool inside = job.conditions.loader.has_value();
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

// A warning of points that do not fit; where none does, the table of what takes the memory, and what would make it fit.
void require_memory(const Options& options, const predict::Job& job, const predict::Prediction& prediction) {
    const auto fits = [](const predict::Point& point) { return point.memory.fits; };
    if (std::ranges::any_of(prediction.points, fits)) {
        for (const std::string& text : predict::memory_warnings(prediction.points))
            talk(options.common, "warning: " + text);
        return;
    }
    const Schedule& schedule = prediction.setup.schedule;
    const Machine& machine = prediction.setup.machine;
    const schedule::Tightest tightest = schedule::tightest(schedule, machine);
    const DeviceClass& device = *tightest.device;
    const std::string fullest =
        tightest.rank_class == schedule::no_class
            ? "a server"
            : fmt::format("batch {}", batch_of(schedule, schedule.classes[at(tightest.rank_class)]));
    std::string text = fmt::format("{} does not fit: a device of class '{}' of {} has {}, it would take", fullest,
                                   device.name, options.machine, to_string(device.memory.value));
    const auto& stages = prediction.setup.language_memory;
    const auto less = [](const predict::LanguageMemory& a, const predict::LanguageMemory& b) {
        return predict::total(a) < predict::total(b);
    };
    const auto kinds =
        stages.empty() ? schedule::rows(tightest.use) : predict::rows(*std::ranges::max_element(stages, less));
    for (const schedule::MemoryRow& row : kinds) {
        text += fmt::format("\n  {:<22} {:>10}", row.kind, to_string(row.bytes));
    }
    const std::int64_t each = job.conditions.devices_per_node;
    const Machine placed = each > 0 ? predict::with_devices_per_node(job.machine, each) : job.machine;
    const std::vector<schedule::Remedy> remedies = schedule::remedies(
        job.network, placed, predict::planned(job), scheduled(job, prediction.setup.devices), device.memory.value,
        job.framework.megatron_memory ? predict::language_memory_peak : schedule::MemoryOf{});
    if (remedies.empty()) throw InfeasibleError(text + "\nno three changes of plan, batch or precision make it fit");
    text += "\nit fits with (tried, the fullest device takes)";
    std::size_t width = 44;
    for (const schedule::Remedy& remedy : remedies) width = std::max(width, remedy.text.size());
    for (const schedule::Remedy& remedy : remedies) {
        text += fmt::format("\n  {:<{}} {:>10}", remedy.text, width, to_string(remedy.memory));
    }
    throw InfeasibleError(text);
}

void check(const Options& options) {
    constexpr int most_simulated = 10'000;
    if (options.growth.empty() && options.steps > most_simulated) {
        throw InputError(fmt::format("--steps {}: at most {} are simulated", options.steps, most_simulated));
    }
    check_writable(options.trace, options.common);
    if (!options.trace.empty()) trace::format_of(options.trace);
    check_writable(options.plot, options.common);
    if (!options.plot.empty()) picture::check_suffix(options.plot);
}

// Throughput over devices with its band; of a point that does not fit, too.
void write_plot(const Options& options, const std::vector<predict::Point>& points) {
    if (options.plot.empty()) return;
    picture::ScalingCurve curve{options.job.plan, {}};
    for (const predict::Point& p : points) curve.points.push_back(report::scaling_point(p));
    const auto& noisy = points.front().noisy;
    const picture::Chart chart = picture::scaling_chart(
        {curve}, picture::ScalingMetric::throughput, fmt::format("{} on {}", options.job.model, options.machine),
        fmt::format("plan {}, {}{}; band: error of the prices; dashed: perfect scaling", options.job.plan,
                    to_string(options.job.precision), noisy ? fmt::format(", noise {:g}", noisy->sigma) : ""));
    replace_file(options.plot, picture::encoded(picture::xy_chart(chart), options.plot));
    talk(options.common, fmt::format("scaling curve: {}", options.plot));
}

// Where the machine is a file of the user's: another one may have its name.
std::string machine_file(const std::string& asked, const Machine& machine) {
    const bool is_file = !machine.origin.empty() && asked.starts_with(machine.origin);
    return is_file ? std::filesystem::absolute(asked).lexically_normal().string() : "";
}

Report report_of(const Options& options, const predict::Job& job, const predict::Prediction& prediction) {
    Json config = configuration(options.job);
    config["machine"] = options.machine;
    config["framework"] = options.framework;
    config["steps"] = options.steps;
    if (!options.conditions.loader.empty()) config["loader"] = options.conditions.loader;
    Report report{document("prediction", config), {points_table(options, job)}, ""};
    const auto fits = [](const predict::Point& point) { return point.memory.fits; };
    if (!std::ranges::all_of(prediction.points, fits)) report.tables.front().columns.push_back({"fits", "fits"});
    const auto guessed = [](const predict::Point& point) { return point.guessed > 0; };
    if (std::ranges::any_of(prediction.points, guessed))
        report.tables.front().columns.push_back({"guessed_share", "guessed", Show::percent});
    report.document["model"] = job.network.name;
    report.document["machine"] = job.machine.name;
    if (const std::string file = machine_file(options.machine, job.machine); !file.empty())
        report.document["machine_file"] = file;
    report.document["plan"] = options.job.plan;
    report.document["precision"] = to_string(options.job.precision);
    report.document["points"] = Json::array();
    for (const predict::Point& point : prediction.points) report.document["points"].push_back(report::json_of(point));
    add_machine_notes(report, predict::for_network(job.machine, job.network), models::load_framework(options.framework),
                      job.framework);
    add_network_notes(report, job.network, prediction.setup.schedule);
    add_condition_notes(report, prediction, options.common);
    add_price_warnings(report, prediction, options.framework != models::default_framework, options.common);
    add_pilots(report, prediction, options.common);
    for (const std::string& text : predict::memory_warnings(prediction.points))
        report.document["warnings"].push_back(text);
    if (options.explain) add_explanation(report, prediction);
    if (options.memory) add_memory(report, prediction);
    if (options.links) add_links(report, prediction);
    return report;
}

// Of the largest point.
void write_trace(const Options& options, const predict::Prediction& prediction) {
    std::set<RankIndex> ranks;
    for (const Event& event : prediction.timeline.events) ranks.insert(event.rank);
    const std::vector<RankIndex> each(ranks.begin(), ranks.end());
    trace::write(prediction.timeline, dependencies_of(prediction.setup.schedule, each), options.trace);
    talk(options.common, fmt::format("trace of {} devices: {}", prediction.setup.devices, options.trace));
}

// One network after the other, a step of each; then what the last one's options ask for.
int predict_grown(const Options& options) {
    std::vector<PredictedPhase> phases;
    const std::vector<GrowthPhase> asked = growth_phases(options.job.model, options.growth, options.steps);
    if (!options.pilots.empty() || !options.plot.empty()) {
        throw InputError("--grow: not with --pilot or --plot, which are of one network");
    }
    Options now = options;
    now.steps = 1;
    for (std::size_t i = 0; i < asked.size(); ++i) {
        now.job.model = asked[i].model;
        const predict::Job job = job_of(now, load_network(now.job.model, now.job.fuse, now.job.import),
                                        models::load_machine(options.machine));
        phases.push_back({asked[i], steps_of(asked, i, options.steps), parameters(job.network), predict::predict(job)});
        const predict::Prediction& prediction = phases.back().prediction;
        if (i + 1 == asked.size()) {
            Report report = report_of(now, job, prediction);
            add_growth(report, phases);
            print(report, options.common);
            if (!options.trace.empty()) write_trace(now, prediction);
        }
        require_memory(now, job, prediction);
    }
    return good;
}

int start(const Options& options) {
    if (options.job.plan == "help") {
        std::cout << plan_help();
        return good;
    }
    options.programs.check();
    if (!options.programs.files.empty()) {
        return predict_programs(options.programs, options.machine, options.job.precision, options.trace,
                                options.common);
    }
    check(options);
    if (!options.growth.empty()) return predict_grown(options);
    Machine machine = models::load_machine(options.machine);
    Network network = load_network(options.job.model, options.job.fuse, options.job.import);
    const predict::Job job = job_of(options, std::move(network), std::move(machine));
    const std::set<std::int64_t> numbers(job.devices.begin(), job.devices.end());
    const predict::Prediction prediction = predict::predict(job, [&](std::size_t done, std::int64_t devices) {
        if (options.progress) std::cerr << fmt::format("progress {}/{} {} devices\n", done, numbers.size(), devices);
    });
    say_what_plan_leaves(job.network, prediction.setup.schedule);
    print(report_of(options, job, prediction), options.common);
    write_plot(options, prediction.points);
    if (!options.trace.empty()) write_trace(options, prediction);
    require_memory(options, job, prediction);
    return good;
}

}  // namespace

Run add_predict(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    add_job(app, options->job);
    add_machine(app, options->machine);
    add_framework(app, options->framework, "plan and --loader go before it");
    app.add_option("--devices", options->devices, "how many devices; several, separated by commas, are a scaling study")
        ->delimiter(',')
        ->option_text("N[,N...]");
    add_choice<sim::Mode>(app, "--mode", options->mode,
                          {{"auto", sim::Mode::automatic}, {"folded", sim::Mode::folded}, {"exact", sim::Mode::exact}},
                          "exact: each message is a flow; folded: rounds of messages, at any scale");
    app.add_option("--steps", options->steps,
                   "training steps to simulate; with --grow, of the training, of which one a network is simulated")
        ->capture_default_str()
        ->option_text("N");
    add_growth(app, options->growth);
    app.add_option("--baseline", options->baseline,
                   "efficiency relative to this many devices, not to the smallest point")
        ->option_text("N");
    add_pilots(app, options->pilots);
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
    add_programs(
        app, options->programs,
        {"--help", "--machine", "--precision", "--trace", "--format", "--output", "--force", "--quiet", "--verbose"});
    return [options] { return start(*options); };
}

}  // namespace rehearse::cli
