// SPDX-License-Identifier: Apache-2.0
#include "predict/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/methods/servers.hpp"
#include "core/precision.hpp"
#include "predict/language_network.hpp"
#include "predict/parts.hpp"
#include "predict/spread.hpp"
#include "schedule/memory.hpp"
#include "schedule/own_library.hpp"
#include "sim/collective/choose.hpp"
#include "sim/simulate.hpp"

namespace rehearse::predict {

namespace {

Seconds now() {
    return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
}

// Data servers are a storage tier of the machine, and samples are read from it.
void add_data_servers(Setup& setup, const Job& job, std::int64_t devices) {
    const bool can_be = devices >= 1 && devices <= device_count(setup.machine);  // else the schedule's maker says so
    if (!setup.conditions.data_servers || !can_be) return;
    const std::int64_t nodes = locate(setup.machine, devices - 1).node + 1;
    const sim::DataServers servers = data_servers(setup.conditions, job.network, job.training.dataset);
    setup.machine.storage.push_back(sim::served_tier(setup.machine, nodes, servers));
    setup.conditions.input = setup.machine.storage.back().name;
}

}  // namespace

void check(const Job& job) {
    check(job.conditions);
    if (job.steps < 1) throw InputError(fmt::format("--steps {}: at least 1", job.steps));
    check(job.training);
    check(job.pilots);
}

void follow(Job& job, const models::FrameworkProfile& profile) {
    job.plan = schedule::parse_plan(models::plan_with(job.plan.text, profile));
    job.framework = framework_of(profile, job.optimizer);
    job.conditions.loader = sim::parse_loader(profile.value("loader"));
}

schedule::Plan planned(const Job& job) {
    schedule::Plan plan = job.plan;
    plan.methods.edit<MemoryHabits>() = job.framework.memory;
    return plan;
}

schedule::Job scheduled(const Job& job, std::int64_t devices) {
    return {devices, job.batch, job.global_batch, job.precision, job.optimizer};
}

Setup setup_of(const Job& job, std::int64_t devices) {
    Setup setup{.devices = devices,
                .machine = for_network(job.machine, job.network),
                .conditions = job.conditions,
                .schedule = {},
                .options = {}};
    if (job.conditions.devices_per_node > 0) {
        setup.machine = with_devices_per_node(std::move(setup.machine), job.conditions.devices_per_node);
    }
    add_data_servers(setup, job, devices);
    setup.schedule = make_schedule(job.network, setup.machine, planned(job), scheduled(job, devices));
    if (job.plan.all_reduce && job.plan.all_reduce->name == "auto") {
        sim::choose_algorithms(setup.schedule, setup.machine);
    }
    if (job.framework.megatron_memory) {
        setup.language_memory = language_memory_of_stages(job.plan, setup.schedule);
        Bytes& most = setup.schedule.memory_peak;
        if (!setup.language_memory.empty()) most = Bytes{};
        for (const LanguageMemory& stage : setup.language_memory) most = std::max(most, total(stage));
    }
    if (job.framework.update_after_sums) await_sums(setup.schedule);
    add_input(setup.schedule, setup.conditions, setup.machine);
    if (job.framework.passes) setup.machine = with_passes(std::move(setup.machine), *job.framework.passes);
    if (!job.plan.keep_attention.value_or(true)) setup.machine = with_fused_attention(std::move(setup.machine));
    if (!job.framework.plain() || issues_ahead(setup.machine))
        setup.priced = priced(setup.machine, setup.schedule, job.framework);
    setup.framework = job.framework;
    setup.options = conditioned({.mode = job.mode, .iterations = job.steps, .links = job.links}, setup.conditions,
                                setup.machine, setup.schedule, devices);
    setup.waiting = waiting(setup.schedule, setup.machine, setup.options.quorum);
    setup.crowded = crowded(setup.schedule, setup.machine);
    setup.options.pace.resize(setup.waiting.size(), 1);
    for (std::size_t rank = 0; rank < setup.waiting.size(); ++rank) {
        setup.options.pace[rank] *= setup.waiting[rank] * setup.crowded[rank];
    }
    return setup;
}

namespace {

// They are paid for as long as those that train.
std::int64_t data_server_nodes(const Conditions& conditions) {
    return conditions.data_servers ? conditions.data_servers->count : 0;
}

// Nothing where a device has no peak for the type of products.
std::optional<double> utilization(const Setup& setup, const StepFigures& figures) {
    FlopRate peak;
    for (RankIndex rank{0}; rank < ranks(setup.schedule.mesh); ++rank) {
        const DeviceClass& device = class_of(setup.machine, rank);
        const auto found = device.peak.find(types_of(setup.schedule.precision).product);
        if (found == device.peak.end()) return std::nullopt;
        peak += found->second.value;
    }
    return figures.flops_per_s() / peak;
}

}  // namespace

MemoryFit memory_of(const Setup& setup) {
    const schedule::Tightest tightest = schedule::tightest(setup.schedule, setup.machine);
    const Bytes capacity = tightest.device->memory.value;
    const Bytes peak = setup.language_memory.empty() ? total(tightest.use) : setup.schedule.memory_peak;
    return {peak, capacity, peak <= capacity};
}

Point point_of(const Job& job, const Setup& setup, Timeline& timeline) {
    const Seconds begin = now();
    sim::Simulator simulator{setup.schedule, setup.simulated()};
    sim::Prediction middle = simulator.simulate(setup.options);
    const Summary summary = summarize(setup.schedule, middle.timeline);
    Point point{.figures = figures_of(setup.schedule, summary),
                .nodes = locate(setup.machine, setup.devices - 1).node + 1,
                .mode = middle.mode,
                .band = {summary.step, summary.step},
                .memory = memory_of(setup),
                .flows = middle.flows,
                .bounds = middle.bounds};
    point.figures.memory = point.memory.peak;
    point.figures.counted = setup.options.quorum;
    point.anchor = setup.anchor;
    point.waiting = setup.waiting.front();
    point.utilization = utilization(setup, point.figures);
    point.guessed = guessed_share(setup.schedule.network);
    point.rings = schedule::why_rings(job.plan, setup.machine, setup.schedule);
    if (job.bands) {
        const StepTime step{summary.step, uncertainty_of(setup, simulator, summary.step)};
        point.uncertainty = step.uncertainty;
        point.band = step.band();
    }
    if (setup.schedule.methods.get<Servers>().count > 0) {
        point.staleness = Staleness{std::move(middle.staleness)};
        point.drift = middle.drift;
        point.through = through_of(setup.schedule, middle.timeline);
    }
    point.noisy = noisy_step(setup);
    point.input = input_of(setup, point, job.training.dataset);
    point.checkpoints = checkpoints_of(setup, point.noisy ? point.noisy->mean : summary.step);
    point.training = training_time(
        job.training, {.samples_per_s = point.samples_per_s(),
                       .global_batch = point.figures.global_batch,
                       .nodes = point.nodes + data_server_nodes(setup.conditions),
                       .checkpoint_share = point.checkpoints ? point.checkpoints->share : 0,
                       .staging = point.input && point.input->staging ? point.input->staging->time() : Seconds{}});
    timeline = std::move(middle.timeline);
    point.wall = now() - begin;
    return point;
}

namespace {

Setup setup_of(const Job& job, std::int64_t devices, const Anchors& anchors) {
    Setup setup = setup_of(job, devices);
    return anchors.pilots.empty() ? setup : anchored(std::move(setup), anchors.of(devices));
}

// What the job names, else the smallest point that fits; nothing where none does.
std::optional<Point> baseline_of(const Job& job, const Anchors& anchors, const std::vector<Point>& points) {
    if (!job.baseline) {
        const auto first = std::ranges::find_if(points, [](const Point& point) { return point.memory.fits; });
        return first == points.end() ? std::nullopt : std::optional{*first};
    }
    Timeline unused;
    Point baseline = point_of(job, setup_of(job, *job.baseline, anchors), unused);
    if (!baseline.memory.fits) {
        throw InfeasibleError(fmt::format("--baseline {}: does not fit: a device would need {} of its {}",
                                          *job.baseline, to_string(baseline.memory.peak),
                                          to_string(baseline.memory.capacity)));
    }
    return baseline;
}

// Throughput of each point that fits, and of each of its devices.
void relate(std::vector<Point>& points, const Point& baseline) {
    for (Point& point : points) {
        if (!point.memory.fits) continue;
        point.speedup = point.figures.samples_per_s() / baseline.figures.samples_per_s();
        point.efficiency =
            *point.speedup * static_cast<double>(baseline.figures.devices) / static_cast<double>(point.figures.devices);
    }
}

// A point that was measured is as certain as repeated runs are.
void add_measured(Point& point, std::int64_t devices, const std::vector<ComparedPilot>& pilots, bool with_band) {
    const auto pilot = std::ranges::find(pilots, devices, &ComparedPilot::devices);
    if (pilot == pilots.end()) return;
    point.measured = pilot->measured;
    const double noise = distance_error(pilot->devices, pilot->devices);
    if (with_band) point.band = prices::around(pilot->measured, prices::log_reach(noise));
}

}  // namespace

Prediction predict(const Job& job, const std::function<void(std::size_t, std::int64_t)>& done) {
    check(job);
    Prediction prediction;
    Piloted pilots = piloted(job);
    prediction.anchors = std::move(pilots.anchors);
    prediction.pilots = std::move(pilots.compared);
    const std::set<std::int64_t> devices(job.devices.begin(), job.devices.end());
    for (const std::int64_t each : devices) {
        prediction.setup = setup_of(job, each, prediction.anchors);
        prediction.points.push_back(point_of(job, prediction.setup, prediction.timeline));
        add_measured(prediction.points.back(), each, prediction.pilots, job.bands);
        if (done) done(prediction.points.size(), each);
    }
    const std::optional<Point> baseline = baseline_of(job, prediction.anchors, prediction.points);
    if (baseline) relate(prediction.points, *baseline);
    return prediction;
}

}  // namespace rehearse::predict
