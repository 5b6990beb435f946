// SPDX-License-Identifier: Apache-2.0
// rehearse study: trials of a network's values and sizes on MPI ranks, one a rank at a time, each round predicted and
// measured; or predicted alone, with losses drawn at random in place of trained ones.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/job.hpp"
#include "cli/report.hpp"
#include "cli/tuned.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "kernels/comm/communicator.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"
#include "run/clock.hpp"
#include "run/trainer.hpp"
#include "study/ranks.hpp"
#include "study/space.hpp"
#include "study/strategies.hpp"

namespace rehearse::cli {

namespace {

using Json = nlohmann::ordered_json;
using study::Trial;
using study::Turn;

constexpr std::array trained_by{"learning-rate", "momentum", "weight-decay", "beta2", "batch"};

struct Options {
    Common common;
    std::string model = "gpt-h{width}-a2-l{depth}-v64@16", strategy = "halving", data = "synthetic", machine;
    std::vector<std::string> space;
    std::int64_t batch = 8, devices = 0;
    Optimizer optimizer = Optimizer::sgd;
    study::Settings settings;
};

/// What one point of the space asks for.
struct Asked {
    std::string model;
    std::int64_t batch = 1;
    std::map<std::string, double> values;  // of the training
    std::string text;
};

class Study {
public:
    explicit Study(const Options& options) : options_(options), settings_(options.settings) {
        for (const std::string& text : options.space) {
            space_.push_back(study::parse_parameter(text));
            const study::Parameter& last = space_.back();
            const bool trains = std::ranges::find(trained_by, last.name) != trained_by.end();
            const bool shapes = study::names(options.model, last);
            if (!trains && !shapes) {
                throw InputError(fmt::format("--space {}: neither {{{}}} of --model nor one of {}", text, last.name,
                                             fmt::join(trained_by, ", ")));
            }
            settings_.fixed.push_back(shapes || last.name == "batch");
        }
        if (space_.empty())
            throw InputError("--space: what is to be varied is missing; --space learning-rate=1e-3..1:log");
        if (!options.machine.empty()) machine_ = models::load_machine(options.machine);
    }

    const study::Settings& settings() const { return settings_; }
    bool predicts() const { return machine_.has_value(); }

    Asked asked(const study::Point& point) const {
        Asked made{study::with_values(options_.model, space_, point), options_.batch, {}, {}};
        for (std::size_t i = 0; i < space_.size(); ++i) {
            const std::string& name = space_[i].name;
            const std::string value = study::value_at(space_[i], point[i]);
            made.text += fmt::format("{}{} {}", i == 0 ? "" : ", ", name, value);
            if (study::names(options_.model, space_[i])) continue;
            made.values[name] = parse_number(value, fmt::format("--space {}", name));
        }
        if (const auto batch = made.values.find("batch"); batch != made.values.end())
            made.batch = static_cast<std::int64_t>(batch->second);
        if (made.batch < 1) throw InputError(fmt::format("--space batch: {} samples", made.batch));
        return made;
    }

    const Network& network(const std::string& model) {
        const auto [entry, fresh] = networks_.try_emplace(model);
        if (fresh) entry->second = models::load_network(model);
        return entry->second;
    }

    /// Of one training step: predicted on the machine; without one, in operations, so that ranks get shares alike.
    double cost_of_step(const Asked& asked) {
        const auto [entry, fresh] = costs_.try_emplace(fmt::format("{} {}", asked.model, asked.batch));
        if (!fresh) return entry->second;
        const Network& of = network(asked.model);
        if (!predicts()) return entry->second = flops(of, Pass::forward, asked.batch).value;
        predict::Job job{.network = of, .machine = *machine_};
        job.batch = asked.batch;
        job.optimizer = options_.optimizer;
        job.bands = false;
        Timeline timeline;
        return entry->second = predict::point_of(job, predict::setup_of(job, 1), timeline).figures.time.step.value;
    }

