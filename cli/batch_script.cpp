// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/choice.hpp"
#include "cli/command_line.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "search/charge.hpp"

namespace rehearse::cli {

namespace {

bool has_gpus(const Machine& machine) {
    return std::ranges::any_of(machine.nodes.front().vertices, [&](const Vertex& vertex) {
        return vertex.kind == VertexKind::device &&
               !machine.classes[static_cast<std::size_t>(vertex.device_class)].host;
    });
}

/// What each rank of a plan runs: the user's own command, or ours.
std::string command_of(const BatchScript& script, bool gpus, const std::string& plan) {
    if (!script.options.command.empty()) return script.options.command;
    std::string command = "rehearse run";
    const auto add = [&](std::string_view option, std::string_view value) {
        command += fmt::format(" {} {}", option, search::shell_word(value));
    };
    add("--model", script.job.model);
    add("--machine", script.machine);
    add("--device", gpus ? "cuda" : "cpu");
    add("--plan", plan);
    add("--global-batch", fmt::format("{}", *script.job.global_batch));
    add("--precision", to_string(script.job.precision));
    add("--optimizer", to_string(script.job.optimizer));
    add("--fuse", script.job.fuse);
    add("--steps", fmt::format("{:.0f}", search::steps_of(script.training, *script.job.global_batch)));
    return command;
}

std::string text_of(const BatchScript& script, search::BatchJob job, const std::string& plan) {
    const search::Site& site = search::site_of(script.machine);
    job.name = std::filesystem::path{script.job.model}.filename().string();
    job.command = command_of(script, job.gpus, plan);
    job.account = script.options.account;
    job.constraint = script.options.constraint;
    job.queue = script.options.queue;
    return search::batch_script(script.options.scheduler.value_or(site.scheduler), site, job);
}

}  // namespace

void check(const BatchScript& script, const Common& common) {
    const BatchOptions& options = script.options;
    check_writable(options.file, common);
    if (!options.file.empty()) return void(text_of(script, {}, ""));
    const bool asks = options.scheduler || options.gpus || !options.command.empty() || !options.account.empty() ||
                      !options.constraint.empty() || !options.queue.empty();
    if (asks)
        throw InputError("--scheduler, --command, --gpus, --account, --constraint and --queue are of --script FILE");
}

void write_script(const BatchScript& script, const Machine& machine, const search::Ranked& best, const Common& common) {
    const search::BatchJob job{.name = {},
                               .command = {},
                               .ranks = best.devices,
                               .nodes = best.nodes,
                               .ranks_per_node = std::min(best.devices, devices_per_node(machine.nodes.front())),
                               .gpus = script.options.gpus.value_or(has_gpus(machine)),
                               .limit = search::wall_limit(search::steps_of(script.training, *script.job.global_batch),
                                                           best.result.step, best.result.high)};
    replace_file(script.options.file, text_of(script, job, best.plan));
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
