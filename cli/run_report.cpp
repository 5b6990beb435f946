// SPDX-License-Identifier: Apache-2.0
#include "cli/run_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "cli/json.hpp"
#include "cli/report.hpp"
#include "core/methods/bilevel.hpp"
#include "core/methods/servers.hpp"
#include "report/prediction_json.hpp"
#include "run/methods/architecture.hpp"
#include "trace/trace.hpp"

namespace rehearse::cli {

namespace {

/// Null where a training has diverged.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json steps_of(const run::Result& result) {
    Json steps = Json::array();
    for (std::size_t i = 0; i < result.steps.size(); ++i) {
        const run::StepReport& s = result.steps[i];
        steps.push_back({{"step", result.first_step + static_cast<int>(i)},
                         {"loss", finite(s.loss)},
                         {"seconds", s.seconds.value},
                         {"samples_per_s", s.samples_per_s},
                         {"exposed_comm_s", s.exposed_comm.value},
                         {"input_wait_s", s.input_wait.value},
                         {"loss_scale", s.loss_scale},
                         {"skipped", s.skipped}});
        if (s.mean_iou >= 0) steps.back()["mean_iou"] = s.mean_iou;
    }
    return steps;
}

Json config_of(const RunOptions& options) {
    Json config = configuration(options.job);
    config["steps"] = options.run.steps;
    config["seed"] = options.run.seed;
    config["data"] = options.run.data;
    config["order"] = options.order;
    config["ignore_label"] = options.run.ignored_label;
    config["learning_rate"] = options.learning_rate.value_or(run::default_learning_rate(options.job.optimizer));
    config["momentum"] = options.run.momentum;
    config["weight_decay"] = options.run.weight_decay;
    if (options.job.optimizer != Optimizer::sgd) {
        config["beta2"] = options.run.second_factor;
        config["epsilon"] = options.epsilon.value_or(run::default_epsilon(options.job.optimizer));
    }
    config["device"] = options.run.device;
    config["learners"] = options.run.learners;
    config["graphs"] = options.run.graphs;
    return config;
}

std::vector<Table> tables_of(const RunOptions& options, const Schedule& schedule, const run::Result& result) {
    Table summary{"points",
                  "the median step",
                  {{"devices", "ranks", Show::count},
                   {"global_batch", "batch", Show::count},
                   {"step_s", "step", Show::seconds},
                   {"samples_per_s", "samples/s", Show::number},
                   {"compute_s", "compute", Show::seconds},
                   {"exposed_comm_s", "exposed comm", Show::seconds},
                   {"bubble_s", "bubble", Show::seconds},
                   {"rest_s", "rest", Show::seconds}}};
    if (schedule.methods.get<Servers>().count > 0) {
        summary.columns.push_back({"mean_staleness", "mean staleness", Show::number});
        summary.columns.push_back({"most_staleness", "most", Show::count});
    }
    const Table steps{"steps",
                      "",
                      {{"step", "step", Show::count},
                       {"loss", "loss", Show::number},
                       {"seconds", "time", Show::seconds},
                       {"samples_per_s", "samples/s", Show::number},
                       {"exposed_comm_s", "exposed comm", Show::seconds}}};
    std::vector<Table> tables;
    if (!speaks_live(options)) tables.push_back(steps);
    if (!result.timeline.events.empty()) tables.push_back(summary);
    if (!result.phases.empty()) {
        tables.push_back({"phases",
                          "the auto-tuner",
                          {{"learners", "learners", Show::count},
                           {"steps", "steps", Show::count},
                           {"samples_per_s", "samples/s", Show::number},
                           {"then", "then"}}});
    }
    return tables;
}

/// A row an edge of the cells: which operator has most of it.
void add_architecture(Report& report, const Schedule& schedule, const run::Result& result) {
    if (!schedule.methods.get<Bilevel>().on) return;
    report.document["architecture"] = Json::array();
    for (const run::MixedOperators& mixed : run::mixed_operators(schedule.classes.front(), result.weights)) {
        const auto most = std::ranges::max_element(mixed.shares) - mixed.shares.begin();
        Json shares = Json::object();
        for (std::size_t i = 0; i < mixed.shares.size(); ++i) shares[mixed.operators[i]] = finite(mixed.shares[i]);
        report.document["architecture"].push_back({{"layer", mixed.layer},
                                                   {"operator", mixed.operators[static_cast<std::size_t>(most)]},
                                                   {"share", finite(mixed.shares[static_cast<std::size_t>(most)])},
                                                   {"shares", std::move(shares)}});
    }
    report.tables.push_back({"architecture",
                             "the operator with most of each edge",
                             {{"layer", "edge"}, {"operator", "operator"}, {"share", "share", Show::percent}}});
}

Report report_of(const RunOptions& options, const Schedule& schedule, const run::Result& result) {
    Report report{document("run", config_of(options)), {}, ""};
    report.document["model"] = schedule.network.name;
    report.document["machine"] = "this-host";
    report.document["plan"] = options.job.plan;
    report.document["precision"] = to_string(schedule.precision);
    if (!speaks_live(options)) report.document["steps"] = steps_of(result);
    report.document["samples"] = result.samples;
    if (options.run.target_loss > 0) report.document["target_reached"] = result.target.reached;
    for (const run::TuningPhase& phase : result.phases) {
        report.document["phases"].push_back({{"learners", phase.learners},
                                             {"steps", phase.steps},
                                             {"samples_per_s", phase.samples_per_s},
                                             {"then", phase.then}});
    }
    const bool timed = !result.timeline.events.empty();  // kernels of learners overlap: there is no timeline
    report.document["points"] = Json::array();
    if (timed)
        report.document["points"].push_back(
            report::json_of(figures_of(schedule, summarize(schedule, result.timeline))));
    const bool serves = schedule.methods.get<Servers>().count > 0;
    if (serves && timed) report::add_staleness(report.document["points"][0], Staleness{result.staleness});
    if (!options.patience.empty()) {
        report.document["lost"] = result.lost;
        report.document["cut"] = result.cut;
        report.document["staleness"] = result.staleness;
        report.footer = fmt::format("workers that died: {}; that a quorum did not wait for: {}", result.lost.size(),
                                    result.cut.size());
    }
    if (options.run.check_gradients) {
        report.document["gradient_error"] = finite(result.gradient_error);
        report.document["gradient_tolerance"] = finite(result.gradient_tolerance);
        report.footer = fmt::format(
            "{} {:.2g}, allowed {:.2g}",
            options.run.unlocked > 0 ? "updates lost: of a step's sum" : "gradients against one rank: relative error",
            result.gradient_error, result.gradient_tolerance);
    }
    report.tables = tables_of(options, schedule, result);
    add_architecture(report, schedule, result);
    if (options.run.target_loss > 0) {
        const run::TargetLoss& target = result.target;
        report.document["mean_loss"] = finite(target.mean);
        report.footer = fmt::format("{} after {} samples: mean loss {:.6g} over the last {}, asked for {} over {}",
                                    target.reached ? "reached" : "not reached", result.samples, target.mean,
                                    target.samples, options.run.target_loss, options.run.target_samples);
    }
    return report;
}

/// A row a network.
void add_growth(Report& report, const std::vector<GrownPhase>& phases) {
    if (phases.empty()) return;
    report.document["growth"] = Json::array();
    for (const GrownPhase& each : phases) {
        report.document["growth"].push_back({{"from_step", each.phase.from},
                                             {"model", each.phase.model},
                                             {"parameters", each.parameters},
                                             {"steps", each.steps},
                                             {"seconds", each.seconds.value},
                                             {"kept_layers", each.grown.kept},
                                             {"copied_layers", each.grown.copied},
                                             {"new_layers", each.grown.fresh}});
    }
    report.tables.push_back({"growth",
                             "networks",
                             {{"from_step", "from step", Show::count},
                              {"model", "network"},
                              {"parameters", "parameters", Show::count},
                              {"steps", "steps", Show::count},
                              {"seconds", "time", Show::seconds},
                              {"kept_layers", "kept", Show::count},
                              {"copied_layers", "copied", Show::count},
                              {"new_layers", "new", Show::count}}});
}

void say_diverged(const RunOptions& options, const std::pair<int, double>& diverged) {
    const auto& [step, loss] = diverged;
    talk(options.common, fmt::format("rehearse: the training diverged: the loss of step {} is {}; a smaller "
                                     "--learning-rate may help",
                                     step, loss));
}

}  // namespace

