// SPDX-License-Identifier: Apache-2.0
#include "cli/conditions.hpp"

#include <fmt/format.h>

#include <utility>

#include "cli/choice.hpp"
#include "cli/command_line.hpp"
#include "cli/report.hpp"
#include "core/error.hpp"
#include "models/file_systems.hpp"

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

// Options that say something together.
void check_pairs(const ConditionOptions& conditions) {
    if (!conditions.quorum.empty() && conditions.backup != 0) {
        throw InputError("--quorum and --backup say the same in two ways: give one of them");
    }
    if (conditions.data_servers.has_value() != !conditions.cache.empty()) {
        throw InputError("--data-servers N and --cache SIZE go together: how many, and memory for samples of each");
    }
    if (conditions.checkpoint.empty() != !conditions.checkpoint_every.has_value()) {
        throw InputError("--checkpoint TIER and --checkpoint-every STEPS go together");
    }
}

}  // namespace

void add_conditions(CommandLine& app, ConditionOptions& conditions) {
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
    app.add_option("--devices-per-node", conditions.devices_per_node,
                   "the job gets so many devices of each node, its first; default all")
        ->option_text("K");
    app.add_option("--quorum", conditions.quorum, "a step waits for that share of the devices only (folded mode)")
        ->option_text("SHARE");
    app.add_option("--backup", conditions.backup, "so many devices more than a step waits for (Chen et al. 2016)")
        ->option_text("N");
    app.add_option("--input", conditions.input, "samples are read from this storage tier, a step ahead")
        ->option_text("TIER");
    app.add_option("--sample", conditions.sample, "a sample as stored, like 110kB; else the network's input as numbers")
        ->option_text("SIZE");
    app.add_option("--reading", conditions.reading,
                   "how samples are read from --input's tier: files opened for a sample, size of a read, threads of a "
                   "process, servers that a sample lies on, steps asked for ahead")
        ->option_text("files=N:request=SIZE:readers=N:stripes=N:ahead=STEPS");
    app.add_option("--file-system", conditions.file_system,
                   "with --reading: what the tier is; else what the machine mounts there")
        ->option_text("NAME|FILE.toml");
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

predict::Conditions conditions_of(const ConditionOptions& options, const Machine& machine) {
    check_pairs(options);
    predict::Conditions conditions;
    conditions.loader = sim::parse_loader(options.loader);
    conditions.jitter.measured = options.noise == "measured";
    if (!conditions.jitter.measured) conditions.jitter.sigma = share("--noise", options.noise, 0);
    conditions.jitter.samples = options.samples;
    conditions.seed = options.seed;
    for (const std::string& text : options.slow) {
        const auto [node, times] = assignment("--slow", text);
        conditions.slow.push_back({parse_int(node, "--slow"), times});
    }
    for (const std::string& text : options.degrade) {
        const auto [link, left] = assignment("--degrade", text);
        conditions.degraded.push_back({link, left});
    }
    conditions.quorum = share("--quorum", options.quorum, 1);
    conditions.backup = options.backup;
    conditions.placement = options.placement;
    if (options.devices_per_node) {
        if (*options.devices_per_node < 1)
            throw InputError(fmt::format("--devices-per-node {}: at least 1", *options.devices_per_node));
        conditions.devices_per_node = *options.devices_per_node;
    }
    conditions.input = options.input;
    conditions.stage = options.stage;
    if (!options.sample.empty()) conditions.sample = quantity_of<Bytes>("--sample", options.sample);
    conditions.keep = options.keep;
    if (!options.reading.empty()) {
        if (options.input.empty()) throw InputError("--reading says how samples are read from --input's tier");
        conditions.reading = {options.file_system.empty() ? models::mounted_file_system(machine, options.input)
                                                          : models::load_file_system(options.file_system),
                              parse_read_pattern(options.reading, {})};
    } else if (!options.file_system.empty()) {
        throw InputError("--file-system goes with --reading: how samples are read from it");
    }
    if (options.data_servers) {
        conditions.data_servers = {*options.data_servers, quantity_of<Bytes>("--cache", options.cache)};
    }
    if (options.checkpoint_every) conditions.checkpoint = {options.checkpoint, *options.checkpoint_every};
    check(conditions);
    return conditions;
}

}  // namespace rehearse::cli
