// SPDX-License-Identifier: Apache-2.0
#include "cli/conditions.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cli/choice.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "schedule/input.hpp"
#include "sim/band.hpp"
#include "sim/simulator.hpp"
#include "sim/staging.hpp"

namespace rehearse::cli {

namespace {

// "3=1.5", "node0:nic0:*=50%".
std::pair<std::string, double> assignment(std::string_view option, const std::string& text) {
    const std::size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
        throw InputError(
            fmt::format("{} {}: write {}", option, text,
                        option == "--slow" ? "NODE=TIMES, like 3=1.5" : "LINK=SHARE, like node0:nic0:*=50%"));
    }
    return {text.substr(0, equals), share_or_infinity(option, text.substr(equals + 1))};
}

double share(std::string_view option, const std::string& text, double absent) {
    return text.empty() ? absent : share_or_infinity(option, text);
}

double sigma(const Conditions& conditions, const Schedule& schedule, const Machine& machine) {
    if (conditions.noise != "measured") return share("--noise", conditions.noise, 0);
    if (const auto measured = sim::measured_noise(schedule, machine)) return *measured;
    throw InputError(fmt::format(
        "--noise measured: most kernels of this step were never measured on a device of '{}' (rehearse calibrate "
        "does it, for this-host); give a standard deviation instead, like 3%",
        machine.name));
}

// Of the replicas, those that a step waits for.
double waited_for(const Conditions& conditions, std::int64_t devices) {
    if (conditions.backup == 0) return share("--quorum", conditions.quorum, 1);
    if (conditions.backup < 0 || conditions.backup >= devices) {
        throw InputError(
            fmt::format("--backup {}: from 0 to {} of {} devices", conditions.backup, devices - 1, devices));
    }
    return static_cast<double>(devices - conditions.backup) / static_cast<double>(devices);
}

Bytes sample_of(const Conditions& conditions, const Network& network) {
    return conditions.sample.empty() ? schedule::sample_size(network) : parse_quantity<Bytes>(conditions.sample);
}

std::vector<sim::SlowNode> slow_nodes(const Conditions& conditions) {
    std::vector<sim::SlowNode> slow;
    for (const std::string& text : conditions.slow) {
        const auto [node, times] = assignment("--slow", text);
        slow.push_back({parse_int(node, "--slow"), times});
    }
    return slow;
}

}  // namespace

void add_conditions(CLI::App& app, Conditions& conditions) {
    app.add_option(
           "--noise", conditions.noise,
           "jitter of each device in each step, relative: adds the noisy step; measured: as its kernels differed "
           "when they were calibrated")
        ->option_text("SIGMA|measured");
    app.add_option("--samples", conditions.samples, "steps under noise")->capture_default_str()->option_text("N");
    app.add_option("--seed", conditions.seed, "of noise and of random placement")
        ->capture_default_str()
        ->option_text("N");
    app.add_option("--slow", conditions.slow, "a node whose kernels take that many times as long; may be repeated")
        ->option_text("NODE=TIMES");
    app.add_option("--degrade", conditions.degrade,
                   "links with that share of their bandwidth, 0 of failed ones; * is any text; repeatable")
        ->option_text("LINK=SHARE");
    add_choice<sim::Placement>(app, "--placement", conditions.placement,
                               {{"contiguous", sim::Placement::contiguous},
                                {"random", sim::Placement::random},
                                {"scattered", sim::Placement::scattered}},
                               "which of the machine's nodes the job gets");
    app.add_option("--quorum", conditions.quorum, "a step waits for that share of the devices only (folded mode)")
        ->option_text("SHARE");
    app.add_option("--backup", conditions.backup, "so many devices more than a step waits for (Chen et al. 2016)")
        ->option_text("N");
    app.add_option("--input", conditions.input, "samples are read from this storage tier, a step ahead")
        ->option_text("TIER");
    app.add_option("--sample", conditions.sample, "a sample as stored, like 110kB; else the network's input as numbers")
        ->option_text("SIZE");
    app.add_option("--loader", conditions.loader,
                   "ahead, by others, or inline: the training process stacks each batch and copies it to its device "
                   "before the step (PyTorch's num_workers=0); inline:stack=RATE:copy=RATE (or off)")
        ->option_text("ahead|inline[:...]");
    app.add_option("--stage", conditions.stage, "the data set is first copied from this shared tier to --input's")
        ->option_text("TIER");
    app.add_option("--keep", conditions.keep, "samples that a node keeps when staged; else its share of the data set")
        ->option_text("N");
    app.add_option("--data-servers", conditions.data_servers,
                   "samples come from that many nodes behind the job's, which keep them in memory (Project Adam)")
        ->option_text("N");
    app.add_option("--cache", conditions.cache, "memory that each of these has for samples; the rest lies in --input's")
        ->option_text("SIZE");
    app.add_option("--checkpoint", conditions.checkpoint, "training stops to write checkpoints to this storage tier")
        ->option_text("TIER");
    app.add_option("--checkpoint-every", conditions.checkpoint_every, "steps from one checkpoint to the next")
        ->option_text("STEPS");
}

