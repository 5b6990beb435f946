// SPDX-License-Identifier: Apache-2.0
// The options that predict and run share: what is trained, and how it is split.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/json.hpp"
#include "core/network.hpp"
#include "models/models.hpp"
#include "schedule/plan.hpp"

namespace rehearse::cli {

class CommandLine;

/// What is fused where --fuse is not given (docs/decisions/0010-fusion-is-a-pass-and-off.md).
inline constexpr std::string_view default_fuse = "off";
/// --fuse, on every command that makes or measures a network.
void add_fuse(CommandLine& app, std::string& fuse);
/// --precision and --optimizer.
void add_precision(CommandLine& app, Precision& precision);
void add_optimizer(CommandLine& app, Optimizer& optimizer);
/// The network by name or file, fused. What a reader of the figures must know of an imported network goes to stderr:
/// what was guessed, what an export lost.
Network load_network(const std::string& name_or_file, std::string_view fuse, const models::ImportOptions& options = {});
/// What a schedule adds to the notes of its network, on stderr: layers that its plan leaves whole.
void say_what_plan_leaves(const Network& network, const Schedule& schedule);
/// --allow-unknown, --unfold and --input, of an .onnx file.
void add_import(CommandLine& app, models::ImportOptions& options);

struct JobOptions {
    std::string model = "resnet50";
    models::ImportOptions import;
    std::string plan = "data";
    std::int64_t batch = 32;
    std::optional<std::int64_t> global_batch;
    Precision precision = Precision::fp32;
    std::string fuse{default_fuse};
    Optimizer optimizer = Optimizer::sgd;
};
inline constexpr std::string_view batch_of_a_copy =
    "samples of one step on one copy of the network: on one device, unless the plan cuts the network";
/// `batch`: what --help says of --batch.
void add_job(CommandLine& app, JobOptions& job, std::string_view batch = batch_of_a_copy);
/// --machine, of the commands that predict for one machine.
void add_machine(CommandLine& app, std::string& machine);
/// --framework; `before`: what it gives way to, or what it decides.
void add_framework(CommandLine& app, std::string& framework, std::string_view before);
Json configuration(const JobOptions& job);

schedule::Job job_for(const JobOptions& options, std::int64_t devices);

/// What --plan help prints.
std::string plan_help();

}  // namespace rehearse::cli
