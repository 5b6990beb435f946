// SPDX-License-Identifier: Apache-2.0
#include "predict/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/servers.hpp"
#include "core/quorum.hpp"
#include "sim/computation_error.hpp"
#include "sim/network/storage.hpp"
#include "sim/simulate.hpp"

namespace rehearse::predict {

namespace {

double sigma_of(const Setup& setup) {
    const Jitter& jitter = setup.conditions.jitter;
    if (!jitter.measured) return jitter.sigma;
    if (const auto measured = sim::measured_noise(setup.schedule, setup.machine)) return *measured;
    throw InputError(fmt::format(
        "--noise measured: most kernels of this step were never measured on a device of '{}' (rehearse calibrate "
        "does it, for this-host); give a standard deviation instead, like 3%",
        setup.machine.name));
}

struct DrawnSteps {
    Seconds mean;
    std::vector<Seconds> steps;  // in rising order
};

// With servers the simulator draws by itself, for each step of each group, and these differ; the mean is the step of
// all groups together.
DrawnSteps drawn_steps(const Setup& setup, double sigma) {
    const Conditions& conditions = setup.conditions;
    const int samples = conditions.jitter.samples;
    const sim::Noise noise{sigma, conditions.seed};
    sim::Options noisy = setup.options;
    noisy.links = false;
    noisy.iterations = 1;
    if (setup.schedule.methods.get<Servers>().count > 0) {
        noisy.noise = noise;
        noisy.iterations = std::max(samples, setup.options.iterations);
        const Timeline timeline = sim::simulate(setup.schedule, setup.simulated(), noisy).timeline;
        std::vector<Seconds> steps = steady_steps(timeline, ranks(setup.schedule.mesh));
        std::ranges::sort(steps);
        return {summarize(setup.schedule, timeline).step, std::move(steps)};
    }
    DrawnSteps drawn_ones;
    std::vector<Seconds>& steps = drawn_ones.steps;
    sim::Simulator simulator{setup.schedule, setup.simulated()};
    for (int sample = 0; sample < samples; ++sample) {
        // What is drawn comes on top of what each step has: cards that differ, learners, pilots.
        const std::vector<double> drawn = sim::paces(ranks(setup.schedule.mesh), setup.machine, {}, noise, sample);
        noisy.pace = setup.options.pace;
        for (std::size_t rank = 0; rank < drawn.size(); ++rank) noisy.pace[rank] *= drawn[rank];
        steps.push_back(simulator.step(noisy));
    }
    std::ranges::sort(steps);
    drawn_ones.mean = std::accumulate(steps.begin(), steps.end(), Seconds{}) * (1 / static_cast<double>(samples));
    return drawn_ones;
}

}  // namespace

std::optional<NoisyStep> noisy_step(const Setup& setup) {
    const double sigma = sigma_of(setup);
    if (sigma == 0) return std::nullopt;
    const auto [mean, steps] = drawn_steps(setup, sigma);
    const auto quantile = [&steps = steps](double q) {
        return steps[at(std::lround(q * static_cast<double>(steps.size() - 1)))];
    };
    const double samples = static_cast<double>(global_batch(setup.schedule)) * setup.options.quorum;
    return NoisyStep{
        sigma, setup.conditions.jitter.samples, mean, quantile(0.05), quantile(0.95), samples / mean.value};
}

std::optional<Input> input_of(const Setup& setup, const Point& point, std::optional<std::int64_t> dataset) {
    const Conditions& conditions = setup.conditions;
    if (conditions.input.empty()) return std::nullopt;
    const StorageTier& tier = sim::storage_tier(setup.machine, conditions.input);
    const Bytes sample = sample_of(conditions, setup.schedule.network);
    const Summary& time = point.figures.time;
    const Bytes all = sample * static_cast<double>(point.figures.global_batch);
    Input input{.rate = all / time.step};
    if (!tier.per_node && !conditions.loader) {
        const Bandwidth asked = all * (1 / static_cast<double>(point.figures.devices)) / (time.step - time.io_wait);
        input.bound_devices = sim::devices_until_bound(setup.machine, tier, asked);
    }
    if (conditions.data_servers) {
        input.data_servers = conditions.data_servers->count;
        input.cached_share = sim::cached_share(data_servers(conditions, setup.schedule.network, dataset));
    }
    if (conditions.stage.empty()) return input;
    if (!dataset) throw InputError("--stage needs --dataset: how many samples there are");
    const std::int64_t kept = std::min(conditions.keep.value_or((*dataset + point.nodes - 1) / point.nodes), *dataset);
    input.left_out = std::max<std::int64_t>(*dataset - kept * point.nodes, 0);
    input.staging = sim::stage(setup.machine, point.nodes, conditions.stage, conditions.input, *dataset, kept, sample);
    return input;
}

std::optional<Checkpoints> checkpoints_of(const Setup& setup, Seconds step) {
    if (!setup.conditions.checkpoint) return std::nullopt;
    const CheckpointPlan& plan = *setup.conditions.checkpoint;
    Checkpoints checkpoints{.written = sim::checkpoint(setup.schedule, setup.machine, plan.tier)};
    const Seconds training = static_cast<double>(plan.every) * step, writing = checkpoints.written.time;
    checkpoints.share = writing / (training + writing);
    return checkpoints;
}

Through through_of(const Schedule& schedule, const Timeline& timeline) {
    std::map<std::int64_t, Seconds> through;  // by group
    for (const Event& event : timeline.events) {
        if (event.rank >= ranks(schedule.mesh)) continue;
        Seconds& end = through[event.rank];
        end = std::max(end, event.end);
    }
    std::vector<Seconds> ends;
    for (const auto& [rank, end] : through) ends.push_back(end);
    std::ranges::sort(ends);
    const std::int64_t waited =
        waited_for(schedule.methods.get<Servers>().quorum, static_cast<std::int64_t>(ends.size()));
    return {ends.at(at(waited - 1)), ends.back()};
}

}  // namespace rehearse::predict