    run::Options training(const Asked& asked, const std::string& checkpoint, bool goes_on, int until) const {
        const auto or_else = [&](const char* name, double otherwise) {
            const auto found = asked.values.find(name);
            return static_cast<float>(found == asked.values.end() ? otherwise : found->second);
        };
        run::Options made;
        made.steps = made.checkpoint_every = until;
        made.seed = settings_.seed;
        made.data = options_.data;
        made.record = false;
        made.learning_rate = or_else("learning-rate", run::default_learning_rate(options_.optimizer));
        made.momentum = or_else("momentum", made.momentum);
        made.weight_decay = or_else("weight-decay", 0);
        made.second_factor = or_else("beta2", made.second_factor);
        made.epsilon = run::default_epsilon(options_.optimizer);
        if (!(made.learning_rate > 0)) throw InputError("--space learning-rate: above 0");
        if (!(made.momentum >= 0 && made.momentum < 1)) throw InputError("--space momentum: from 0 to below 1");
        if (!(made.second_factor >= 0 && made.second_factor < 1)) throw InputError("--space beta2: from 0 to below 1");
        made.checkpoint = checkpoint;
        made.resume = goes_on;
        return made;
    }

private:
    const Options& options_;
    study::Settings settings_;
    std::vector<study::Parameter> space_;
    std::optional<Machine> machine_;
    std::map<std::string, Network> networks_;
    std::map<std::string, double> costs_;
};

/// What a round took.
struct Round {
    std::size_t trials = 0;
    std::int64_t ranks = 0;
    double predicted_s = -1, trained_s = -1, measured_s = -1;  // -1: neither; trained: in steps alone
};

struct Outcome {
    std::vector<Trial> trials;
    std::vector<Round> rounds;
};

int steps_of(const Turn& turn, const std::vector<Trial>& trials) {
    return turn.from == Turn::new_weights ? turn.until : turn.until - trials[static_cast<std::size_t>(turn.from)].steps;
}

/// Of each of a round's turns its loss, and the time of its steps.
struct Results {
    std::vector<double> losses, seconds;
};
using Trained = std::function<Results(const std::vector<Turn>&, const study::Division&, int round)>;

double longest(const std::vector<double>& seconds, const study::Division& division, std::int64_t ranks) {
    std::vector<double> sums(static_cast<std::size_t>(ranks));
    for (std::size_t i = 0; i < seconds.size(); ++i) sums[static_cast<std::size_t>(division.ranks[i])] += seconds[i];
    return std::ranges::max(sums);
}

Outcome searched(Study& study, std::string_view strategy, std::int64_t ranks, std::vector<Trial>& trials,
                 const Trained& train, bool measured) {
    Outcome outcome;
    for (int round = 0;; ++round) {
        const std::vector<Turn> turns = study::strategy(strategy).next(study.settings(), trials, round);
        if (turns.empty()) break;
        std::vector<double> costs;
        for (const Turn& turn : turns) {
            const Asked asked = study.asked(trials[static_cast<std::size_t>(turn.trial)].point);
            costs.push_back(study.cost_of_step(asked) * steps_of(turn, trials));
        }
        const study::Division division = study::divided(costs, ranks);
        const double start = run::now();
        const Results results = train(turns, division, round);
        const double took = run::now() - start;
        for (std::size_t i = 0; i < turns.size(); ++i) {
            Trial& trial = trials[static_cast<std::size_t>(turns[i].trial)];
            trial.steps = turns[i].until;
            trial.loss = std::isfinite(results.losses[i]) ? results.losses[i] : study::unknown;
        }
        outcome.rounds.push_back({turns.size(), std::min<std::int64_t>(ranks, std::ssize(turns)),
                                  study.predicts() ? division.longest : -1,
                                  measured ? longest(results.seconds, division, ranks) : -1, measured ? took : -1});
    }
    outcome.trials = trials;
    return outcome;
}

/// The mean of the last quarter of its steps: each is of samples that it has not seen.
double loss_of(const run::Result& result) {
    const std::size_t count = std::max<std::size_t>(1, result.steps.size() / 4);
    double sum = 0;
    for (std::size_t i = result.steps.size() - count; i < result.steps.size(); ++i) sum += result.steps[i].loss;
    return sum / static_cast<double>(count);
}

/// Checkpoints of all trials, in a folder that is gone when the study is over.
class Folder {
public:
    explicit Folder(const kernels::Communicator& world) : first_(world.rank() == 0) {
        const auto own = std::filesystem::temp_directory_path() / fmt::format("rehearse-study-{}", getpid());
        path_ = world.all_gather(own.string()).front();
        if (first_) std::filesystem::create_directory(path_);
        world.barrier();
    }
    ~Folder() {
        std::error_code ignored;
        if (first_) std::filesystem::remove_all(path_, ignored);
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string of(int trial) const { return (path_ / fmt::format("trial{}", trial)).string(); }
    void copy(int from, int to) const {
        std::filesystem::remove_all(of(to));
        std::filesystem::copy(of(from), of(to));
    }

private:
    bool first_;
    std::filesystem::path path_;
};

Results train_turns(Study& study, const Options& options, const kernels::Communicator& world, const Folder& folder,
                    const kernels::Choices& tuned, const std::vector<Trial>& trials, const std::vector<Turn>& turns,
                    const study::Division& division) {
    for (const Turn& turn : turns)
        if (world.rank() == 0 && turn.from != Turn::new_weights && turn.from != turn.trial)
            folder.copy(turn.from, turn.trial);
    world.barrier();
    std::vector<double> own(2 * turns.size());
    const kernels::Communicator self = kernels::Communicator::self();
    Machine alone;
    alone.name = "rank";
    alone.classes.resize(1);
    alone.classes[0].name = "rank";
    alone.nodes = {NodeKind{"host", 1, {{"rank0", VertexKind::device, 0}}, {}}};
    for (std::size_t i = 0; i < turns.size(); ++i) {
        if (division.ranks[i] != world.rank()) continue;
        const Turn& turn = turns[i];
        const Asked asked = study.asked(trials[static_cast<std::size_t>(turn.trial)].point);
        const schedule::Job job{1, asked.batch, {}, Precision::fp32, options.optimizer};
        const Schedule schedule = make_schedule(study.network(asked.model), alone, schedule::parse_plan("data"), job);
        const bool goes_on = turn.from != Turn::new_weights;
        const std::string checkpoint = study::strategy(options.strategy).continues ? folder.of(turn.trial) : "";
        run::Options how = study.training(asked, checkpoint, goes_on, turn.until);
        how.tuned = tuned;
        const run::Result result = run::train_on(self, schedule, how, {}, {});
        own[2 * i] = loss_of(result);
        for (const run::StepReport& step : result.steps) own[2 * i + 1] += step.seconds.value;
    }
    const std::vector<double> all = world.all_gather(own);
    Results results;
    for (std::size_t i = 0; i < turns.size(); ++i) {
        const std::size_t place = static_cast<std::size_t>(division.ranks[i]) * own.size() + 2 * i;
        results.losses.push_back(all[place]);
        results.seconds.push_back(all[place + 1]);
    }
    return results;
}

Json rounds_of(const Outcome& outcome) {
    Json rounds = Json::array();
    for (std::size_t i = 0; i < outcome.rounds.size(); ++i) {
        const Round& round = outcome.rounds[i];
        Json row{{"round", i}, {"trials", round.trials}, {"ranks", round.ranks}};
        if (round.predicted_s >= 0) row["predicted_s"] = round.predicted_s;
        if (round.measured_s >= 0) row["trained_s"] = round.trained_s, row["measured_s"] = round.measured_s;
        if (round.predicted_s >= 0 && round.trained_s > 0) row["error"] = round.predicted_s / round.trained_s - 1;
        rounds.push_back(std::move(row));
    }
    return rounds;
}

Report report_of(const Options& options, const Study& study, const Outcome& outcome, std::int64_t ranks, bool trained) {
    Json config{{"model", options.model},
                {"space", options.space},
                {"strategy", options.strategy},
                {"batch", options.batch},
                {"optimizer", to_string(options.optimizer)},
                {"data", options.data},
                {"population", options.settings.population},
                {"rounds", options.settings.rounds},
                {"steps", options.settings.steps},
                {"seed", options.settings.seed},
                {"ranks", ranks},
                {"machine", options.machine}};
    Report report{document("study", std::move(config)), {}, ""};
    report.document["rounds"] = rounds_of(outcome);
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
        predicted += round.predicted_s, steps += round.trained_s, measured += round.measured_s;
    if (study.predicts()) {
        report.document["predicted_s"] = predicted;
        report.footer = fmt::format("predicted: {} on {}", to_string(Seconds{predicted}), options.machine);
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
    (void)study::strategy(options.strategy);
    if (options.settings.population < 2) throw InputError("--population: at least 2");
    if (options.settings.rounds < 1) throw InputError("--rounds: at least 1");
    if (options.settings.steps < 1) throw InputError("--steps: at least 1");
    const double most = options.settings.steps * std::exp2(options.settings.rounds);  // of halving's last trial
    if (most > 1e9)
        throw InputError(fmt::format("--steps and --rounds: up to {:.3g} steps of a trial, 1e9 at most", most));
    if (options.devices < 0) throw InputError("--devices: at least 1");
    if (options.devices > 0 && options.machine.empty()) throw InputError("--devices: --machine is missing");
    if (options.strategy == "halving" && options.settings.rounds > 20)
        throw InputError("--rounds of halving: 20 at most");
}

int predicted_alone(const Options& options) {
    Study study{options};
    std::vector<Trial> trials;
    std::uint64_t drawn = options.settings.seed;
    const auto random_losses = [&](const std::vector<Turn>& turns, const study::Division&, int) {
        Results results;
        for (std::size_t i = 0; i < turns.size(); ++i) {
            drawn = drawn * 6364136223846793005U + 1442695040888963407U;  // Knuth's, of MMIX
            results.losses.push_back(static_cast<double>(drawn >> 11) * 0x1p-53);
        }
        return results;
    };
    const Outcome outcome = searched(study, options.strategy, options.devices, trials, random_losses, false);
    print(report_of(options, study, outcome, options.devices, false), options.common);
    return good;
}

int trained(const run::Session& session, const Options& options) {
    Study study{options};
    const kernels::Communicator world = kernels::Communicator::world();
    const Folder folder{world};
    const kernels::Choices tuned = tuned_for_all(run::Options{}.scratch_limit, options.common);
    std::vector<Trial> trials;
    const auto train = [&](const std::vector<Turn>& turns, const study::Division& division, int round) {
        if (world.rank() == 0) talk(options.common, fmt::format("round {}: {} trials", round, turns.size()));
        return train_turns(study, options, world, folder, tuned, trials, turns, division);
    };
    const Outcome outcome = searched(study, options.strategy, session.size(), trials, train, true);
    if (world.rank() == 0) print(report_of(options, study, outcome, session.size(), true), options.common);
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
    app.add_option("--model", options->model, "the network's name, with {NAME} where a parameter's value belongs")
        ->option_text("NAME")
        ->capture_default_str();
    app.add_option(
           "--space", options->space,
           "a parameter: of --model's braces, or learning-rate, momentum, weight-decay, beta2, batch; again for "
           "each")
        ->option_text("NAME=A|B|C, NAME=LOW..HIGH or NAME=LOW..HIGH:log");
    std::string strategies;
    for (const study::Strategy& each : study::strategies())
        strategies += fmt::format("{}{}: {}", strategies.empty() ? "" : "; ", each.name, each.summary);
    app.add_option("--strategy", options->strategy, strategies)
        ->option_text("random|halving|pbt|evolution|pso")
        ->capture_default_str();
    app.add_option("--population", options->settings.population, "trials of the first round")
        ->option_text("N")
        ->capture_default_str();
    app.add_option("--rounds", options->settings.rounds, "at most")->option_text("N")->capture_default_str();
    app.add_option("--steps", options->settings.steps, "training steps of a trial in a round")
        ->option_text("N")
        ->capture_default_str();
    app.add_option("--batch", options->batch, "samples of a step")->option_text("N")->capture_default_str();
    add_optimizer(app, options->optimizer);
    app.add_option("--data", options->data, "as run takes it")
        ->option_text("synthetic|climate|graphs|idx:FOLDER|FILE.h5")
        ->capture_default_str();
    app.add_option("--seed", options->settings.seed, "of points, weights and data")
        ->option_text("N")
        ->capture_default_str();
    app.add_option("--machine", options->machine,
                   "predict each round on it; this-host, once calibrated, beside what is measured")
        ->option_text("NAME|FILE.toml");
    app.add_option("--devices", options->devices,
                   "train nothing: how long rounds take on so many devices of --machine, a trial a device at a time")
        ->option_text("N");
    add_common(app, options->common);
    return [options] { return start(*options); };
}

}  // namespace rehearse::cli
