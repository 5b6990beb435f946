// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/json.hpp"
#include "cli/recorded.hpp"
#include "cli/report.hpp"
#include "trace/compare.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

struct Options {
    Common common;
    std::string predicted, measured, fail_over, model;
    std::optional<std::int64_t> batch;
    bool steps = false;
};

Json rows(const std::vector<trace::Row>& list) {
    Json array = Json::array();
    for (const trace::Row& row : list) {
        array.push_back({{"name", row.name},
                         {"predicted_s", row.predicted.value},
                         {"measured_s", row.measured.value},
                         {"error", std::isfinite(row.error) ? Json(row.error) : Json()}});
    }
    return array;
}

Table table(std::string key, std::string title) {
    return {key,
            std::move(title),
            {{"name", key},
             {"predicted_s", "predicted", Show::seconds},
             {"measured_s", "measured", Show::seconds},
             {"error", "error", Show::percent}}};
}

int compare(const Options& options) {
    const double allowed = share_or_infinity("--fail-over", options.fail_over);
    const Timeline predicted = trace::read(options.predicted);
    const Measured measured = read_measured(options.measured, predicted, options.model, options.batch);
    const trace::Comparison result = trace::compare(predicted, measured.timeline);
    Report report{document("comparison", {{"predicted", options.predicted}, {"measured", options.measured}}), {}, ""};
    report.document["statistic"] = trace::statistic;
    report.document["predicted_iterations"] = result.predicted.count;
    report.document["measured_iterations"] = result.measured.count;
    report.document["whole"] = rows({result.whole});
    report.document["pass"] = rows(result.passes);
    report.document["layer"] = rows(result.layers);
    report.document["step"] = rows(result.steps);
    report.document["only_predicted"] = result.only_predicted;
    report.document["only_measured"] = result.only_measured;
    report.tables = {table("layer", "by layer"), table("pass", "by pass"),
                     table("whole", "the training step in the middle")};
    if (options.steps || options.common.format == Format::csv) {
        report.tables.insert(report.tables.begin(), table("step", "by step"));
    }
    const std::size_t alone = result.only_predicted.size() + result.only_measured.size();
    report.footer = fmt::format("{}\n{} steps matched, {} only predicted, {} only measured", text_of_iterations(result),
                                result.steps.size(), result.only_predicted.size(), result.only_measured.size());
    for (const std::string& warning : measured.warnings) talk(options.common, "warning: " + warning);
    print(report, options.common);
    if (alone > 0) talk(options.common, fmt::format("{} steps have no partner: see --format json", alone));
    if (const std::string cuts = trace::text_of_cuts(result); !cuts.empty())
        talk(options.common, cuts + ": run --machine NAME cuts by the prices that predict --machine NAME takes");
    if (std::abs(result.whole.error) > allowed) {
        talk(options.common, fmt::format("error {:.1f} % is over {:.1f} %", 100 * result.whole.error, 100 * allowed));
        return check_failed;
    }
    return good;
}

}  // namespace

Run add_compare(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("PREDICTED", options->predicted, "timeline of rehearse predict --trace")->required();
    app.add_option("MEASURED", options->measured,
                   "timeline of rehearse run --trace, or a trace of PyTorch's profiler (Chrome JSON, gzip or not)")
        ->required();
    app.add_option("--model", options->model, "of a profiler's trace: the network, matched by layer and pass")
        ->option_text("NAME|FILE.onnx|config.json");
    app.add_option("--batch", options->batch, "of a profiler's trace: samples of a step on one rank")->option_text("N");
    app.add_option("--fail-over", options->fail_over, "exit 1 when the step's error is larger")->option_text("20%");
    app.add_flag("--steps", options->steps, "also a row for every single step");
    add_common(app, options->common);
    return [options] { return compare(*options); };
}

}  // namespace rehearse::cli
