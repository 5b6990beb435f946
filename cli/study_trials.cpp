// SPDX-License-Identifier: Apache-2.0
#include "cli/study_trials.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/models.hpp"
#include "predict/predict.hpp"

namespace rehearse::cli {

namespace {

constexpr std::array trained_by{"learning-rate", "momentum", "weight-decay", "beta2", "batch"};

/// The mean of the last quarter of its steps: each is of samples that it has not seen.
double loss_of(const run::Result& result) {
    const std::size_t count = std::max<std::size_t>(1, result.steps.size() / 4);
    double sum = 0;
    for (std::size_t i = result.steps.size() - count; i < result.steps.size(); ++i) sum += result.steps[i].loss;
    return sum / static_cast<double>(count);
}

// A machine of nothing but this rank.
Machine one_rank() {
    Machine machine;
    machine.name = "rank";
    machine.classes.resize(1);
    machine.classes[0].name = "rank";
    machine.nodes = {NodeKind{"host", 1, {{"rank0", VertexKind::device, 0}}, {}}};
    return machine;
}

}  // namespace

StudyTrials::StudyTrials(const StudyJob& job) : job_(job), settings_(job.settings) {
    for (const std::string& text : job.space) {
        space_.push_back(study::parse_parameter(text));
        const study::Parameter& last = space_.back();
        const bool trains = std::ranges::find(trained_by, last.name) != trained_by.end();
        const bool shapes = study::names(job.model, last);
        if (!trains && !shapes) {
            throw InputError(fmt::format("--space {}: neither {{{}}} of --model nor one of {}", text, last.name,
                                         fmt::join(trained_by, ", ")));
        }
        settings_.fixed.push_back(shapes || last.name == "batch");
    }
    if (space_.empty()) throw InputError("--space: what is to be varied is missing; --space learning-rate=1e-3..1:log");
    if (!job.machine.empty()) machine_ = models::load_machine(job.machine);
}

Asked StudyTrials::asked(const study::Point& point) const {
    Asked made{study::with_values(job_.model, space_, point), job_.batch, {}, {}};
    for (std::size_t i = 0; i < space_.size(); ++i) {
        const std::string& name = space_[i].name;
        const std::string value = study::value_at(space_[i], point[i]);
        made.text += fmt::format("{}{} {}", i == 0 ? "" : ", ", name, value);
        if (study::names(job_.model, space_[i])) continue;
        made.values[name] = parse_number(value, fmt::format("--space {}", name));
    }
    if (const auto batch = made.values.find("batch"); batch != made.values.end())
        made.batch = static_cast<std::int64_t>(batch->second);
    if (made.batch < 1) throw InputError(fmt::format("--space batch: {} samples", made.batch));
    return made;
}

const Network& StudyTrials::network(const std::string& model) {
    const auto [entry, fresh] = networks_.try_emplace(model);
    if (fresh) entry->second = models::load_network(model);
    return entry->second;
}

double StudyTrials::cost_of_step(const study::Point& point) {
    const Asked asked = this->asked(point);
    const auto [entry, fresh] = costs_.try_emplace(fmt::format("{} {}", asked.model, asked.batch));
    if (!fresh) return entry->second;
    const Network& of = network(asked.model);
    if (!predicts()) return entry->second = flops(of, Pass::forward, asked.batch).value;
    predict::Job job{.network = of, .machine = *machine_};
    job.batch = asked.batch;
    job.optimizer = job_.optimizer;
    job.bands = false;
    Timeline timeline;
    return entry->second = predict::point_of(job, predict::setup_of(job, 1), timeline).figures.time.step.value;
}

run::Options StudyTrials::training(const Asked& asked, const std::string& checkpoint, bool goes_on, int until) const {
    const auto or_else = [&](const char* name, double otherwise) {
        const auto found = asked.values.find(name);
        return static_cast<float>(found == asked.values.end() ? otherwise : found->second);
    };
    run::Options made;
    made.steps = made.checkpoint_every = until;
    made.seed = settings_.seed;
    made.data = job_.data;
    made.record = false;
    made.learning_rate = or_else("learning-rate", run::default_learning_rate(job_.optimizer));
    made.momentum = or_else("momentum", made.momentum);
    made.weight_decay = or_else("weight-decay", 0);
    made.second_factor = or_else("beta2", made.second_factor);
    made.epsilon = run::default_epsilon(job_.optimizer);
    if (!(made.learning_rate > 0)) throw InputError("--space learning-rate: above 0");
    if (!(made.momentum >= 0 && made.momentum < 1)) throw InputError("--space momentum: from 0 to below 1");
    if (!(made.second_factor >= 0 && made.second_factor < 1)) throw InputError("--space beta2: from 0 to below 1");
    made.checkpoint = checkpoint;
    made.resume = goes_on;
    return made;
}

StudyTraining::StudyTraining(StudyTrials& trials, const StudyJob& job, const kernels::Communicator& world,
                             kernels::Choices tuned)
    : trials_(trials), job_(job), world_(world), tuned_(std::move(tuned)) {
    const auto own = std::filesystem::temp_directory_path() / fmt::format("rehearse-study-{}", getpid());
    folder_ = world.all_gather(own.string()).front();
    if (world.rank() == 0) std::filesystem::create_directory(folder_);
    world.barrier();
}

StudyTraining::~StudyTraining() {
    std::error_code ignored;
    if (world_.rank() == 0) std::filesystem::remove_all(folder_, ignored);
}

std::string StudyTraining::folder_of(int trial) const { return fmt::format("{}/trial{}", folder_, trial); }

run::Result StudyTraining::train_one(const study::Trial& trial, const study::Turn& turn) {
    const Asked asked = trials_.asked(trial.point);
    const schedule::Job job{1, asked.batch, {}, Precision::fp32, job_.optimizer};
    const Schedule schedule =
        make_schedule(trials_.network(asked.model), one_rank(), schedule::parse_plan("data"), job);
    const std::string checkpoint = study::strategy(job_.strategy).continues ? folder_of(turn.trial) : "";
    run::Options how = trials_.training(asked, checkpoint, turn.from != study::Turn::new_weights, turn.until);
    how.tuned = tuned_;
    return run::train_on(kernels::Communicator::self(), schedule, how, {}, {});
}

study::Results StudyTraining::train(const std::vector<study::Trial>& trials, const std::vector<study::Turn>& turns,
                                    const study::Division& division) {
    for (const study::Turn& turn : turns) {
        if (world_.rank() != 0 || turn.from == study::Turn::new_weights || turn.from == turn.trial) continue;
        std::filesystem::remove_all(folder_of(turn.trial));
        std::filesystem::copy(folder_of(turn.from), folder_of(turn.trial));
    }
    world_.barrier();
    std::vector<double> own(2 * turns.size());  // of each turn its loss and its seconds
    for (std::size_t i = 0; i < turns.size(); ++i) {
        if (division.ranks[i] != world_.rank()) continue;
        const run::Result result = train_one(trials[static_cast<std::size_t>(turns[i].trial)], turns[i]);
        own[2 * i] = loss_of(result);
        for (const run::StepReport& step : result.steps) own[2 * i + 1] += step.seconds.value;
    }
    const std::vector<double> all = world_.all_gather(own);
    study::Results results;
    for (std::size_t i = 0; i < turns.size(); ++i) {
        const std::size_t place = static_cast<std::size_t>(division.ranks[i]) * own.size() + 2 * i;
        results.losses.push_back(all[place]);
        results.seconds.push_back(all[place + 1]);
    }
    return results;
}

}  // namespace rehearse::cli
