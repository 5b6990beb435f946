// SPDX-License-Identifier: Apache-2.0
// rehearse explain: one problem on a device, or one step of a prediction: its price, what that is made of, the samples
// nearest to it, its band.
#include <fmt/format.h>

#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/job.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/gradient_sums.hpp"
#include "core/text.hpp"
#include "models/models.hpp"
#include "predict/framework.hpp"
#include "prices/interval.hpp"
#include "prices/nearest_samples.hpp"
#include "prices/prices.hpp"
#include "prices/roofline.hpp"
#include "prices/tile_model.hpp"
#include "sim/collective/groups.hpp"
#include "sim/collective/price.hpp"

namespace rehearse::cli {

namespace {

constexpr std::size_t most_samples = 5;

struct Options {
    Common common;
    JobOptions job;
    std::string machine = "this-host", device, step, problem;
    std::int64_t devices = 1;
};

const DeviceClass& device_of(const Options& options, const Machine& machine) {
    if (options.device.empty()) return class_of(machine, 0);
    std::vector<std::string_view> names;
    for (const DeviceClass& each : machine.classes) {
        if (each.name == options.device) return each;
        names.push_back(each.name);
    }
    throw InputError(fmt::format("--device '{}': machine '{}' has no such device class{}; it has {}", options.device,
                                 machine.name, did_you_mean(options.device, names), join(names)));
}

Json part(std::string_view what, std::optional<Seconds> time, std::string source) {
    return {
        {"part", what}, {"time_s", time ? Json(time->value) : Json()}, {"basis", ""}, {"source", std::move(source)}};
}

Json part(std::string_view what, const Price& price) {
    Json row = part(what, price.time, price.source);
    row["basis"] = to_string(price.basis);
    return row;
}

void add_band(Json& parts, Seconds time, double error) {
    const prices::Interval<Seconds> band = prices::around(time, prices::reach(error));
    parts.push_back(part("low", band.low, fmt::format("90 % band, error {:.1f} %", 100 * error)));
    parts.push_back(part("high", band.high, ""));
}

// Where the device's sheet knows them.
void add_bounds(Json& parts, const Problem& problem, const DeviceClass& device) {
    const auto add = [&](std::string_view what, const std::optional<Seconds>& time, const auto& amount,
                         const auto& rate) {
        parts.push_back(
            part(what, time, fmt::format("{} at {} ({})", to_string(amount), to_string(rate.value), rate.source)));
    };
    const RooflineTimes times = roofline_times(problem, device);
    if (times.compute)
        add("compute", times.compute, flops(problem.op, problem.pass, problem.batch), device.peak.at(problem.type));
    if (times.memory) add("memory", times.memory, library_bytes(problem, device), device.memory_bandwidth);
    parts.push_back(part("launch", device.launch.value, device.launch.source));
}

Report report_of(std::string_view what, const Options& options, Json parts, Json samples) {
    Report report{document("explanation", {{"what", what}, {"machine", options.machine}}), {}, ""};
    report.document["parts"] = std::move(parts);
    report.tables.push_back(
        {"parts",
         std::string{what},
         {{"part", "part"}, {"time_s", "time", Show::seconds}, {"basis", "price"}, {"source", "source"}}});
    if (samples.empty()) return report;
    report.document["samples"] = std::move(samples);
    report.tables.push_back({"samples",
                             "the nearest samples, by operations and bytes",
                             {{"problem", "problem"},
                              {"time_s", "time", Show::seconds},
                              {"basis", "how"},
                              {"flops_per_s", "rate", Show::flop_rate},
                              {"price_s", "price", Show::seconds},
                              {"distance", "distance", Show::number},
                              {"source", "source"}}});
    return report;
}

Report explain(const Problem& problem, const Options& options, const DeviceClass& device,
               const std::vector<Problem>& sums) {
    const Price whole = price(problem, device);
    Json parts = Json::array({part("price", whole)});
    add_band(parts, whole.time, whole.error);
    add_bounds(parts, problem, device);
    for (const Problem& sum : sums) {
        const Price added = price(sum, device);
        parts.push_back(part("and a sum of gradients", added));
        parts.back()["source"] = fmt::format("{}: {}", to_string(sum), added.source);
    }
    Json samples = Json::array();
    for (const NearSample& near : nearest_samples(problem, device, most_samples)) {
        const Flops work = flops(near.problem.op, near.problem.pass, near.problem.batch);
        samples.push_back({{"problem", to_string(near.problem)},
                           {"time_s", near.time.value},
                           {"flops_per_s", (work / near.time).value},
                           {"price_s", price(near.problem, device).time.value},
                           {"distance", near.distance},
                           {"basis", to_string(near.basis)},
                           {"source", near.source}});
    }
    return report_of(to_string(problem), options, std::move(parts), std::move(samples));
}

/// Whether one of the groups of ranks that take part has members on several nodes.
bool leaves_a_node(const sim::Groups& groups, const Machine& machine) {
    for (std::int64_t group = 0; group < groups.count; ++group) {
        const RankIndex first = groups.rank(group, 0), last = groups.rank(group, groups.shape.size - 1);
        if (locate(machine, first).node != locate(machine, last).node) return true;
    }
    return false;
}

Report explain(const Communicate& communicate, const Options& options, const Machine& machine,
               const Schedule& schedule) {
    const sim::Call call = sim::call_of(communicate);
    const Seconds alone = sim::collective_time(call, schedule.mesh, machine);
    const sim::Groups groups = sim::groups_along(schedule.mesh, call.axis, call.algorithm, sim::Wiring{machine});
    const Messaging& messaging = leaves_a_node(groups, machine) ? machine.across : machine.inside;
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    Json parts = Json::array(
        {part("alone", Price{alone, messaging.error,
                             fmt::format("{} of {} by {}, simulated with nothing beside it", pass_of(call.kind),
                                         to_string(whole), to_string(call.algorithm))})});
    add_band(parts, alone, messaging.error);
    for (const MessagePiece& piece : messaging.pieces) {
        const std::string range = piece.up_to > Bytes{0} ? fmt::format("up to {}", to_string(piece.up_to)) : "beyond";
        parts.push_back(part("message " + range, piece.overhead,
                             fmt::format("and its bytes at {} ({})", to_string(piece.rate), piece.source)));
    }
    if (messaging.pieces.empty()) parts.push_back(part("message", messaging.overhead.value, messaging.overhead.source));
    parts.push_back(
        part("links", std::nullopt,
             fmt::format("{:.3g} of their bandwidth ({})", messaging.fraction.value, messaging.fraction.source)));
    parts.push_back(
        part("sums", std::nullopt, fmt::format("{} ({})", to_string(messaging.reduce.value), messaging.reduce.source)));
    return report_of(fmt::format("{} on {} ranks", to_string(call.algorithm), groups.shape.size), options,
                     std::move(parts), Json::array());
}

const Step& step_of(const RankClass& rank_class, const std::string& name) {
    std::vector<std::string_view> names;
    for (const Step& step : rank_class.steps) {
        if (step.name == name) return step;
        names.push_back(step.name);
    }
    throw InputError(fmt::format("--step '{}': the first rank class has no such step{}; it has {} from '{}' to '{}'",
                                 name, did_you_mean(name, names), names.size(), names.front(), names.back()));
}

Report explain_step(const Options& options, const Machine& named) {
    const Network network = load_network(options.job.model, options.job.fuse, options.job.import);
    const Machine machine = predict::for_network(named, network);
    const Schedule schedule =
        make_schedule(network, machine, schedule::parse_plan(options.job.plan), job_for(options.job, options.devices));
    const RankClass& first = schedule.classes.front();
    const Step& step = step_of(first, options.step);
    const auto index = static_cast<std::size_t>(&step - first.steps.data());
    const DeviceClass& device = class_of(machine, 0);
    if (const auto* compute = std::get_if<Compute>(&step.action))
        return explain(compute->problem, options, device,
                       sums_beside(compute->problem, gradient_sums(schedule, first)[index], device));
    if (const auto* update = std::get_if<Update>(&step.action)) return explain(update->problem, options, device, {});
    if (const auto* precondition = std::get_if<Precondition>(&step.action))
        return explain(precondition->problem, options, device, {});
    if (const auto* shared = std::get_if<Communicate>(&step.action))
        return explain(*shared, options, machine, schedule);
    throw InputError(
        fmt::format("--step '{}': only computations, updates and collectives are explained so far", step.name));
}

int run(const Options& options) {
    check_writable(options.common.output, options.common);
    if (options.problem.empty() == options.step.empty())
        throw InputError(
            "explain: give either a problem, like conv2d:n8c64h56w56k64r3s3:pad1:stride1:f32:forward, or "
            "--step with --model");
    const Machine machine = models::load_machine(options.machine);
    if (!options.step.empty()) {
        print(explain_step(options, machine), options.common);
    } else {
        print(explain(parse_problem(options.problem), options, device_of(options, machine), {}), options.common);
    }
    return good;
}

}  // namespace

Run add_explain(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("PROBLEM", options->problem, "one kernel, as bench and the files of samples name it");
    add_machine(app, options->machine);
    app.add_option("--device", options->device, "its device class; default: the first device's")->option_text("NAME");
    app.add_option("--step", options->step, "a step of the prediction of --model, as its timeline names it")
        ->option_text("NAME");
    app.add_option("--devices", options->devices, "of that prediction")->capture_default_str()->option_text("N");
    add_job(app, options->job);
    add_common(app, options->common);
    return [options] { return run(*options); };
}

}  // namespace rehearse::cli