std::optional<sim::Loader> inline_loader(const std::string& text) {
    const std::vector<std::string_view> words = split(text, ':');
    if ((text.empty() || words[0] == "ahead") && words.size() <= 1) return std::nullopt;
    if (words[0] != "inline") {
        throw InputError(fmt::format("--loader {}: ahead, inline or inline:stack=RATE:copy=RATE{}", text,
                                     did_you_mean(words[0], std::vector<std::string_view>{"ahead", "inline"})));
    }
    sim::Loader loader;
    for (std::size_t i = 1; i < words.size(); ++i) {
        const std::string_view word = words[i];
        if (word == "copy=off") {
            loader.copy = Bandwidth{0};
        } else if (word == "stack=off") {
            loader.stack = Bandwidth{0};
        } else if (word.starts_with("copy=")) {
            loader.copy = parse_quantity<Bandwidth>(word.substr(5));
        } else if (word.starts_with("stack=")) {
            loader.stack = parse_quantity<Bandwidth>(word.substr(6));
        } else {
            throw InputError(fmt::format("--loader {}: '{}' is neither stack=RATE nor copy=RATE", text, word));
        }
        const Bandwidth rate = word.starts_with("stack=") ? loader.stack : *loader.copy;
        if (!word.ends_with("=off") && !(rate > Bandwidth{})) {
            throw InputError(fmt::format("--loader {}: '{}' is not above 0", text, word));
        }
    }
    return loader;
}

void check(const Conditions& conditions) {
    inline_loader(conditions.loader);
    if (conditions.samples < 1) throw InputError(fmt::format("--samples {}: at least 1", conditions.samples));
    if (!conditions.quorum.empty() && conditions.backup != 0) {
        throw InputError("--quorum and --backup say the same in two ways: give one of them");
    }
    if (conditions.data_servers.has_value() != !conditions.cache.empty()) {
        throw InputError("--data-servers N and --cache SIZE go together: how many, and memory for samples of each");
    }
    if (conditions.data_servers && !conditions.stage.empty()) {
        throw InputError("--data-servers send samples as they are read; --stage copies them before: give one of them");
    }
    const bool served = conditions.data_servers.has_value();
    if (!served && conditions.input.empty() && !(conditions.stage.empty() && conditions.sample.empty())) {
        throw InputError("--stage and --sample need --input: the tier that training reads from");
    }
    if (conditions.checkpoint.empty() != !conditions.checkpoint_every.has_value()) {
        throw InputError("--checkpoint TIER and --checkpoint-every STEPS go together");
    }
    if (conditions.checkpoint_every.value_or(1) < 1) {
        throw InputError(fmt::format("--checkpoint-every {}: at least 1 step", *conditions.checkpoint_every));
    }
    if (conditions.keep && (*conditions.keep < 1 || conditions.stage.empty())) {
        throw InputError(fmt::format("--keep {}: at least 1, and with --stage", *conditions.keep));
    }
}

void add_checkpoint(nlohmann::ordered_json& point, const Schedule& schedule, const Machine& machine,
                    const Conditions& conditions) {
    if (conditions.checkpoint.empty()) return;
    const sim::Checkpoint written = sim::checkpoint(schedule, machine, conditions.checkpoint);
    const double training = point["step_s"].get<double>() * static_cast<double>(*conditions.checkpoint_every);
    point["checkpoint_bytes"] = written.size.value;
    point["checkpoint_nodes"] = written.writers;
    point["checkpoint_s"] = written.time.value;
    point["checkpoint_share"] = written.time.value / (training + written.time.value);
}

sim::Options conditioned(sim::Options options, const Conditions& conditions, const Machine& machine,
                         std::int64_t devices) {
    for (const std::string& text : conditions.degrade) {
        const auto [link, left] = assignment("--degrade", text);
        options.degraded.push_back({link, left});
    }
    options.nodes = sim::placed_nodes(conditions.placement, machine, devices, conditions.seed);
    options.quorum = waited_for(conditions, devices);
    if (!conditions.slow.empty()) options.pace = sim::paces(devices, machine, slow_nodes(conditions));
    return options;
}

namespace {

sim::DataServers data_servers(const Conditions& conditions, const Network& network, std::int64_t dataset) {
    if (dataset < 1) throw InputError("--data-servers needs --dataset: how many samples there are");
    return {.count = *conditions.data_servers,
            .cache = parse_quantity<Bytes>(conditions.cache),
            .samples = static_cast<double>(dataset) * sample_of(conditions, network),
            .behind = conditions.input};
}

}  // namespace

