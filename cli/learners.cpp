// SPDX-License-Identifier: Apache-2.0
// How many learners a device trains at the same time, and with which batch, to reach an accuracy soonest (Koliousis et
// al. 2019, Crossbow): hardware efficiency is simulated, statistical efficiency the model of the critical batch.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/job.hpp"
#include "cli/report.hpp"
#include "cli/training.hpp"
#include "core/error.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"
#include "report/prediction_json.hpp"

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
    Common common;
    JobOptions job;
    std::string machine = "titanx-server";
    std::int64_t devices = 1;
    std::vector<std::int64_t> batches{16, 32, 64, 128, 256, 512, 1024};
    std::int64_t most = 16;
    std::string gain = "5%";
    predict::Training training;
};

void check(const Options& options) {
    check(options.training);
    if (options.most < 1) throw InputError(fmt::format("--most {}: at least 1 learner", options.most));
    if (options.job.global_batch) {
        throw InputError("--global-batch: it follows from --batches (of a learner) and the learners; leave it out");
    }
    const schedule::Plan plan = schedule::parse_plan(options.job.plan);
    if (plan.averaging.period > 0) {
        throw InputError(
            fmt::format("--plan '{}': learners and local are what is looked for; leave them out", options.job.plan));
    }
}

/// The plan with so many learners: the option follows the data axis, which has no comma in it.
std::string with_learners(const std::string& plan, std::int64_t learners) {
    std::size_t data = plan.find("data");
    while (data != std::string::npos && data != 0 && plan[data - 1] != ',') data = plan.find("data", data + 1);
    if (data == std::string::npos) throw InputError(fmt::format("--plan '{}': learners need the data axis", plan));
    const std::size_t end = std::min(plan.find(',', data), plan.size());
    return plan.substr(0, end) + fmt::format(":learners={}", learners) + plan.substr(end);
}

Json row_of(const Options& options, const Network& network, const Machine& machine, std::int64_t batch,
            std::int64_t learners) {
    const std::string plan = with_learners(options.job.plan, learners);
    const predict::Job job{.network = network,
                           .machine = machine,
                           .plan = schedule::parse_plan(plan),
                           .batch = batch * learners,
                           .precision = options.job.precision,
                           .optimizer = options.job.optimizer,
                           .training = options.training,
                           .bands = false};
    Timeline unused;
    const predict::Point point = predict::point_of(job, predict::setup_of(job, options.devices), unused);
    Json row{{"batch", batch}, {"learners", learners}};
    row.update(report::json_of(point.figures));
    row["nodes"] = point.nodes;
    row["fits"] = point.memory.fits;
    row["plan"] = plan;
    report::add_training_time(row, point.training);
    return row;
}

/// Crossbow's auto-tuner: one learner more as long as that gains throughput, and fits. The rows tried; the one chosen
/// is marked. Empty where not even one learner fits.
Json tuned(const Options& options, const Network& network, const Machine& machine, std::int64_t batch, double gain) {
    Json rows = Json::array();
    std::optional<std::size_t> chosen;
    for (std::int64_t learners = 1; learners <= options.most; ++learners) {
        Json row = row_of(options, network, machine, batch, learners);
        if (!row["fits"].get<bool>()) break;
        const double before = chosen ? rows[*chosen]["samples_per_s"].get<double>() : 0;
        const double more = chosen ? row["samples_per_s"].get<double>() / before - 1 : 0;
        row["gain"] = more;
        row["chosen"] = "";
        rows.push_back(std::move(row));
        if (chosen && more < gain) break;
        chosen = rows.size() - 1;
    }
    if (chosen) rows[*chosen]["chosen"] = "auto-tuner";
    return rows;
}

/// The least time to accuracy where that is known, else the highest throughput.
std::size_t best_of(const Json& rows) {
    const auto worth = [](const Json& row) {
        return row.contains("training_s") ? -row["training_s"].get<double>() : row["samples_per_s"].get<double>();
    };
    std::size_t best = 0;
    for (std::size_t i = 1; i < rows.size(); ++i) {
        if (worth(rows[i]) > worth(rows[best])) best = i;
    }
    return best;
}

Table table_of(const Options& options) {
    Table table{"points",
                fmt::format("{} on {} of {}, batch of a learner, plan {}, {}", options.job.model, options.devices,
                            options.machine, options.job.plan, to_string(options.job.precision)),
                {{"batch", "batch", Show::count},
                 {"learners", "learners", Show::count},
                 {"global_batch", "all", Show::count},
                 {"step_s", "step", Show::seconds},
                 {"samples_per_s", "samples/s", Show::number},
                 {"gain", "gain", Show::percent},
                 {"memory_peak_bytes", "memory", Show::bytes}}};
    add_columns(table.columns, options.training);
    table.columns.push_back({"chosen", "  chosen by"});
    return table;
}

int learners(Options& options) {
    check_writable(options.common.output, options.common);
    check(options);
    const double gain = share_or_infinity("--gain", options.gain);
    const Machine machine = models::load_machine(options.machine);
    const Network network = load_network(options.job.model, options.job.fuse, options.job.import);
    Json rows = Json::array();
    for (const std::int64_t batch : options.batches) {
        for (Json& row : tuned(options, network, machine, batch, gain)) rows.push_back(std::move(row));
    }
    if (rows.empty()) {
        throw InfeasibleError(
            fmt::format("no batch of {} fits with a single learner: give smaller --batches", options.job.model));
    }
    Json& best = rows[best_of(rows)];
    const std::string by = options.training.dataset ? "time to accuracy" : "throughput";
    best["chosen"] = best["chosen"].get<std::string>() + (best["chosen"].get<std::string>().empty() ? "" : ", ") + by;

    Json config = configuration(options.job);
    config.erase("batch");
    config["machine"] = options.machine;
    config["devices"] = options.devices;
    config["gain"] = gain;
    Report report{document("learners", config), {table_of(options)}, ""};
    report.document["best"] = best;
    report.document["points"] = rows;
    report.footer = fmt::format("best by {}: --batch {} --plan {}", by,
                                best["batch"].get<std::int64_t>() * best["learners"].get<std::int64_t>(),
                                best["plan"].get<std::string>());
    print(report, options.common);
    return good;
}

}  // namespace

Run add_learners(CLI::App& app) {
    const auto options = std::make_shared<Options>();
    add_job(app, options->job);
    app.add_option("--machine", options->machine, "a machine by name (rehearse machines) or a .toml file")
        ->option_text("NAME|FILE.toml")
        ->capture_default_str();
    app.add_option("--devices", options->devices, "how many devices")->option_text("N")->capture_default_str();
    app.add_option("--batches", options->batches, "samples that a learner takes, to be tried; --batch is not looked at")
        ->delimiter(',')
        ->option_text("N[,N...]")
        ->capture_default_str();
    app.add_option("--most", options->most, "learners of a device, at most")->option_text("N")->capture_default_str();
    app.add_option("--gain", options->gain, "a learner is added as long as it gains so much of throughput")
        ->option_text("SHARE")
        ->capture_default_str();
    add_training(app, options->training);
    add_common(app, options->common);
    return [options] { return learners(*options); };
}

}  // namespace rehearse::cli
