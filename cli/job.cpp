// SPDX-License-Identifier: Apache-2.0
#include "cli/job.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "cli/choice.hpp"
#include "core/collective.hpp"
#include "core/text.hpp"
#include "models/fuse.hpp"
#include "models/models.hpp"

namespace rehearse::cli {

void add_job(CLI::App& app, JobOptions& job) {
    app.add_option("--model", job.model, "a network by name (rehearse models) or an .onnx file")
        ->option_text("NAME|FILE.onnx")
        ->capture_default_str();
    app.add_flag("--allow-unknown", job.allow_unknown, "price operators that are not known by the bytes they touch");
    app.add_option("--plan", job.plan, "how the run is split; --plan help lists axes and options")
        ->option_text("PLAN")
        ->capture_default_str();
    app.add_option("--batch", job.batch, "samples of one step on one device")->option_text("N")->capture_default_str();
    app.add_option("--global-batch", job.global_batch, "samples of one step on all devices, instead of --batch")
        ->option_text("N");
    add_choice<Precision>(
        app, "--precision", job.precision,
        {{"fp32", Precision::fp32}, {"fp16", Precision::fp16}, {"bf16", Precision::bf16}, {"mixed", Precision::mixed}},
        "of the computation; mixed: f16 with f32 master weights");
    add_choice<Optimizer>(app, "--optimizer", job.optimizer,
                          {{"sgd", Optimizer::sgd}, {"adam", Optimizer::adam}, {"lamb", Optimizer::lamb}},
                          "SGD with momentum, Adam with decoupled weight decay, or LAMB");
    add_fuse(app, job.fuse);
}

void add_fuse(CLI::App& app, std::string& fuse) {
    std::vector<std::string_view> words{"on", "off"};
    for (const models::FusionName& each : models::fusion_names()) words.push_back(each.name);
    app.add_option("--fuse", fuse, "operators joined as compilers do: " + join(words) + ", or several")
        ->option_text("WHAT[,WHAT...]")
        ->capture_default_str();
}

Network load_network(const std::string& name_or_file, std::string_view fuse, bool allow_unknown) {
    const models::Fusions fusions = models::parse_fusions(fuse);
    return models::fuse(models::load_network(name_or_file, allow_unknown), fusions);
}

nlohmann::ordered_json configuration(const JobOptions& job) {
    nlohmann::ordered_json json{{"model", job.model},
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
    return text;
}

nlohmann::ordered_json point(const Schedule& schedule, const Summary& summary) {
    const auto samples = static_cast<double>(global_batch(schedule));
    Flops work;
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
        work += flops(schedule.network, pass, global_batch(schedule));
    }
    return {{"devices", ranks(schedule.mesh) + (schedule.servers.shared ? 0 : schedule.servers.count)},
            {"global_batch", global_batch(schedule)},
            {"step_s", summary.step.value},
            {"samples_per_s", samples / summary.step.value},
            {"flops_per_s", (work / summary.step).value},
            {"compute_s", summary.compute.value},
            {"exposed_comm_s", summary.exposed_comm.value},
            {"bubble_s", summary.bubble.value},
            {"io_wait_s", summary.io_wait.value},
            {"memory_peak_bytes", schedule.memory_peak.value}};
}

void add_staleness(nlohmann::ordered_json& point, const std::vector<std::int64_t>& counts) {
    double updates = 0, sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        updates += static_cast<double>(counts[i]);
        sum += static_cast<double>(i) * static_cast<double>(counts[i]);
    }
    point["staleness"] = counts;  // how many updates, by how many others had come between
    point["mean_staleness"] = updates > 0 ? sum / updates : 0;
    point["most_staleness"] = counts.empty() ? 0 : counts.size() - 1;
}

}  // namespace rehearse::cli
