// SPDX-License-Identifier: Apache-2.0
#include "run/methods/learners.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "core/methods/lag.hpp"
#include "core/precision.hpp"
#include "run/clock.hpp"
#include "run/data/handover.hpp"
#include "run/data/samples.hpp"
#include "run/job_check.hpp"
#include "run/random.hpp"
#include "run/reference/part_check.hpp"
#include "run/step_report.hpp"

namespace rehearse::run {

namespace {

[[noreturn]] void refuse(const std::string& why) { throw InputError("--learners: " + why); }

/// What is asked for of the ranks that learners stand for, or at the end of their training.
void check_options(const Options& options) {
    if (options.steps < 1) refuse(fmt::format("--steps {}: at least 1 is needed", options.steps));
    if (options.check_gradients) refuse("no --check-gradients: compare losses with as many ranks");
    const std::pair<bool, std::string_view> asked[]{{!options.checkpoint.empty(), "--checkpoint"},
                                                    {options.resume, "--resume"},
                                                    {options.rebatch, "--rebatch"},
                                                    {!options.save.empty(), "--save"},
                                                    {!options.save_gradients.empty(), "--save-gradients"},
                                                    {options.target_loss > 0, "--target-loss"},
                                                    {!options.stop_file.empty(), "--stop-file"},
                                                    {options.unlocked > 0, "--unlocked"},
                                                    {!options.by_learners.empty(), "--tune-learners"},
                                                    {options.patience.value > 0, "--patience"}};
    for (const auto& [is, option] : asked) {
        if (is) refuse(fmt::format("no {}: leave it out, or train with as many ranks", option));
    }
}

void check_steps(const Schedule& schedule) {
    if (scales_loss(schedule.precision)) refuse("fp32 or bf16 only: each learner would find its own loss scale");
    if (schedule.classes.size() != 1 || !is_whole(schedule) || schedule.methods.get<Lag>().steps > 0) {
        refuse(fmt::format("the plan must be data parallelism of whole networks, not '{}'", schedule.plan));
    }
    for (const Step& step : schedule.classes.front().steps) {
        const auto* sum = std::get_if<Communicate>(&step.action);
        const bool sums =
            sum != nullptr && sum->kind == CollectiveKind::all_reduce && sum->of_bucket() && is_sum(sum->algorithm);
        if (sums || std::holds_alternative<Compute>(step.action) || std::holds_alternative<Update>(step.action))
            continue;
        refuse(fmt::format("step '{}' of plan '{}' is neither a kernel, a sum of gradients nor an update", step.name,
                           schedule.plan));
    }
}

class Learners {
public:
    Learners(const Schedule& schedule, const Options& options, kernels::Device& device)
        : schedule_(schedule),
          options_(options),
          device_(device),
          samples_(schedule.network, key(options.seed, data_of), options.data, options.shuffle, options.ignored_label) {
        const KernelSelection selection = selection_of(options, &device);
        const Hyperparameters hyperparameters = hyperparameters_of(options);
        for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
            device.use_stream(static_cast<int>(rank));
            programs_.push_back(
                std::make_unique<Program>(schedule, rank, selection, key(options.seed, weights_of), hyperparameters));
            rooms_.push_back(std::make_unique<Handover>(*programs_.back()));
        }
    }

    Result train(const Report& report) {
        Result result;
        if (options_.begun) options_.begun();
        for (int step = 0; step < options_.steps; ++step) {
            for (std::size_t l = 0; l < programs_.size(); ++l) load(step, l);
            const double begin = now();
            train_step(step);
            StepReport made;
            made.seconds = Seconds{now() - begin};
            for (const auto& program : programs_)
                made.loss += program->losses().sum() / static_cast<double>(global_batch(schedule_));
            made.samples_per_s = static_cast<double>(global_batch(schedule_)) / made.seconds.value;
            add_step(result, options_, made);
            if (report) report(step, made);
        }
        result.weights = floats_of(programs_.front()->tensors().weights());
        result.gradients = floats_of(programs_.front()->tensors().applied());
        return result;
    }

private:
    void load(int step, std::size_t learner) {
        const ReadBatch& room = rooms_[learner]->room();
        const auto count = static_cast<std::size_t>(schedule_.batch_per_rank);
        const std::size_t size = room.input.size() / count, rows = room.labels.size() / count;
        const std::size_t words = room.ids.size() / count;
        for (std::size_t i = 0; i < count; ++i) {
            const auto sample = step * global_batch(schedule_) + static_cast<std::int64_t>(learner * count + i);
            samples_.fill(sample, room.input.subspan(i * size, size), room.ids.subspan(i * words, words),
                          room.labels.subspan(i * rows, rows));
        }
        bring(room, *programs_[learner]);
    }

    // Step by step each learner in turn, so that none waits long for its next kernel.
    void train_step(int step) {
        const std::uint64_t seed = key(key(options_.seed, dropout_of), static_cast<std::uint64_t>(step));
        for (const auto& program : programs_) program->begin_step();
        std::vector<std::size_t> sums;
        for (std::size_t i = 0; i < programs_.front()->steps().size(); ++i) {
            const auto& action = programs_.front()->steps()[i].step->action;
            if (std::holds_alternative<Communicate>(action)) {
                sums.push_back(i);
                continue;
            }
            if (std::holds_alternative<Update>(action)) add_up(std::exchange(sums, {}));
            for (std::size_t l = 0; l < programs_.size(); ++l) {
                device_.use_stream(static_cast<int>(l));
                Program& program = *programs_[l];
                program.compute(program.steps()[i], seed, static_cast<std::int64_t>(l) * schedule_.batch_per_rank);
            }
        }
        for (const auto& program : programs_) program->end_step();
        device_.use_stream(0);
    }

    // In the order of the learners, on the first one's stream, when all have come so far.
    void add_up(const std::vector<std::size_t>& steps) {
        if (steps.empty()) return;
        device_.finish();
        device_.use_stream(0);
        for (const std::size_t i : steps) {
            const kernels::View sum = gradients(0, i);
            for (std::size_t l = 1; l < programs_.size(); ++l) device_.add(sum, gradients(l, i));
            for (std::size_t l = 1; l < programs_.size(); ++l) device_.copy(sum, gradients(l, i));
        }
        device_.finish();
    }
    kernels::View gradients(std::size_t learner, std::size_t step) {
        const auto& sum = std::get<Communicate>(programs_[learner]->steps()[step].step->action);
        return programs_[learner]->tensors().bucket(sum.bucket()).applied;
    }

    const Schedule& schedule_;
    const Options& options_;
    kernels::Device& device_;
    Samples samples_;
    std::vector<std::unique_ptr<Program>> programs_;
    std::vector<std::unique_ptr<Handover>> rooms_;  // of their samples
};

}  // namespace

void check_learners(const Schedule& schedule, const Options& options) {
    rehearse::check(schedule);
    check_options(options);
    check_limits({schedule, options, options.device});
    check_steps(schedule);
}

Result train_learners(const Schedule& schedule, const Options& options, const Report& report, kernels::Device& device) {
    check_learners(schedule, options);
    return Learners{schedule, options, device}.train(report);
}

}  // namespace rehearse::run
