// SPDX-License-Identifier: Apache-2.0
// What a plan does, without a clock: its rank classes, their steps, and the order of their micro-batches as a picture.
#include <fmt/format.h>

#include <memory>

#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/job.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/op.hpp"
#include "core/text.hpp"
#include "models/models.hpp"
#include "picture/pipeline.hpp"
#include "picture/write.hpp"
#include "schedule/draw.hpp"
#include "sim/rank_programs.hpp"
#include "trace/programs.hpp"

namespace rehearse::cli {

namespace {

constexpr std::string_view as_text = "-";

struct Options {
    Common common;
    JobOptions job;
    std::string machine;
    std::optional<std::int64_t> devices;
    std::vector<std::int64_t> ticks{1, 2};
    std::string draw;  // "-": as text
    bool steps = false;
    std::optional<trace::ProgramFormat> to;  // what other simulators read
    std::string prefix;                      // ... of its files
};

/// Any machine with that many devices, without prices: stages are balanced by operations.
Machine nameless(std::int64_t devices) {
    Machine machine;
    machine.name = "no machine";
    machine.classes.resize(1);
    machine.classes[0].name = "device";
    NodeKind node{"node", devices, {}, {}};
    node.vertices.push_back({"device", VertexKind::device, 0});
    machine.nodes = {node};
    return machine;
}

/// The product of the axes that have a size.
std::int64_t devices_of(const schedule::Plan& plan) {
    std::int64_t product = 1;
    for (const Axis& axis : plan.mesh.axes) {
        if (axis.size > 0) product = elements({product, axis.size});
    }
    return product;
}

Json boxes_of(const schedule::Lane& lane, int chunks) {
    Json boxes = Json::array();
    for (const schedule::ComputeBox& box : lane.boxes) {
        boxes.push_back({{"box", schedule::label(box, chunks)},
                         {"kind", std::string{schedule::letter(box.kind)}},
                         {"micro_batch", box.micro_batch},
                         {"chunk", box.chunk},
                         {"start", box.start},
                         {"length", box.length}});
    }
    return boxes;
}

Json classes_of(const Schedule& schedule, const schedule::BoxChart& chart) {
    Json rows = Json::array();
    for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
        const RankClass& each = schedule.classes[c];
        rows.push_back({{"class", each.name},
                        {"layers", each.part.network.layers.size()},
                        {"parameters", parameters(each.part.network)},
                        {"held_micro_batches", each.in_flight},
                        {"steps", each.steps.size()},
                        {"idle_share", schedule::idle_share(chart, chart.lanes[c])},
                        {"boxes", boxes_of(chart.lanes[c], chart.chunks)}});
    }
    return rows;
}

Json steps_of(const Schedule& schedule) {
    Json rows = Json::array();
    for (const RankClass& each : schedule.classes) {
        for (std::size_t i = 0; i < each.steps.size(); ++i) {
            const Step& step = each.steps[i];
            std::vector<std::string_view> after;
            for (const int before : step.after) after.push_back(each.steps[static_cast<std::size_t>(before)].name);
            rows.push_back({{"class", each.name},
                            {"index", i},
                            {"step", step.name},
                            {"stream", to_string(step.stream)},
                            {"after", join(after)}});
        }
    }
    return rows;
}

Report report_of(const Options& options, const Schedule& schedule, const schedule::BoxChart& chart) {
    Json config = configuration(options.job);
    if (!options.machine.empty()) config["machine"] = options.machine;
    Report report{document("schedule", config), {}, ""};
    report.document["model"] = schedule.network.name;
    report.document["plan"] = schedule.plan;
    report.document["devices"] = ranks(schedule.mesh);
    report.document["micro_batches"] = schedule.micro_batches;
    report.document["ticks"] = chart.end;
    report.document["classes"] = classes_of(schedule, chart);
    const Table classes{"classes",
                        "",
                        {{"class", "class"},
                         {"layers", "layers", Show::count},
                         {"parameters", "parameters", Show::count},
                         {"held_micro_batches", "held micro-batches", Show::count},
                         {"steps", "steps", Show::count},
                         {"idle_share", "idle", Show::percent}}};
    if (options.steps) {
        report.document["steps"] = steps_of(schedule);
        report.tables.push_back({"steps",
                                 "",
                                 {{"class", "class"},
                                  {"index", "index", Show::count},
                                  {"step", "  step"},
                                  {"stream", "stream"},
                                  {"after", "after"}}});
    }
    report.tables.push_back(classes);
    report.footer_is_drawn = options.draw == as_text;
    if (options.draw == as_text) report.footer = '\n' + schedule::draw(chart);
    return report;
}

picture::Activity activity_of(schedule::BoxKind kind) {
    switch (kind) {
        case schedule::BoxKind::forward:
        case schedule::BoxKind::again:
            return picture::Activity::forward;
        case schedule::BoxKind::backward:
            return picture::Activity::backward_data;
        case schedule::BoxKind::weights:
            return picture::Activity::backward_weights;
        case schedule::BoxKind::update:
            break;
    }
    return picture::Activity::update;
}

picture::PipelineDrawing drawing_of(const Schedule& schedule, const schedule::BoxChart& chart) {
    picture::PipelineDrawing drawing;
    drawing.title = fmt::format("{}, {}", schedule.network.name, schedule.plan);
    drawing.subtitle = "each pass of one chunk as drawn, messages without time";
    drawing.clock = false;
    for (std::size_t i = 0; i < chart.lanes.size(); ++i) {
        drawing.lanes.push_back(chart.lanes[i].name);
        for (const schedule::ComputeBox& box : chart.lanes[i].boxes) {
            const auto start = static_cast<double>(box.start), length = static_cast<double>(box.length);
            drawing.boxes.push_back({i, start, start + length, activity_of(box.kind), box.micro_batch, box.chunk,
                                     schedule::label(box, chart.chunks)});
        }
    }
    return drawing;
}

schedule::Ticks ticks_of(const Options& options) {
    const std::vector<std::int64_t>& ticks = options.ticks;
    if (ticks.size() != 2 || ticks[0] < 1 || ticks[1] < 1 || ticks[0] > 100 || ticks[1] > 100) {
        throw InputError("--ticks: two whole numbers from 1 to 100, of a forward and a backward pass, like 1,2");
    }
    return {.forward = ticks[0], .again = ticks[0], .backward = ticks[1]};
}

void check_programs(const Options& options) {
    if (!options.to) {
        if (!options.prefix.empty()) throw InputError("--prefix: it is of the files that --to chakra|goal|smpi writes");
        return;
    }
    if (options.prefix.empty()) throw InputError("--to: give --prefix, with which the names of its files begin");
    if (options.machine.empty()) throw InputError("--to: give --machine, whose prices say how long computations take");
}

// Of every rank, with the times of the machine's prices.
void write_programs(const Options& options, const Schedule& schedule, const Machine& machine) {
    const bool calls = *options.to == trace::ProgramFormat::chakra;
    const RankPrograms programs =
        sim::rank_programs(schedule, machine, calls ? sim::Collectives_as::calls : sim::Collectives_as::messages);
    const std::vector<std::string> files = trace::program_files(programs, options.prefix, *options.to);
    for (const std::string& file : files) check_writable(file, options.common);
    trace::write_programs(programs, options.prefix, *options.to);
    talk(options.common, fmt::format("{} ranks: {}{}", programs.ranks.size(), files.front(),
                                     files.size() > 1 ? fmt::format(" and {} more", files.size() - 1) : ""));
}

int show(const Options& options) {
    check_programs(options);
    const schedule::Ticks ticks = ticks_of(options);
    const bool to_file = !options.draw.empty() && options.draw != as_text;
    if (to_file) {
        picture::check_suffix(options.draw);
        check_writable(options.draw, options.common);
    }
    const Network network = load_network(options.job.model, options.job.fuse, options.job.import);
    const schedule::Plan plan = schedule::parse_plan(options.job.plan);
    const std::int64_t devices = options.devices.value_or(devices_of(plan));
    if (devices < 1) throw InputError(fmt::format("--devices {}: at least 1 is needed", devices));
    const Machine machine = options.machine.empty() ? nameless(devices) : models::load_machine(options.machine);
    const Schedule schedule = make_schedule(network, machine, plan, job_for(options.job, devices));
    say_what_plan_leaves(network, schedule);
    const schedule::BoxChart chart = schedule::boxes(schedule, ticks);
    print(report_of(options, schedule, chart), options.common);
    if (options.to) write_programs(options, schedule, machine);
    if (!to_file) return good;
    replace_file(options.draw, encoded(picture::pipeline_picture(drawing_of(schedule, chart)), options.draw));
    talk(options.common, fmt::format("picture: {}", options.draw));
    return good;
}

}  // namespace