void print_step(int step, const run::StepReport& report, bool head) {
    if (head) std::cout << "step        loss      time   samples/s  exposed comm\n";
    const std::string iou = report.mean_iou >= 0 ? fmt::format("  mean IoU {:.3f}", report.mean_iou) : "";
    const std::string skipped =
        report.skipped ? fmt::format("  skipped: gradients overflow at loss scale {}", report.loss_scale) : "";
    std::cout << fmt::format("{:4}  {:10.5f}  {:>8}  {:10.1f}  {:>12}{}{}\n", step, report.loss,
                             to_string(report.seconds), report.samples_per_s, to_string(report.exposed_comm), iou,
                             skipped)
              << std::flush;
}

bool speaks_live(const RunOptions& options) {
    return options.common.format == Format::table && options.common.output.empty();
}

int tell(const RunOptions& options, const Trained& trained, const std::vector<GrownPhase>& grown) {
    const run::Result& result = trained.result;
    if (!result.left_to_host.empty()) {
        talk(options.common, fmt::format("the host ran what has no kernel on the device: {}", result.left_to_host));
    }
    if (speaks_live(options)) std::cout << '\n';
    Report report = report_of(options, trained.schedule, result);
    add_growth(report, grown);
    if (trained.diverged) report.document["diverged_at_step"] = trained.diverged->first;
    print(report, options.common);
    if (!options.trace.empty()) {
        trace::write(result.timeline, options.trace);
        const bool some = trained.steps > run::most_steps_in_timeline;
        talk(options.common, fmt::format("trace: {}{}", options.trace,
                                         some ? fmt::format(" (the last {} steps)", run::most_steps_in_timeline) : ""));
    }
    if (trained.diverged) say_diverged(options, *trained.diverged);
    const bool lacks_gradients = !options.run.save_gradients.empty() && result.steps.back().skipped;
    if (lacks_gradients) {
        talk(options.common,
             fmt::format("rehearse: --save-gradients {}: not written, as the last step was skipped: its "
                         "gradients overflow at loss scale {}",
                         options.run.save_gradients, result.steps.back().loss_scale));
    }
    if (trained.diverged || lacks_gradients) return check_failed;
    const bool wrong = options.run.check_gradients && !(result.gradient_error <= result.gradient_tolerance);
    return wrong ? check_failed : good;
}

}  // namespace rehearse::cli