std::optional<Served> with_data_servers(const Machine& machine, const Conditions& conditions, const Network& network,
                                        std::int64_t devices, std::optional<std::int64_t> dataset) {
    const bool can_be = devices >= 1 && devices <= device_count(machine);  // else the schedule's maker says so
    if (!conditions.data_servers || !can_be) return std::nullopt;
    const std::int64_t nodes = locate(machine, devices - 1).node + 1;
    const sim::DataServers servers = data_servers(conditions, network, dataset.value_or(0));
    Served served{machine, conditions};
    served.machine.storage.push_back(sim::served_tier(machine, nodes, servers));
    served.conditions.input = served.machine.storage.back().name;
    return served;
}

void add_input(Schedule& schedule, const Conditions& conditions, Machine& machine) {
    const std::optional<sim::Loader> loader = inline_loader(conditions.loader);
    if (!conditions.input.empty()) sim::storage_tier(machine, conditions.input);
    const schedule::InputData input{conditions.input, sample_of(conditions, schedule.network)};
    if (loader) {
        add_inline_input(schedule, input, sim::loader_tiers(machine, *loader, ranks(schedule.mesh)));
        machine = sim::with_loader(std::move(machine), *loader, schedule);
    } else if (!conditions.input.empty()) {
        schedule::add_input(schedule, input);
    }
}

void add_noise(nlohmann::ordered_json& point, const Schedule& schedule, const Machine& machine,
               const sim::Options& options, const Conditions& conditions) {
    const sim::Noise noise{sigma(conditions, schedule, machine), conditions.seed};
    if (noise.sigma == 0) return;
    const std::vector<sim::SlowNode> slow = slow_nodes(conditions);
    std::vector<double> steps;
    sim::Options noisy = options;
    noisy.links = false;
    noisy.iterations = 1;
    if (schedule.servers.count > 0) {  // draws by itself, for each step of each group
        noisy.noise = noise;
        noisy.iterations = std::max(conditions.samples, options.iterations);
        steps.push_back(summarize(schedule, sim::simulate(schedule, machine, noisy).timeline).step.value);
    } else {
        sim::Simulator simulator{schedule, machine};
        for (int sample = 0; sample < conditions.samples; ++sample) {
            noisy.pace = sim::paces(ranks(schedule.mesh), machine, slow, noise, sample);
            steps.push_back(simulator.step(noisy).value);
        }
    }
    std::ranges::sort(steps);
    const auto quantile = [&](double q) {
        return steps[static_cast<std::size_t>(std::lround(q * static_cast<double>(steps.size() - 1)))];
    };
    const double mean = std::accumulate(steps.begin(), steps.end(), 0.0) / static_cast<double>(steps.size());
    point["noise"] = noise.sigma;
    point["noise_samples"] = conditions.samples;
    point["noisy_step_s"] = mean;
    point["noisy_p05_s"] = quantile(0.05);
    point["noisy_p95_s"] = quantile(0.95);
    // What comes late is not waited for, and does not count.
    point["noisy_samples_per_s"] = static_cast<double>(global_batch(schedule)) * options.quorum / mean;
}

void add_storage(nlohmann::ordered_json& point, const Schedule& schedule, const Machine& machine,
                 const Conditions& conditions, std::optional<std::int64_t> dataset) {
    if (conditions.input.empty()) return;
    const bool inside = inline_loader(conditions.loader).has_value();
    const StorageTier& tier = sim::storage_tier(machine, conditions.input);
    const Bytes sample = sample_of(conditions, schedule.network);
    const double devices = point["devices"].get<double>();
    const Seconds step{point["step_s"].get<double>() - point["io_wait_s"].get<double>()};
    const Bytes each = sample * (static_cast<double>(global_batch(schedule)) / devices);
    point["input_bytes_per_s"] = (each * devices / step).value;
    if (!tier.per_node && !inside) point["io_bound_devices"] = sim::devices_until_bound(tier, each / step);
    if (conditions.data_servers) {
        point["data_servers"] = *conditions.data_servers;
        point["cached_share"] = sim::cached_share(data_servers(conditions, schedule.network, dataset.value_or(0)));
    }
    if (conditions.stage.empty()) return;
    if (!dataset) throw InputError("--stage needs --dataset: how many samples there are");
    const auto nodes = point["nodes"].get<std::int64_t>();
    const std::int64_t kept = conditions.keep.value_or((*dataset + nodes - 1) / nodes);
    const sim::Staging staging =
        sim::stage(machine, nodes, conditions.stage, conditions.input, *dataset, std::min(kept, *dataset), sample);
    point["staging_s"] = staging.time().value;
    point["staging_read_s"] = staging.read.value;
    point["staging_spread_s"] = staging.spread.value;
    point["staging_write_s"] = staging.written.value;
}

}  // namespace rehearse::cli
