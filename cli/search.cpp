// SPDX-License-Identifier: Apache-2.0
#include "search/search.hpp"
#include "cli/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/batch_script.hpp"
#include "cli/choice.hpp"
#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/job.hpp"
#include "cli/job_ranks.hpp"
#include "cli/progress.hpp"
#include "cli/report.hpp"
#include "cli/training.hpp"
#include "core/error.hpp"
#include "models/models.hpp"
#include "report/prediction_json.hpp"
#include "search/charge.hpp"
#include "search/store.hpp"

namespace rehearse::cli {

namespace {

struct Options {
    Common common;
    JobOptions job;
    std::string machine = "summit", framework{models::default_framework};
    search::Request request;
    predict::Training training;
    std::string memory_limit, deadline, store;
    BatchOptions batch;
    std::optional<double> node_watts;
};

search::Request request_of(const Options& options) {
    search::Request request = options.request;
    request.job = job_for(options.job, 1);
    request.framework = models::load_framework(options.framework);
    request.samples = samples(options.training, static_cast<double>(*options.job.global_batch));
    if (!options.memory_limit.empty())
        request.limits.memory = quantity_of<Bytes>("--memory-limit", options.memory_limit);
    if (!options.deadline.empty()) request.limits.training = quantity_of<Seconds>("--deadline", options.deadline);
    return request;
}

BatchScript script_of(const Options& options) {
    return {options.batch, options.job, options.training, options.machine, options.framework};
}

void check(const Options& options) {
    check(options.training);
    if (options.node_watts && *options.node_watts <= 0) throw InputError("--node-power: more than 0 W");
    if (!options.store.empty() && !search::absent_store().empty()) {
        throw BackendError(fmt::format("--store: {}", search::absent_store()));
    }
    check(script_of(options), options.common);
}

/// All that a simulated step depends on, beside plan and devices. The machine counts with all that its file says and
/// those that it extends.
std::string key_of(const Options& options, const Network& network, const Machine& machine) {
    std::string framework;
    for (const models::FrameworkSetting& setting : models::load_framework(options.framework).settings)
        framework += fmt::format(" {}={}", setting.name, setting.value);
    return fmt::format(
        "rehearse {} | {} of {} layers, {} parameters, {} flops | {} {:x} | batch {} {} {} fuse {} memory {}{}",
        REHEARSE_VERSION, network.name, network.layers.size(), parameters(network), flops(network, Pass::forward).value,
        machine.name, std::hash<std::string>{}(models::to_toml(machine)), *options.job.global_batch,
        to_string(options.job.precision), to_string(options.job.optimizer), options.job.fuse, options.memory_limit,
        framework);
}

Json row_of(const Options& options, const search::Ranked& each, std::size_t rank) {
    const auto batch = static_cast<double>(*options.job.global_batch);
    Json row{{"rank", rank},
             {"plan", each.plan},
             {"devices", each.devices},
             {"nodes", each.nodes},
             {"global_batch", *options.job.global_batch},
             {"step_s", each.result.step.value},
             {"step_low_s", each.result.has_band() ? Json(each.result.low.value) : Json{}},
             {"step_high_s", each.result.has_band() ? Json(each.result.high.value) : Json{}},
             {"samples_per_s", batch / each.result.step.value},
             {"memory_peak_bytes", each.result.memory.value},
             {"estimated_step_s", each.estimate.step_s},
             {"estimated_memory_bytes", each.estimate.memory_bytes}};
    report::add_training_time(row, training_time(options.training, {.samples_per_s = batch / each.result.step.value,
                                                                    .global_batch = *options.job.global_batch,
                                                                    .nodes = each.nodes}));
    if (row.contains("node_hours") && options.node_watts) {
        row["energy_kwh"] = search::kilowatt_hours(row["node_hours"].get<double>(), *options.node_watts);
    }
    return row;
}

Table table_of(const Options& options) {
    Table table{"plans",
                fmt::format("{} on {}, global batch {}, {}", options.job.model, options.machine,
                            *options.job.global_batch, to_string(options.job.precision)),
                {{"rank", "rank", Show::count},
                 {"devices", "devices", Show::count},
                 {"step_s", "step", Show::seconds},
                 {"step_low_s", "low", Show::seconds},
                 {"step_high_s", "high", Show::seconds},
                 {"samples_per_s", "samples/s", Show::number},
                 {"memory_peak_bytes", "memory", Show::bytes},
                 {"estimated_step_s", "estimate", Show::seconds}}};
    add_columns(table.columns, options.training);
    if (options.training.dataset && options.node_watts) table.columns.push_back({"energy_kwh", "kWh", Show::number});
    table.columns.push_back({"plan", "  plan"});
    return table;
}

Json counts_of(const search::Counts& counts) {
    return {{"screened", counts.screened},
            {"screen_s", counts.screen_s},
            {"plans_per_s", static_cast<double>(counts.screened) / std::max(1e-9, counts.screen_s)},
            {"meshes", counts.shapes},
            {"meshes_bound", counts.shapes_bound},
            {"above_memory", counts.too_large},
            {"beyond_limits", counts.beyond + counts.missed},
            {"simulated", counts.simulated},
            {"known", counts.known},
            {"refused", counts.refused},
            {"least_ratio", counts.least_ratio},
            {"most_ratio", counts.most_ratio},
            {"simulate_s", counts.simulate_s}};
}

std::string footer_of(const search::Counts& counts) {
    std::string footer = fmt::format(
        "{} plans of {} meshes screened in {:.2f} s ({:.0f} a second), {} meshes bound, {} plans above the memory, "
        "{} beyond other limits;\n{} simulated in {:.2f} s, {} known before, {} of these did not fit after all",
        counts.screened, counts.shapes, counts.screen_s,
        static_cast<double>(counts.screened) / std::max(1e-9, counts.screen_s), counts.shapes_bound, counts.too_large,
        counts.beyond, counts.simulated, counts.simulate_s, counts.known, counts.refused);
    if (counts.missed > 0) footer += fmt::format(", {} were beyond other limits", counts.missed);
    if (counts.most_ratio > 0) {  // of none there is no ratio
        footer += fmt::format("; simulated steps are {:.2f} to {:.2f} times their estimates", counts.least_ratio,
                              counts.most_ratio);
    }
    return footer;
}

int search_plans(Options& options, const RankPlace& place) {
    if (!options.job.global_batch && options.request.devices.size() > 1) {
        throw InputError("search: with several numbers of devices give --global-batch: what all plans have in common");
    }
    if (!options.job.global_batch) options.job.global_batch = options.job.batch * options.request.devices.front();
    check(options);
    const Machine machine = models::load_machine(options.machine);
    check(script_of(options), machine, options.request.devices);
    const Network network = load_network(options.job.model, options.job.fuse, options.job.import);
    std::unique_ptr<search::Store> store;
    if (!options.store.empty()) {
        store = std::make_unique<search::Store>(options.store, key_of(options, network, machine));
    }
    const LongWork work{options.common};
    const search::Listener listener{.say =
                                        [&](std::string_view text) {
                                            if (options.common.verbose > 0) talk(options.common, text);
                                        },
                                    .screening = work.part("meshes"),
                                    .simulating = work.part("plans simulated")};
    const search::Result result = search::search(network, machine, request_of(options),
                                                 store ? store->others() : search::Others{}, listener, place.ranks);
    if (!place.speaks) return work.exit_code(good);
    Json config = configuration(options.job);
    config.erase("plan");
    config["machine"] = options.machine;
    config["framework"] = options.framework;
    config["devices"] = options.request.devices;
    Report report{document("search", config), {table_of(options)}, footer_of(result.counts)};
    report.document["counts"] = counts_of(result.counts);
    report.document["refusals"] = result.refusals;
    for (const std::string& refusal : result.refusals) {
        if (refusal.find("bug in Rehearse") == std::string::npos) continue;
        talk(options.common, fmt::format("warning: left out: {}; please report this line", refusal));
    }
    report.document["plans"] = Json::array();
    for (std::size_t i = 0; i < result.ranked.size(); ++i) {
        report.document["plans"].push_back(row_of(options, result.ranked[i], i + 1));
    }
    work.mark(report);
    print(report, options.common);
    if (result.ranked.empty() && !work.interrupted()) {
        throw InfeasibleError(search::why_none(result));
    }
    if (!options.batch.file.empty() && !result.ranked.empty()) {
        write_script(script_of(options), machine, result.ranked.front(), options.common);
    }
    return work.exit_code(good);
}

void add_limits(CommandLine& app, Options& options) {
    app.add_option("--memory-limit", options.memory_limit, "of a device, 30GB; default: all that the machine says")
        ->option_text("SIZE");
    app.add_option("--deadline", options.deadline, "of the whole training: 12h; needs --dataset")->option_text("TIME");
    app.add_option("--node-hours", options.request.limits.node_hours, "of the whole training; needs --dataset")
        ->option_text("N");
    app.add_option("--node-power", options.node_watts, "watts of a node: adds the training's energy")->option_text("W");
    app.add_option("--max-tensor", options.request.most.tensor, "ranks along tensor")
        ->option_text("N")
        ->capture_default_str();
    app.add_option("--max-pipe", options.request.most.pipe, "stages")->option_text("N")->capture_default_str();
    app.add_option("--max-expert", options.request.most.expert, "ranks that share the experts of mixtures")
        ->option_text("N")
        ->capture_default_str();
    app.add_option("--max-chunks", options.request.variety.chunks, "of a stage, where interleaved")
        ->option_text("N")
        ->capture_default_str();
}

}  // namespace

Run add_search(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    add_job(app, options->job,
            "samples of one step for each device, however a plan cuts the network: times --devices, which is one "
            "number then, the global batch of every plan");
    app.remove_option("--plan");
    add_machine(app, options->machine);
    add_framework(app, options->framework, "what it settles of zero, overlap and allreduce is not varied");
    options->request.devices = {1};
    app.add_option("--devices", options->request.devices, "how many devices; of several numbers the best is chosen")
        ->delimiter(',')
        ->option_text("N[,N...]");
    add_choice<search::Objective>(app, "--objective", options->request.objective,
                                  {{"time", search::Objective::time},
                                   {"cost", search::Objective::node_hours},
                                   {"energy", search::Objective::node_hours}},
                                  "what is made least: the step, or node-hours, which energy goes with");
    app.add_option("--top", options->request.simulated,
                   "plans that are ranked; more are simulated, until none is left that may be the best")
        ->option_text("N")
        ->capture_default_str();
    add_training(app, options->training);
    add_limits(app, *options);
    app.add_option("--store", options->store,
                   "a SQLite file of what was simulated: a search goes on where one ended; several at once share it")
        ->option_text("FILE");
    add_script(app, options->batch);
    add_common(app, options->common);
    return [options] {
        return on_all_ranks([&](const RankPlace& place) {
            options->common.quiet = options->common.quiet || !place.speaks;
            return search_plans(*options, place);
        });
    };
}

}  // namespace rehearse::cli
