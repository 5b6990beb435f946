// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "cli/choice.hpp"
#include "cli/command_line.hpp"
#include "cli/table_text.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "models/charge.hpp"
#include "models/frameworks.hpp"
#include "search/charge.hpp"

namespace rehearse::cli {

namespace {

std::string name_of(const BatchScript& script) { return std::filesystem::path{script.job.model}.filename().string(); }

bool has_gpus(const Machine& machine) {
    return std::ranges::any_of(machine.nodes.front().vertices, [&](const Vertex& vertex) {
        return vertex.kind == VertexKind::device &&
               !machine.classes[static_cast<std::size_t>(vertex.device_class)].host;
    });
}

/// The plan with what the framework has settled, as far as `run` can do that: ranks agree on sums in predictions alone.
std::string plan_of(const BatchScript& script, const std::string& plan) {
    models::FrameworkProfile framework = models::load_framework(script.framework);
    std::erase_if(framework.settings, [](const models::FrameworkSetting& each) { return each.name == "control"; });
    return models::plan_with(plan, framework);
}

/// A training that is longer than a job may be.
struct Split {
    std::int64_t jobs = 1;
    double every = 0;  // steps between checkpoints
};

/// What each rank of a plan runs: the user's own command, or ours.
std::string command_of(const BatchScript& script, bool gpus, const std::string& plan, const Split& split) {
    if (!script.options.command.empty()) return script.options.command;
    std::string command = "rehearse run";
    const auto add = [&](std::string_view option, std::string_view value) {
        command += fmt::format(" {} {}", option, search::shell_word(value));
    };
    add("--model", script.job.model);
    add("--machine", script.machine);
    add("--device", gpus ? "cuda" : "cpu");
    add("--plan", plan_of(script, plan));
    add("--global-batch", fmt::format("{}", *script.job.global_batch));
    add("--precision", to_string(script.job.precision));
    add("--optimizer", to_string(script.job.optimizer));
    add("--fuse", script.job.fuse);
    for (const auto& [name, size] : script.job.import.sizes) add("--sizes", fmt::format("{}={}", name, size));
    if (script.job.import.allow_unknown) command += " --allow-unknown";
    if (script.job.import.unfold) command += " --unfold";
    add("--steps", fmt::format("{:.0f}", search::steps_of(script.training, *script.job.global_batch)));
    if (split.jobs == 1) return command;
    add("--checkpoint", name_of(script) + ".checkpoints");
    add("--checkpoint-every", fmt::format("{:.0f}", split.every));
    return command + " --resume";
}

/// The queue that the script asks for, where its limits are known: by its name, else the one that takes such a job for
/// the longest.
std::optional<models::Queue> queue_of(const BatchScript& script, const models::Charge& charge, std::int64_t nodes) {
    const std::string& asked = script.options.queue;
    const std::string_view name = asked.empty() ? search::site_of(script.machine).queue : std::string_view{asked};
    const auto named = std::ranges::find(charge.queues, name, &models::Queue::name);
    if (named != charge.queues.end()) return *named;
    return asked.empty() ? models::longest_queue(charge, nodes) : std::nullopt;
}

/// As many jobs as the training needs, each as long as its queue lets it run; what a job does behind its last
/// checkpoint, a twentieth of its time at most, is done again.
Split split_by_queue(const BatchScript& script, const search::Ranked& best, search::BatchJob& job,
                     const Common& common) {
    const std::optional<models::Charge> charge = models::load_charge(script.machine);
    if (!charge) return {};
    const std::optional<models::Queue> queue = queue_of(script, *charge, job.nodes);
    if (!queue) {
        if (script.options.queue.empty() && !charge->queues.empty()) {
            const auto in_words = [](const models::Queue& each) {
                return fmt::format("{}: {} to {}", each.name, each.least, each.most);
            };
            std::vector<std::string> known;
            std::ranges::transform(charge->queues, std::back_inserter(known), in_words);
            talk(common,
                 fmt::format("warning: of the queues of {} that are known none takes a job of {} {} ({} nodes): "
                             "name yours with --queue",
                             script.machine, job.nodes, job.nodes == 1 ? "node" : "nodes", fmt::join(known, ", ")));
        }
        return {};
    }
    if (job.nodes < queue->least || job.nodes > queue->most) {
        talk(common, fmt::format("warning: queue '{}' of {} takes jobs of {} to {} nodes, this one has {}", queue->name,
                                 script.machine, queue->least, queue->most, job.nodes));
    }
    if (job.limit <= queue->wall) return {};
    const Seconds between = 0.05 * queue->wall, step = std::max(best.result.step, best.result.high);
    const Split split{static_cast<std::int64_t>(std::ceil(job.limit / (queue->wall - between))),
                      std::max(1.0, std::floor(between / step))};
    talk(common,
         fmt::format("warning: the training may take {}, queue '{}' of {} takes a job for {}: the script is one "
                     "of {} jobs, each of which goes on from {}",
                     time_text(job.limit.value), queue->name, script.machine, time_text(queue->wall.value), split.jobs,
                     script.options.command.empty() ? "the checkpoint of the one before"
                                                    : "what --command has saved in the one before"));
    job.limit = queue->wall;
    job.jobs = split.jobs;
    return split;
}

std::string text_of(const BatchScript& script, search::BatchJob job, const std::string& plan, const Split& split) {
    const search::Site& site = search::site_of(script.machine);
    job.name = name_of(script);
    job.command = command_of(script, job.gpus, plan, split);
    job.account = script.options.account;
    job.constraint = script.options.constraint;
    job.queue = script.options.queue;
    return search::batch_script(script.options.scheduler.value_or(site.scheduler), site, job);
}

}  // namespace

void check(const BatchScript& script, const Common& common) {
    const BatchOptions& options = script.options;
    check_writable(options.file, common);
    if (!options.file.empty()) return void(text_of(script, {}, "", {}));
    const bool asks = options.scheduler || options.gpus || !options.command.empty() || !options.account.empty() ||
                      !options.constraint.empty() || !options.queue.empty();
    if (asks)
        throw InputError("--scheduler, --command, --gpus, --account, --constraint and --queue are of --script FILE");
}

void check(const BatchScript& script, const Machine& machine, std::span<const std::int64_t> devices) {
    if (script.options.file.empty()) return;
    const std::int64_t each = devices_per_node(machine.nodes.front());
    for (const std::int64_t count : devices) {
        const DeviceAt last = locate(machine, count - 1);
        for (int kind = 1; kind <= last.kind; ++kind) {
            const std::int64_t other = devices_per_node(machine.nodes[static_cast<std::size_t>(kind)]);
            if (other == each) continue;
            throw InputError(fmt::format(
                "--script: the nodes of {} devices of {} have {} and {} devices: a batch system is asked for as many "
                "ranks on each node",
                count, machine.name, each, other));
        }
    }
}

void write_script(const BatchScript& script, const Machine& machine, const search::Ranked& best, const Common& common) {
    search::BatchJob job{.name = {},
                         .command = {},
                         .ranks = best.devices,
                         .nodes = best.nodes,
                         .ranks_per_node = std::min(best.devices, devices_per_node(machine.nodes.front())),
                         .gpus = script.options.gpus.value_or(has_gpus(machine)),
                         .limit = search::wall_limit(search::steps_of(script.training, *script.job.global_batch),
                                                     best.result.step, best.result.high)};
    const Split split = split_by_queue(script, best, job, common);
    replace_file(script.options.file, text_of(script, job, best.plan, split));
    talk(common, fmt::format("batch script: {}", script.options.file));
}

void add_script(CommandLine& app, BatchOptions& batch) {
    app.add_option("--script", batch.file, "write the batch script that would run the best plan")->option_text("FILE");
    add_choice<std::optional<search::Scheduler>>(
        app, "--scheduler", batch.scheduler,
        {{"slurm", search::Scheduler::slurm}, {"lsf", search::Scheduler::lsf}, {"pbs", search::Scheduler::pbs}},
        "of the batch script; default: what the machine's site has, else slurm");
    app.add_option("--command", batch.command,
                   "what the batch script's ranks run, as 'python train.py'; default: rehearse run with the plan")
        ->option_text("COMMAND");
    app.add_flag_function(
        "--gpus,!--no-gpus", [&batch](std::int64_t times) { batch.gpus = times > 0; },
        "the batch script asks for a GPU for each rank; default: where the machine has them");
    app.add_option("--account", batch.account, "of the batch script: who pays for it; default: none is named")
        ->option_text("NAME");
    app.add_option("--constraint", batch.constraint, "of the batch script: the kind of node; default: the site's")
        ->option_text("WORDS");
    app.add_option("--queue", batch.queue, "of the batch script: queue, partition or QOS; default: the site's")
        ->option_text("NAME");
}

}  // namespace rehearse::cli
