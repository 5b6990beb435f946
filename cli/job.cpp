// SPDX-License-Identifier: Apache-2.0
#include "cli/job.hpp"

#include <fmt/format.h>

#include "cli/choice.hpp"
#include "cli/command_line.hpp"
#include "cli/json.hpp"
#include "core/collectives/collective.hpp"
#include "core/error.hpp"
#include "core/precision.hpp"
#include "core/quoting.hpp"
#include "core/text.hpp"
#include "models/fuse.hpp"
#include "models/models.hpp"
#include "schedule/compatibility.hpp"
#include "schedule/remarks.hpp"

namespace rehearse::cli {

void add_machine(CommandLine& app, std::string& machine) {
    app.add_option("--machine", machine, "a machine by name (rehearse machines) or a .toml file")
        ->option_text("NAME|FILE.toml")
        ->capture_default_str();
}

void add_framework(CommandLine& app, std::string& framework, std::string_view before) {
    app.add_option("--framework", framework,
                   fmt::format("what it does beside its kernels: a profile by name (rehearse frameworks) or a .toml "
                               "file; {}",
                               before))
        ->option_text("NAME|FILE.toml")
        ->capture_default_str();
}

void add_job(CommandLine& app, JobOptions& job, std::string_view batch) {
    app.add_option("--model", job.model,
                   "a network by name (rehearse models), an .onnx file, or "
                   "Hugging Face's config.json (or its folder)")
        ->option_text("NAME|FILE.onnx|config.json")
        ->capture_default_str();
    add_import(app, job.import);
    app.add_option("--plan", job.plan, "how the run is split; --plan help lists axes and options")
        ->option_text("PLAN")
        ->capture_default_str();
    app.add_option("--batch", job.batch, std::string{batch})->option_text("N")->capture_default_str();
    app.add_option("--global-batch", job.global_batch, "samples of one step on all devices, instead of --batch")
        ->option_text("N")
        ->excludes("--batch");
    add_precision(app, job.precision);
    add_optimizer(app, job.optimizer);
    add_fuse(app, job.fuse);
}

void add_precision(CommandLine& app, Precision& precision) {
    std::vector<std::pair<std::string_view, Precision>> known;
    std::string meanings;
    for (const PrecisionTypes& row : precisions()) {
        known.push_back({row.name, row.precision});
        meanings += fmt::format("{}{}: {}", meanings.empty() ? "" : "; ", row.name, row.summary);
    }
    add_choice<Precision>(app, "--precision", precision, known, fmt::format("default fp32; {}", meanings));
}

void add_optimizer(CommandLine& app, Optimizer& optimizer) {
    add_choice<Optimizer>(app, "--optimizer", optimizer,
                          {{"sgd", Optimizer::sgd}, {"adam", Optimizer::adam}, {"lamb", Optimizer::lamb}},
                          "SGD with momentum, Adam with decoupled weight decay, or LAMB");
}

void add_fuse(CommandLine& app, std::string& fuse) {
    std::vector<std::string_view> words{"on", "off"};
    for (const models::FusionName& each : models::fusion_names()) words.push_back(each.name);
    app.add_option("--fuse", fuse, "operators joined as compilers do: " + join(words) + ", or several")
        ->option_text("WHAT[,WHAT...]")
        ->capture_default_str();
}

void add_import(CommandLine& app, models::ImportOptions& options) {
    app.add_flag("--allow-unknown", options.allow_unknown,
                 "price operators that are not known by the bytes they touch, leave out what depends on data");
    app.add_flag("--unfold", options.unfold,
                 "put back batch normalizations that an .onnx file has in its convolutions");
    app.add_option_function<std::vector<std::string>>(
           "--sizes",
           [&options](const std::vector<std::string>& sizes) {
               for (const std::string& each : sizes) {
                   const std::size_t equals = each.find('=');
                   if (equals == std::string::npos || equals == 0)
                       throw InputError(fmt::format("--sizes {}: expected NAME=SIZE, like tokens=128", each));
                   const std::int64_t size = parse_int(each.substr(equals + 1), "--sizes " + each);
                   if (size < 1) throw InputError(fmt::format("--sizes {}: a size is at least 1", each));
                   options.sizes[each.substr(0, equals)] = size;
               }
           },
           "the size, at least 1, of each dimension that an .onnx file leaves open; needed for all but the batch; of a "
           "config.json the tokens of a sample (T5: targets, too)")
        ->option_text("NAME=SIZE[,NAME=SIZE...]")
        ->delimiter(',');
}

Network load_network(const std::string& name_or_file, std::string_view fuse, const models::ImportOptions& options) {
    const models::Fusions fusions = models::parse_fusions(fuse);
    const Network network = models::load_network(name_or_file, options);
    for (const std::string& note : network.notes)
        fmt::print(stderr, "rehearse: note: {}\n", printable(network.name + ": " + note));
    for (const std::string& warning : schedule::guess_warnings(network))
        fmt::print(stderr, "rehearse: warning: {}\n", printable(warning));
    return models::fuse(network, fusions);
}

void say_what_plan_leaves(const Network& network, const Schedule& schedule) {
    for (const std::string& note : schedule::notes_of_plan(network, schedule))
        fmt::print(stderr, "rehearse: note: {}\n", printable(network.name + ": " + note));
}

Json configuration(const JobOptions& job) {
    Json json{{"model", job.model},
              {"plan", job.plan},
              {"precision", to_string(job.precision)},
              {"fuse", job.fuse},
              {"optimizer", to_string(job.optimizer)}};
    if (job.global_batch) {
        json["global_batch"] = *job.global_batch;
    } else {
        json["batch"] = job.batch;
    }
    return json;
}

schedule::Job job_for(const JobOptions& options, std::int64_t devices) {
    return {devices, options.batch, options.global_batch, options.precision, options.optimizer};
}

std::string plan_help() {
    std::string text =
        "A plan is AXIS[=SIZE][:OPTION=VALUE...][,AXIS...]; one axis may leave its size to be inferred.\n";
    for (const schedule::PlanWord& word : schedule::plan_words()) {
        text += fmt::format("  {:<12} {:<24} {}\n", word.name, word.values, word.summary);
    }
    text += "All-reduce algorithms:\n";
    for (const AlgorithmName& algorithm : algorithms(CollectiveKind::all_reduce)) {
        text += fmt::format("  {:<18} {}\n", algorithm.name, algorithm.summary);
    }
    return text + schedule::compatibility_text();
}

}  // namespace rehearse::cli
