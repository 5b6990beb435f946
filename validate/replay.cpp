// SPDX-License-Identifier: Apache-2.0
#include "validate/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "core/text.hpp"
#include "models/file_systems.hpp"
#include "models/frameworks.hpp"
#include "models/fuse.hpp"
#include "models/models.hpp"
#include "sim/collective/price.hpp"
#include "sim/host/loader.hpp"
#include "sim/host/staging.hpp"
#include "sim/simulate.hpp"

namespace rehearse::validate {

namespace {

std::string setting(const ReplaySettings& settings, std::string_view name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string{} : found->second;
}

std::string needed(const ReplaySettings& settings, std::string_view name, const PublishedRow& row,
                   std::string_view column) {
    std::string value = setting(settings, name);
    if (value.empty()) throw InputError(fmt::format("no rule maps {} '{}' to a {}", column, row.text(column), name));
    return value;
}

double number(const ReplaySettings& settings, std::string_view name, std::optional<double> otherwise) {
    std::string text = setting(settings, name);
    std::erase(text, ',');
    if (text.empty()) return otherwise.value_or(0);
    if (const std::size_t over = text.find('/'); over != std::string::npos)
        return parse_number(text.substr(0, over), name) / parse_number(text.substr(over + 1), name);
    const double factor = text.back() == 'K' || text.back() == 'k' ? 1024 : 1;
    if (factor > 1) text.pop_back();
    return factor * parse_number(text, name);
}

// What the framework does where neither the row nor its rules say otherwise.
void complete(TrainingRun& run, const models::FrameworkProfile& framework) {
    run.plan = models::plan_with(run.plan, framework);
    if (run.loader.empty()) run.loader = framework.value("loader");
    if (run.layout.empty()) run.layout = framework.value("layout");
    if (run.software.empty()) run.software = framework.value("software");
    run.transforms = framework.value("transforms") != "off";
    run.workspace = predict::workspace_of(framework);
    run.dense_gradients = framework.value("strided_gradients") == "dense";
    run.dilated_in_batches = framework.value("dilations") == "space-to-batch";
    const std::string passes = framework.value(fmt::format("{}_passes", to_string(run.optimizer)));
    run.issue = predict::issue_of(framework);
    run.statistics = predict::statistics_of(framework);
    run.update_after_sums = framework.value("update") == "after-sums";
    if (run.update_passes || passes.empty()) return;
    run.update_passes = parse_number(passes, "passes");
    if (const std::string rate = framework.value("update_rate"); !rate.empty())
        run.update_rate = parse_quantity<Bandwidth>(rate);
}

template <typename Value, std::size_t count>
Value choice(const std::array<Value, count>& values, const std::string& text, std::string_view what, Value otherwise) {
    if (text.empty()) return otherwise;
    const auto found = std::ranges::find_if(values, [&](Value value) { return to_string(value) == text; });
    if (found == values.end()) throw InputError(fmt::format("{} '{}' is not known", what, text));
    return *found;
}

}  // namespace

double copies(const TrainingRun& run, const ReplaySettings& settings) {
    return number(settings, "copies", static_cast<double>(run.devices));
}

TrainingRun training_run(const PublishedRow& row, const ReplaySettings& settings) {
    TrainingRun run;
    run.network = needed(settings, "network", row, "model");
    run.machine = needed(settings, "machine", row, "machine");
    if (const std::string each = setting(settings, "placement"); !each.empty())
        run.per_node = parse_int(each, "placement");
    run.plan = needed(settings, "plan", row, "strategy");
    if (const std::string fuse = setting(settings, "fuse"); !fuse.empty()) run.fuse = fuse;
    run.software = setting(settings, "software");
    run.loader = setting(settings, "loader");
    run.layout = setting(settings, "layout");
    run.input = setting(settings, "input");
    run.sample = setting(settings, "sample");
    run.reading = setting(settings, "reading");
    if (!predict::is_layout(run.layout))
        throw InputError(fmt::format("layout '{}' is not nchw or nhwc-turned", run.layout));
    run.precision = parse_precision(needed(settings, "precision", row, "precision"));
    run.optimizer = choice(std::array{Optimizer::sgd, Optimizer::adam, Optimizer::lamb}, setting(settings, "optimizer"),
                           "optimizer", Optimizer::sgd);
    if (!setting(settings, "update_passes").empty()) run.update_passes = number(settings, "update_passes", {});
    run.framework_error = number(settings, "error", predict::framework_error);
    const std::string framework = setting(settings, "framework");
    if (!framework.empty()) complete(run, models::load_framework(framework));
    if (run.loader == "ahead") run.loader.clear();
    run.devices = row.devices > 0 ? row.devices : std::llround(number(settings, "devices", 0.0));
    if (run.devices < 1) throw InputError("the number of devices is not said");
    const double global = number(settings, "global_batch", row.number("global_batch"));
    const double batch = number(settings, "batch", row.number("batch_per_device"));
    const double copies = validate::copies(run, settings);
    if (batch > 0 && setting(settings, "global_batch").empty()) {
        run.batch = std::max<std::int64_t>(1, std::llround(batch * static_cast<double>(run.devices) / copies));
    } else if (global > 0) {
        run.batch = std::max<std::int64_t>(1, std::llround(global / copies));
    } else {
        throw InputError("the batch is not said");
    }
    return run;
}

CollectiveRun collective_run(const PublishedRow& row, const ReplaySettings& settings) {
    CollectiveRun run;
    run.kind = needed(settings, "collective", row, "model");
    run.machine = needed(settings, "machine", row, "machine");
    if (const std::string each = setting(settings, "placement"); !each.empty())
        run.per_node = parse_int(each, "placement");
    run.algorithm = setting(settings, "algorithm");
    run.devices = row.devices;
    run.bytes = std::llround(number(settings, "bytes", std::nullopt));
    if (run.bytes == 0) run.bytes = std::llround(number(settings, "pair_bytes", std::nullopt)) * row.devices;
    run.window = std::max<std::int64_t>(1, std::llround(number(settings, "window", std::nullopt)));
    if (const std::string before = setting(settings, "before"); !before.empty())
        run.before = parse_quantity<Seconds>(before);
    if (run.devices < 2 || run.bytes < 1) throw InputError("the bytes or the devices of the collective are not said");
    return run;
}

StagingRun staging_run(const PublishedRow& row, const ReplaySettings& settings) {
    StagingRun run{.machine = needed(settings, "machine", row, "machine"),
                   .from = needed(settings, "stage", row, "strategy"),
                   .to = needed(settings, "input", row, "strategy"),
                   .nodes = row.devices,
                   .samples = std::llround(number(settings, "dataset", std::nullopt)),
                   .kept = std::llround(number(settings, "keep", std::nullopt)),
                   .sample = parse_quantity<Bytes>(needed(settings, "sample", row, "model"))};
    if (run.nodes < 1 || run.samples < 1 || run.kept < 1)
        throw InputError("the nodes, the samples or how many of them a node keeps are not said");
    return run;
}

const Machine& Replayer::machine(const std::string& name, std::int64_t per_node) {
    const auto found = machines_.find({name, per_node});
    if (found != machines_.end()) return found->second;
    Machine machine = models::load_machine(name);
    if (per_node > 0) machine = predict::with_devices_per_node(std::move(machine), per_node);
    return machines_.emplace(std::pair{name, per_node}, std::move(machine)).first->second;
}

const Network& Replayer::network(const std::string& name, const std::string& fuse) {
    const auto found = networks_.find({name, fuse});
    if (found != networks_.end()) return found->second;
    return networks_
        .emplace(std::pair{name, fuse}, models::fuse(models::load_network(name), models::parse_fusions(fuse)))
        .first->second;
}

predict::Job Replayer::job_of(const TrainingRun& run) {
    predict::Job job{.network = network(run.network, run.fuse),
                     .machine = machine(run.machine),
                     .plan = schedule::parse_plan(run.plan),
                     .devices = {run.devices},
                     .batch = run.batch,
                     .precision = run.precision,
                     .optimizer = run.optimizer,
                     .framework = {.transforms = run.transforms,
                                   .workspace = run.workspace,
                                   .dense_gradients = run.dense_gradients,
                                   .dilated_in_batches = run.dilated_in_batches,
                                   .update_passes = run.update_passes,
                                   .update_rate = run.update_rate,
                                   .update_after_sums = run.update_after_sums,
                                   .issue = run.issue,
                                   .statistics = run.statistics,
                                   .error = run.framework_error},
                     .mode = sim::Mode::folded};
    predict::set_layout(job.framework, run.layout);
    job.conditions.devices_per_node = run.per_node;
    job.conditions.loader = sim::parse_loader(run.loader);
    job.conditions.input = run.input;
    if (!run.sample.empty()) job.conditions.sample = parse_quantity<Bytes>(run.sample);
    if (!run.reading.empty()) {
        job.conditions.reading = {models::mounted_file_system(job.machine, run.input),
                                  parse_read_pattern(run.reading, {})};
    }
    if (!run.software.empty()) job.framework.passes = models::load_software(run.software);
    return job;
}

const predict::Setup& Replayer::setup(const TrainingRun& run) {
    if (last_ && last_->first == run) return last_->second;
    last_.emplace(run, predict::setup_of(job_of(run), run.devices));
    return last_->second;
}

ReplayedStep Replayer::step(const TrainingRun& run, const std::optional<predict::Anchor>& anchor) {
    const predict::Anchor of = anchor.value_or(predict::Anchor{.devices = 0});
    const Step key{run, of.devices, of.computation, of.messages, of.messages_left};
    const auto known = steps_.find(key);
    if (known != steps_.end()) return known->second;
    const predict::Setup& cold = setup(run);
    const predict::StepTime step = anchor ? predict::step_of(predict::anchored(cold, *anchor)) : predict::step_of(cold);
    Flops operations;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
        operations += flops(cold.schedule.network, pass);
    const StepResult result{step.time, static_cast<double>(global_batch(cold.schedule)),
                            static_cast<double>(run.devices), operations.value};
    return steps_.emplace(key, ReplayedStep{result, step.uncertainty}).first->second;
}

predict::Anchors Replayer::fitted(const std::vector<PilotRun>& pilots) {
    std::vector<predict::Setup> setups;
    std::vector<predict::MeasuredSetup> measured;
    for (const PilotRun& pilot : pilots) setups.push_back(setup(pilot.run));
    for (std::size_t i = 0; i < pilots.size(); ++i) measured.push_back({&setups[i], pilots[i].step});
    return predict::fitted(measured);
}

std::int64_t Replayer::nodes(const TrainingRun& run) {
    return locate(machine(run.machine, run.per_node), run.devices - 1).node + 1;
}

StepResult Replayer::time(const CollectiveRun& run, ZScore z_score) {
    // One message is the broadcast to a second device.
    const bool message = run.kind == "p2p";
    const auto kinds = collective_kinds();
    const auto kind = std::ranges::find_if(
        kinds, [&](CollectiveKind k) { return to_string(k) == run.kind || pass_of(k) == run.kind; });
    if (!message && kind == kinds.end()) throw InputError(fmt::format("'{}' is no collective", run.kind));
    sim::Call call{.kind = message ? CollectiveKind::broadcast : *kind,
                   .elements = std::max<std::int64_t>(1, run.window * run.bytes / 4)};
    if (message) call.algorithm.name = "tree";
    const Mesh mesh{{{"data", run.devices}}};
    std::optional<Seconds> time;
    std::string_view names = run.algorithm.empty() ? std::string_view{call.algorithm.name} : run.algorithm;
    for (bool more = true; more;) {
        const std::size_t end = names.find('|');
        call.algorithm = parse_algorithm(names.substr(0, end), call.kind);
        const Seconds one =
            sim::collective_time(call, mesh, machine(run.machine, run.per_node), sim::Mode::folded, z_score);
        time = time ? std::min(*time, one) : one;
        more = end != std::string_view::npos;
        if (more) names.remove_prefix(end + 1);
    }
    return {*time / static_cast<double>(run.window) + run.before, static_cast<double>(run.bytes),
            static_cast<double>(run.devices)};
}

StepResult Replayer::time(const StagingRun& run) {
    const sim::Staging staging =
        sim::stage(machine(run.machine), run.nodes, run.from, run.to, run.samples, run.kept, run.sample);
    return {staging.time(), static_cast<double>(run.samples), static_cast<double>(run.nodes)};
}

}  // namespace rehearse::validate
