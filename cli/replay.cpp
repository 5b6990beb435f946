// SPDX-License-Identifier: Apache-2.0
#include "cli/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/conditions.hpp"
#include "cli/habits.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "models/fuse.hpp"
#include "models/models.hpp"
#include "schedule/input.hpp"
#include "sim/price.hpp"
#include "sim/simulate.hpp"
#include "sim/staging.hpp"

namespace rehearse::cli {

namespace {

using models::PublishedRow;
using models::ReplaySettings;

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

template <typename Value, std::size_t count>
Value choice(const std::array<Value, count>& values, const std::string& text, std::string_view what, Value otherwise) {
    if (text.empty()) return otherwise;
    const auto found = std::ranges::find_if(values, [&](Value value) { return to_string(value) == text; });
    if (found == values.end()) throw InputError(fmt::format("{} '{}' is not known", what, text));
    return *found;
}

// The machine when a job gets so many devices of each node: the others, and their links, are left out.
Machine with_devices(Machine machine, std::int64_t each) {
    for (NodeKind& kind : machine.nodes) {
        if (each < 1 || each > devices_per_node(kind)) {
            throw InputError(fmt::format("placement: {} devices of each node '{}', which has {}", each, kind.name,
                                         devices_per_node(kind)));
        }
        std::vector<int> number;  // by vertex: its new one, or -1
        std::vector<Vertex> kept;
        std::int64_t devices = 0;
        for (const Vertex& vertex : kind.vertices) {
            const bool stays = vertex.kind != VertexKind::device || ++devices <= each;
            number.push_back(stays ? static_cast<int>(kept.size()) : -1);
            if (stays) kept.push_back(vertex);
        }
        const auto at = [&](int vertex) { return number[static_cast<std::size_t>(vertex)]; };
        std::erase_if(kind.links, [&](const NodeLink& link) { return at(link.a) < 0 || at(link.b) < 0; });
        for (NodeLink& link : kind.links) {
            link.a = at(link.a);
            link.b = at(link.b);
        }
        kind.vertices = std::move(kept);
    }
    return machine;
}

// Every problem of the schedule at `scale` times its price.
Machine priced(Machine machine, const Schedule& schedule, const TrainingRun& run, ComputeScale scale) {
    for (DeviceClass& device : machine.classes) {
        std::map<std::string, Measured> prices;
        const auto add = [&](const Problem& problem) {
            std::string name = to_string(problem);
            if (prices.contains(name)) return;
            const Price known = with_habits(price(problem, device), problem, device, run);
            prices.emplace(std::move(name), Measured{scale.factor * known.time, scale.error.value_or(known.error), 1,
                                                     fmt::format("{:.3g} times: {}", scale.factor, known.source)});
        };
        for (const RankClass& rank_class : schedule.classes) {
            for (const Step& step : rank_class.steps) {
                if (const Problem* problem = problem_of(step)) add(*problem);
            }
        }
        device.measured = std::move(prices);
    }
    return machine;
}

}  // namespace

double copies(const TrainingRun& run, const ReplaySettings& settings) {
    return number(settings, "copies", static_cast<double>(run.devices));
}

TrainingRun training_run(const PublishedRow& row, const ReplaySettings& settings) {
    TrainingRun run;
    run.network = needed(settings, "network", row, "model");
    run.machine = needed(settings, "machine", row, "machine");
    if (const std::string each = setting(settings, "placement"); !each.empty()) run.machine += "#" + each;
    run.plan = needed(settings, "plan", row, "strategy");
    if (const std::string fuse = setting(settings, "fuse"); !fuse.empty()) run.fuse = fuse;
    run.passes = setting(settings, "passes");
    run.loader = setting(settings, "loader");
    run.layout = setting(settings, "layout");
    if (!run.layout.empty() && run.layout != "nchw")
        throw InputError(fmt::format("layout '{}' is not nchw", run.layout));
    run.precision = choice(std::array{Precision::fp32, Precision::fp16, Precision::bf16, Precision::mixed},
                           needed(settings, "precision", row, "precision"), "precision", Precision::fp32);
    run.optimizer = choice(std::array{Optimizer::sgd, Optimizer::adam, Optimizer::lamb}, setting(settings, "optimizer"),
                           "optimizer", Optimizer::sgd);
    run.update_passes = number(settings, "update_passes", 0.0);
    run.devices = row.devices > 0 ? row.devices : std::llround(number(settings, "devices", 0.0));
    if (run.devices < 1) throw InputError("the number of devices is not said");
    const double global = number(settings, "global_batch", row.number("global_batch"));
    const double batch = number(settings, "batch", row.number("batch_per_device"));
    const double copies = cli::copies(run, settings);
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
    if (const std::string each = setting(settings, "placement"); !each.empty()) run.machine += "#" + each;
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

const Machine& Replayer::machine(const std::string& name) {
    const auto found = machines_.find(name);
    if (found != machines_.end()) return found->second;
    const std::size_t at = name.find('#');
    Machine machine = models::load_machine(name.substr(0, at));
    if (at != std::string::npos) {
        machine = with_devices(std::move(machine), parse_int(name.substr(at + 1), "placement"));
    }
    return machines_.emplace(name, std::move(machine)).first->second;
}

const Network& Replayer::network(const std::string& name, const std::string& fuse) {
    const auto found = networks_.find({name, fuse});
    if (found != networks_.end()) return found->second;
    return networks_
        .emplace(std::pair{name, fuse}, models::fuse(models::load_network(name), models::parse_fusions(fuse)))
        .first->second;
}

const Schedule& Replayer::schedule(const TrainingRun& run) {
    if (last_.second == nullptr || last_.first != run) {
        const schedule::Job job{.devices = run.devices,
                                .batch_per_device = run.batch,
                                .precision = run.precision,
                                .optimizer = run.optimizer};
        Schedule made =
            make_schedule(network(run.network, run.fuse), machine(run.machine), schedule::parse_plan(run.plan), job);
        if (const auto loader = inline_loader(run.loader))
            schedule::add_inline_input(made, {}, loader_tiers(machine(run.machine), *loader, ranks(made.mesh)));
        last_ = {run, std::make_shared<const Schedule>(std::move(made))};
    }
    return *last_.second;
}

StepResult Replayer::step(const TrainingRun& run, ComputeScale scale, Quantile quantile) {
    const std::tuple key{run, scale.factor, scale.error.value_or(-1), quantile.z};
    const auto known = steps_.find(key);
    if (known != steps_.end()) return known->second;
    const Schedule& schedule = this->schedule(run);
    Machine machine = this->machine(run.machine);
    if (!run.passes.empty()) machine = with_passes(std::move(machine), this->machine(run.passes));
    if (const auto loader = inline_loader(run.loader)) machine = with_loader(std::move(machine), *loader, schedule);
    machine = priced(std::move(machine), schedule, run, scale);
    const sim::Prediction prediction =
        sim::simulate(schedule, machine, {.mode = sim::Mode::folded, .quantile = quantile});
    Flops operations;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights})
        operations += flops(schedule.network, pass);
    const StepResult result{summarize(schedule, prediction.timeline).step, static_cast<double>(global_batch(schedule)),
                            static_cast<double>(run.devices), operations.value};
    steps_.emplace(key, result);
    return result;
}

StepResult Replayer::time(const CollectiveRun& run, Quantile quantile) {
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
        const Seconds one = sim::collective_time(call, mesh, machine(run.machine), sim::Mode::folded, quantile);
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

double fitted_scale(Replayer& replayer, const TrainingRun& run, Seconds step) {
    const auto excess = [&](double factor) { return (replayer.step(run, {.factor = factor}).step - step).value; };
    double before = 1, above = excess(before);
    double factor = std::max(0.01, step.value / (step.value + above));
    // Secants: a step is nearly a straight line over the factor; of one device that waits for nothing, through 0.
    const bool waits = run.devices > 1 || !run.loader.empty();
    for (int i = 0; i < 8 && waits; ++i) {
        const double now = excess(factor);
        if (std::abs(now) < 1e-4 * step.value || now == above) break;
        const double next = factor - now * (factor - before) / (now - above);
        before = factor;
        above = now;
        factor = std::clamp(next, 0.01, 10000.0);
    }
    return factor;
}

}  // namespace rehearse::cli
