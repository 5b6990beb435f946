// SPDX-License-Identifier: Apache-2.0
// rehearse study: trials of a network's values and sizes on MPI ranks, one a rank at a time, each round predicted and
// measured; or predicted alone, with losses drawn at random in place of trained ones.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/job.hpp"
#include "cli/json.hpp"
#include "cli/report.hpp"
#include "cli/study_trials.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"

namespace rehearse::cli {

namespace {

using study::Round;
using study::Trial;

struct Options {
    Common common;
    StudyJob job;
    std::int64_t devices = 0;
};

Json rounds_of(const study::Outcome& outcome, bool predicted) {
    Json rounds = Json::array();
    for (std::size_t i = 0; i < outcome.rounds.size(); ++i) {
        const Round& round = outcome.rounds[i];
        Json row{{"round", i}, {"trials", round.trials}, {"ranks", round.ranks}};
        if (predicted) row["predicted_s"] = round.cost;
        if (round.measured_s >= 0) row["trained_s"] = round.trained_s, row["measured_s"] = round.measured_s;
        if (predicted && round.trained_s > 0) row["error"] = round.cost / round.trained_s - 1;
        rounds.push_back(std::move(row));
    }
    return rounds;
}

Report report_of(const Options& options, const StudyTrials& study, const study::Outcome& outcome, std::int64_t ranks,
                 bool trained) {
    Json config{{"model", options.job.model},
                {"space", options.job.space},
                {"strategy", options.job.strategy},
                {"batch", options.job.batch},
                {"optimizer", to_string(options.job.optimizer)},
                {"data", options.job.data},
                {"population", options.job.settings.population},
                {"rounds", options.job.settings.rounds},
                {"steps", options.job.settings.steps},
                {"seed", options.job.settings.seed},
                {"ranks", ranks},
                {"machine", options.job.machine}};
    Report report{document("study", std::move(config)), {}, ""};
    report.document["rounds"] = rounds_of(outcome, study.predicts());
    if (trained) {
        std::vector<const Trial*> order;
        for (const Trial& trial : outcome.trials) order.push_back(&trial);
        std::ranges::stable_sort(order, {}, [](const Trial* trial) { return trial->loss; });
        Json rows = Json::array();
        for (const Trial* trial : order) {
            rows.push_back({{"trial", trial - outcome.trials.data()},
                            {"values", study.asked(trial->point).text},
                            {"model", study.asked(trial->point).model},
                            {"steps", trial->steps}});
            if (trial->loss < study::unknown) rows.back()["loss"] = trial->loss;
        }
        report.document["trials"] = std::move(rows);
        report.tables.push_back({"trials",
                                 "the best first; without a loss: it diverged",
                                 {{"trial", "trial", Show::count},
                                  {"loss", "loss", Show::number},
                                  {"steps", "steps", Show::count},
                                  {"values", "values"}}});
    }
    report.tables.push_back({"rounds",
                             "rounds: of each, the rank that takes longest",
                             {{"round", "round", Show::count},
                              {"trials", "trials", Show::count},
                              {"ranks", "ranks", Show::count},
                              {"predicted_s", "predicted", Show::seconds},
                              {"trained_s", "trained", Show::seconds},
                              {"measured_s", "measured", Show::seconds},
                              {"error", "error", Show::percent}}});
    double predicted = 0, steps = 0, measured = 0;
    for (const Round& round : outcome.rounds)
        predicted += round.cost, steps += round.trained_s, measured += round.measured_s;
    if (study.predicts()) {
        report.document["predicted_s"] = predicted;
        report.footer = fmt::format("predicted: {} on {}", to_string(Seconds{predicted}), options.job.machine);
    }
    if (trained) {
        report.document["trained_s"] = steps;
        report.document["measured_s"] = measured;
        report.footer +=
            fmt::format("{}measured: {} in steps, {} with beginnings and checkpoints",
                        report.footer.empty() ? "" : "; ", to_string(Seconds{steps}), to_string(Seconds{measured}));
    }
    return report;
}

void check(const Options& options) {
    check_writable(options.common.output, options.common);
    const study::Settings& settings = options.job.settings;
    if (settings.population < 2) throw InputError("--population: at least 2");
    if (settings.rounds < 1) throw InputError("--rounds: at least 1");
    if (settings.steps < 1) throw InputError("--steps: at least 1");
    const double most = study::strategy(options.job.strategy).most(settings);
    if (most > 1e9)
        throw InputError(fmt::format("--steps and --rounds: up to {:.3g} steps of a trial, 1e9 at most", most));
    const double turns = static_cast<double>(settings.population) * settings.rounds;
    if (turns > 1e7)
        throw InputError(
            fmt::format("--population and --rounds: up to {:.3g} trainings of a round, 1e7 at most", turns));
    if (options.devices < 0) throw InputError("--devices: at least 1");
    if (options.devices > 0 && options.job.machine.empty()) throw InputError("--devices: --machine is missing");
}

int predicted_alone(const Options& options) {
    StudyTrials trials{options.job};
    if (options.devices > trials.devices())
        throw InputError(
            fmt::format("--devices {}: {} has 1 to {}", options.devices, options.job.machine, trials.devices()));
    std::uint64_t drawn = options.job.settings.seed;
    const auto random_losses = [&](const std::vector<Trial>&, const std::vector<study::Turn>& turns,
                                   const study::Division&, int) {
        study::Results results;
        for (std::size_t i = 0; i < turns.size(); ++i) {
            drawn = drawn * 6364136223846793005U + 1442695040888963407U;  // Knuth's, of MMIX
            results.losses.push_back(static_cast<double>(drawn >> 11) * 0x1p-53);
        }
        return results;
    };
    const auto cost = [&](const study::Point& point) { return trials.cost_of_step(point); };
    const study::Outcome outcome =
        study::search(options.job.strategy, trials.settings(), options.devices, cost, random_losses);
    print(report_of(options, trials, outcome, options.devices, false), options.common);
    return good;
}

int trained(const run::Session& session, const Options& options) {
    StudyTrials trials{options.job};
    const kernels::Communicator world = kernels::Communicator::world();
    StudyTraining training{trials, options.job, world, tuned_for_all(run::Options{}.scratch_limit, options.common)};
    const auto train = [&](const std::vector<Trial>& all, const std::vector<study::Turn>& turns,
                           const study::Division& division, int round) {
        if (world.rank() == 0) talk(options.common, fmt::format("round {}: {} trials", round, turns.size()));
        return training.train(all, turns, division);
    };
    const auto cost = [&](const study::Point& point) { return trials.cost_of_step(point); };
    const study::Outcome outcome = study::search(options.job.strategy, trials.settings(), session.size(), cost, train);
    if (world.rank() == 0) print(report_of(options, trials, outcome, session.size(), true), options.common);
    return good;
}

int start(const Options& options) {
    check(options);
    if (options.devices > 0) return predicted_alone(options);
    int argc = 0;
    char** argv = nullptr;
    const run::Session session{argc, argv};
    return session.run("rehearse", [&] { return trained(session, options); });
}

}  // namespace

Run add_study(CommandLine& app) {
    const auto options = std::make_shared<Options>();
    app.add_option("--model", options->job.model, "the network's name, with {NAME} where a parameter's value belongs")
        ->option_text("NAME")
        ->capture_default_str();
    app.add_option(
           "--space", options->job.space,
           "a parameter: of --model's braces, or learning-rate, momentum, weight-decay, beta2, batch; again for "
           "each")
        ->option_text("NAME=A|B|C, NAME=LOW..HIGH or NAME=LOW..HIGH:log");
    std::string strategies;
    for (const study::Strategy& each : study::strategies())
        strategies += fmt::format("{}{}: {}", strategies.empty() ? "" : "; ", each.name, each.summary);
    app.add_option("--strategy", options->job.strategy, strategies)
        ->option_text("random|halving|pbt|evolution|pso")
        ->capture_default_str();
    app.add_option("--population", options->job.settings.population, "trials of the first round")
        ->option_text("N")
        ->capture_default_str();
    app.add_option("--rounds", options->job.settings.rounds, "at most")->option_text("N")->capture_default_str();
    app.add_option("--steps", options->job.settings.steps, "training steps of a trial in a round")
        ->option_text("N")
        ->capture_default_str();
    app.add_option("--batch", options->job.batch, "samples of a step")->option_text("N")->capture_default_str();
    add_optimizer(app, options->job.optimizer);
    app.add_option("--data", options->job.data, "as run takes it")
        ->option_text("synthetic|climate|graphs|idx:FOLDER|FILE.h5")
        ->capture_default_str();
    app.add_option("--seed", options->job.settings.seed, "of points, weights and data")
        ->option_text("N")
        ->capture_default_str();
    app.add_option("--machine", options->job.machine,
                   "predict each round on it; this-host, once calibrated, beside what is measured")
        ->option_text("NAME|FILE.toml");
    app.add_option("--devices", options->devices,
                   "train nothing: how long rounds take on so many devices of --machine, a trial a device at a time")
        ->option_text("N");
    add_common(app, options->common);
    return [options] { return start(*options); };
}

}  // namespace rehearse::cli