Run add_schedule(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    options->job.plan = "pipe=4:microbatches=8";
    add_job(app, options->job);
    app.add_option("--devices", options->devices, "default: the product of the plan's axes")->option_text("N");
    app.add_option("--machine", options->machine,
                   "balance stages by this machine's prices; default: by operations alone")
        ->option_text("NAME|FILE.toml");
    app.add_option("--draw", options->draw,
                   "what each stage computes in each tick, if messages took no time: F forward, B backward, W weights' "
                   "gradients put off, R forward again, . nothing; as text, or as a picture into FILE")
        ->expected(0, 1)
        ->default_str(std::string{as_text})
        ->option_text("[FILE.svg|png|pdf]");
    app.add_flag("--steps", options->steps, "every step of every rank class, and what it waits for");
    add_choice<std::optional<trace::ProgramFormat>>(
        app, "--to", options->to,
        {{"chakra", trace::ProgramFormat::chakra},
         {"goal", trace::ProgramFormat::goal},
         {"smpi", trace::ProgramFormat::smpi}},
        "also what every rank does, for other simulators: Chakra execution traces (ASTRA-sim), GOAL (LogGOPSim), "
        "time-independent traces (SimGrid's SMPI); default none");
    app.add_option("--prefix", options->prefix,
                   "of the files of --to, for which it is needed: PATH.0.et, PATH.goal, PATH.ti")
        ->option_text("PATH");
    app.add_option("--ticks", options->ticks, "how long a forward and a backward pass of one chunk are drawn")
        ->delimiter(',')
        ->capture_default_str()
        ->option_text("F,B");
    add_common(app, options->common);
    return [options] { return show(*options); };
}

}  // namespace rehearse::cli
