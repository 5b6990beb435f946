// SPDX-License-Identifier: Apache-2.0
// How many learners a device trains at the same time, and with which batch: search/learners as a table.
#include <fmt/format.h>

#include <memory>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/job.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "cli/training.hpp"
#include "core/error.hpp"
#include "models/models.hpp"
#include "report/prediction_json.hpp"
#include "search/learners.hpp"

namespace rehearse::cli {

namespace {

struct Options {
    Common common;
    JobOptions job;
    std::string machine = "titanx-server", framework{models::default_framework};
    std::int64_t devices = 1;
    std::vector<std::int64_t> batches{16, 32, 64, 128, 256, 512, 1024};
    std::int64_t most = 16;
    std::string gain = "5%";
    predict::Training training;
};

/// What is looked for, but for the network and the machine.
search::LearnersRequest request_of(const Options& options) {
    check(options.training);
    if (options.job.global_batch) {
        throw InputError("--global-batch: it follows from --batches (of a learner) and the learners; leave it out");
    }
    search::LearnersRequest
        request;  // member by member: g++ 12 destroys an aggregate twice where an initialiser throws
    request.job.plan = schedule::parse_plan(options.job.plan);
    request.job.precision = options.job.precision;
    request.job.optimizer = options.job.optimizer;
    request.job.training = options.training;
    request.job.bands = false;
    predict::follow(request.job, models::load_framework(options.framework));
    request.devices = options.devices;
    request.batches = options.batches;
    request.most = options.most;
    request.gain = share_or_infinity("--gain", options.gain);
    if (request.gain > 1) throw InputError(fmt::format("--gain {}: from 0 to 1, or 0% to 100%", options.gain));
    return request;
}

Json row_of(const search::LearnersPoint& found, const std::string& chosen) {
    Json row{{"batch", found.batch}, {"learners", found.learners}};
    row.update(report::json_of(found.point.figures));
    row["nodes"] = found.point.nodes;
    row["fits"] = found.point.memory.fits;
    row["plan"] = found.plan;
    report::add_training_time(row, found.point.training);
    row["gain"] = found.gain;
    row["chosen"] = chosen;
    return row;
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
    search::LearnersRequest request = request_of(options);
    request.job.machine = models::load_machine(options.machine);
    request.job.network = load_network(options.job.model, options.job.fuse, options.job.import);
    const search::LearnersResult result = search::search_learners(request);
    if (result.points.empty()) {
        throw InfeasibleError(
            fmt::format("no batch of {} fits with a single learner: give smaller --batches", options.job.model));
    }
    const std::string by = result.by_accuracy ? "time to accuracy" : "throughput";
    Json rows = Json::array();
    for (std::size_t i = 0; i < result.points.size(); ++i) {
        std::string chosen = result.points[i].tuned ? "auto-tuner" : "";
        if (i == result.best) chosen += (chosen.empty() ? "" : ", ") + by;
        rows.push_back(row_of(result.points[i], chosen));
    }
    Json config = configuration(options.job);
    config.erase("batch");
    config["machine"] = options.machine;
    config["framework"] = options.framework;
    config["devices"] = options.devices;
    config["gain"] = request.gain;
    const search::LearnersPoint& best = result.points[result.best];
    Report report{document("learners", config), {table_of(options)}, ""};
    report.document["best"] = rows[result.best];
    report.document["points"] = rows;
    report.footer = fmt::format("best by {}: --batch {} --plan {}", by, best.batch * best.learners, best.plan);
    print(report, options.common);
    return good;
}

}  // namespace

Run add_learners(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    add_job(app, options->job);
    add_machine(app, options->machine);
    add_framework(app, options->framework, "plan goes before it");
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
