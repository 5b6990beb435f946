// SPDX-License-Identifier: Apache-2.0
// Training with several worker threads a rank: they take its batch, and ranks bring their models together.
#include "run/methods/worker_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "kernels/comm/idle.hpp"
#include "run/checkpoint/saver.hpp"
#include "run/clock.hpp"
#include "run/data/feed.hpp"
#include "run/loss_target.hpp"
#include "run/methods/averaging.hpp"
#include "run/methods/tuned_trainer.hpp"
#include "run/methods/worker_threads.hpp"
#include "run/placement.hpp"
#include "run/random.hpp"
#include "run/reference/part_check.hpp"
#include "run/step_report.hpp"
#include "run/trainer.hpp"

namespace rehearse::run {

class WorkerTrainer {
public:
    WorkerTrainer(const kernels::Communicator& world, const Schedule& schedule, const Options& options)
        : world_(world),
          ring_(world.split(0, world.rank())),
          schedule_(schedule),
          options_(options),
          threads_(schedule, options, selection_of(options, nullptr), hyperparameters_of(options),
                   key(options.seed, weights_of)),
          first_sample_(first_sample(schedule, shard_of(schedule.mesh, RankIndex{world.rank()}))),
          feed_(schedule, key(options.seed, data_of), options.data, options.shuffle, options.ignored_label,
                first_sample_),
          average_(floats_of(first_program().tensors().weights())),
          last_(average_),
          sum_(average_.size()) {
        ring_.connect();
        find_sums();
    }

    Result train(const Report& report) {
        Result result;
        RankSaver saver{world_, schedule_, options_, [this](const UseNumbers& use) { visit_state(use); }};
        result.first_step = static_cast<int>(saver.begin().step);
        result.samples = result.first_step * global_batch(schedule_);
        LossTarget target{options_};
        for (int step = result.first_step; step < options_.steps; ++step) {
            add_step(result, options_, train_step(step));
            result.samples = (step + std::int64_t{1}) * global_batch(schedule_);
            result.target = target.after(result.steps.back().loss, global_batch(schedule_));
            const bool last = result.target.reached || step + 1 == options_.steps;
            saver.after(step, last);
            if (report && world_.rank() == 0) report(step, result.steps.back());
            if (last) break;
        }
        finish(result);
        if (options_.check_gradients) check(result, *threads_.learners().back().program);
        return result;
    }

    /// The weights and gradients of the last learner.
    void finish(Result& result) {
        Program& last = *threads_.learners().back().program;
        if (!threads_.model().empty()) assign(last.tensors().weights(), threads_.model());
        result.weights = floats_of(last.tensors().weights());
        result.gradients = floats_of(last.tensors().applied());
        result.timeline.ranks = world_.size();
    }

    WorkerState state() {
        WorkerState state{{}, average_, last_};
        for (WorkerThreads::Learner& learner : threads_.learners()) {
            std::vector<float>& numbers = state.learners.emplace_back();
            learner.program->visit_own_state(
                [&](std::span<float> own) { numbers.insert(numbers.end(), own.begin(), own.end()); });
        }
        return state;
    }
    /// Goes on at a sample of the training. Learners that were there are as they were; those that come begin with the
    /// average model, and without momentum.
    void go_on(const WorkerState& state, int step, std::int64_t sample) {
        feed_.start_at(step, sample);
        if (state.average.empty()) return;
        average_ = state.average;
        last_ = state.last;
        for (std::size_t i = 0; i < threads_.learners().size(); ++i) {
            Program& program = *threads_.learners()[i].program;
            if (i >= state.learners.size()) {
                assign(program.tensors().weights(), average_);
                continue;
            }
            auto next = state.learners[i].begin();
            program.visit_own_state([&](std::span<float> own) {
                std::copy_n(next, own.size(), own.begin());
                next += static_cast<std::ptrdiff_t>(own.size());
            });
        }
    }

    StepReport train_step(int step) {
        load(step);
        world_.barrier(kernels::attentive());
        const double begin = now();
        const std::vector<float> before{threads_.model().begin(), threads_.model().end()};
        if (elastic()) measure_differences();
        threads_.begin(dropout_seed(step), first_sample_);
        if (elastic()) sum_up(sum_);
        const double summed = now();
        threads_.end();
        double computed = 0, loss = 0;
        for (const WorkerThreads::Learner& learner : threads_.learners()) {
            computed = std::max(computed, learner.end);
            loss += learner.loss;
        }
        if (!before.empty()) count_lost(before);
        taken_.emplace_back(threads_.taken().begin(), threads_.taken().end());
        bring_together();
        const double end = now();
        const double exposed = std::max(0.0, summed - computed) + (elastic() ? 0 : end - computed);
        return reported({loss, end - begin, exposed});
    }

private:
    /// One model is its own average: pulled to where it was before, it would learn in two halves.
    bool is_alone() const { return schedule_.methods.get<Averaging>().learners == 1 && world_.size() == 1; }
    bool elastic() const { return schedule_.methods.get<Averaging>().elastic > 0 && !is_alone(); }
    Program& first_program() { return *threads_.learners().front().program; }

    void visit_state(const UseNumbers& use) {
        for (WorkerThreads::Learner& learner : threads_.learners()) learner.program->visit_own_state(use);
        use(threads_.model());
        use(average_);
        use(last_);
    }

    /// What ranks tell each other of each bucket, as the schedule says; and where the bucket lies in all weights.
    struct Sum {
        kernels::RankProgram rounds;
        std::size_t from = 0, count = 0;
    };
    void find_sums() {
        const Placement placement{world_};
        const Tensors& tensors = first_program().tensors();
        for (const Step& step : schedule_.classes.front().steps) {
            const auto* action = std::get_if<Communicate>(&step.action);
            if (action == nullptr) continue;
            require(action->content == Content::differences || action->content == Content::weights,
                    "models are brought together");
            const Group group =
                placement.group(group_of(schedule_.mesh, action->axis, RankIndex{world_.rank()}), action->algorithm);
            const Collective collective{action->kind, action->algorithm, group, action->elements, action->root};
            const kernels::View weights = tensors.bucket(action->bucket()).weights;
            sums_.push_back({{collective, ring_.rank()},
                             static_cast<std::size_t>(weights.data() - tensors.weights().data()),
                             weights.size()});
            require(sums_.back().rounds.slots == 0, "an all-reduce without room of its own");
        }
    }
    void sum_up(std::span<float> values) {
        for (const Sum& sum : sums_)
            ring_.all_reduce(sum.rounds, values.subspan(sum.from, sum.count), kernels::considerate());
    }

    // Made up or read before the clock starts, as a task scheduler finds them in its input buffers.
    void load(int step) {
        Program& by = first_program();
        const std::int64_t each = by.samples();
        for (std::size_t part = 0; part < threads_.parts().size(); ++part) {
            feed_.load(step, first_sample_ + static_cast<std::int64_t>(part) * each, by);
            Batch& batch = threads_.parts()[part];
            std::ranges::copy(by.tensors().input(), batch.input.begin());
            std::ranges::copy(by.tensors().indices(), batch.ids.begin());
            std::ranges::copy(by.tensors().labels(), batch.labels.begin());
        }
    }

    std::uint64_t dropout_seed(int step) const {
        return key(key(options_.seed, dropout_of), static_cast<std::uint64_t>(step));
    }

    // x - z of all learners as the step begins, and the sum of this rank's.
    void measure_differences() {
        std::ranges::fill(sum_, 0.0F);
        for (WorkerThreads::Learner& learner : threads_.learners()) {
            const std::span<const float> weights = learner.program->tensors().weights();
            learner.apart.resize(weights.size());
            for (std::size_t i = 0; i < weights.size(); ++i) {
                learner.apart[i] = weights[i] - average_[i];
                sum_[i] += learner.apart[i];
            }
        }
    }

    // Who has taken no part of this step gives up its share now.
    void bring_together() {
        if (is_alone() && threads_.model().empty()) {
            last_ = average_;
            average_ = floats_of(first_program().tensors().weights());
            return;
        }
        if (!elastic()) return replace();
        const auto share = static_cast<float>(schedule_.methods.get<Averaging>().elastic);
        for (WorkerThreads::Learner& learner : threads_.learners()) {
            if (learner.pulled) continue;
            const std::span<float> weights = learner.program->tensors().weights();
            for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= share * learner.apart[i];
        }
        move_average(schedule_.methods.get<Averaging>(), sum_, average_, last_);
    }
    void replace() {
        sum_up(threads_.model());
        if (sums_.empty()) return;
        for (float& weight : threads_.model()) weight /= static_cast<float>(world_.size());
    }

    // What the model has moved less than its updates' sum, as a share of that. Each addition to a weight rounds it by
    // 2^-24 of itself.
    void count_lost(const std::vector<float>& before) {
        double missing = 0, all = 0, weights = 0;
        for (std::size_t i = 0; i < before.size(); ++i) {
            double added = 0;
            for (const WorkerThreads::Learner& learner : threads_.learners()) added += learner.added[i];
            missing += std::pow(threads_.model()[i] - before[i] - added, 2);
            all += added * added;
            weights += double{before[i]} * before[i];
        }
        if (all == 0) return;
        const auto additions = static_cast<double>(schedule_.micro_batches), others = options_.unlocked - 1.0;
        const double tolerance = 0x1p-18 + additions * 0x1p-24 * std::sqrt(weights / all) + others / (others + 1);
        const double lost = std::sqrt(missing / all);
        if (lost / tolerance > lost_.error / lost_.tolerance) lost_ = {lost, tolerance};
    }

    StepReport reported(const std::vector<double>& own) const {
        const std::vector<double> all = world_.all_gather(own);
        StepReport report;
        for (std::size_t i = 0; i < all.size(); i += own.size()) {
            report.loss += all[i] / static_cast<double>(global_batch(schedule_));
            if (all[i + 1] < report.seconds.value) continue;
            report.seconds = Seconds{all[i + 1]};
            report.exposed_comm = Seconds{all[i + 2]};
        }
        report.samples_per_s = static_cast<double>(global_batch(schedule_)) / report.seconds.value;
        return report;
    }

    using NobodysChoice = std::vector<std::vector<std::vector<int>>>;  // each learner takes as many parts
    std::vector<std::vector<std::vector<int>>> taken_by_all() const {
        std::vector<double> own;
        for (const std::vector<int>& step : taken_) own.insert(own.end(), step.begin(), step.end());
        const std::vector<double> all = world_.all_gather(own);
        std::vector<std::vector<std::vector<int>>> by_shard;
        auto next = all.begin();
        for (std::int64_t shard = 0; shard < world_.size(); ++shard) {
            auto& of = by_shard.emplace_back();
            for (std::size_t step = 0; step < taken_.size(); ++step) {
                auto& parts = of.emplace_back();
                for (std::size_t part = 0; part < taken_[step].size(); ++part)
                    parts.push_back(static_cast<int>(*next++));
            }
        }
        return by_shard;
    }

    // Learners: against all models trained one after the other by who took what. Threads without locks read weights at
    // no common time; what can be said is that no more of their updates is lost than others had under way.
    void check(Result& result, Program& last) {
        GradientCheck checked = lost_;
        if (options_.unlocked == 0) {
            if (!options_.single_rank) throw InputError("learners need the whole network to compare with");
            checked =
                check_part(schedule_, RankIndex{world_.rank()}, last, *options_.single_rank,
                           {.selection = selection_of(options_, nullptr),
                            .weights_seed = key(options_.seed, weights_of),
                            .hyperparameters = hyperparameters_of(options_),
                            .steps = options_.steps,
                            .dropout_seed = [this](int step) { return dropout_seed(step); },
                            .load = [this](int step, std::int64_t first, Program& to) { feed_.load(step, first, to); },
                            .taken = options_.first_idle ? taken_by_all() : NobodysChoice{}});
        }
        const std::vector<double> all = world_.all_gather(std::vector{checked.error, checked.tolerance});
        for (std::size_t i = 0; i < all.size(); i += 2) {
            if (all[i] / all[i + 1] > checked.error / checked.tolerance) checked = {all[i], all[i + 1]};
        }
        result.gradient_error = checked.error;
        result.gradient_tolerance = checked.tolerance;
    }

    const kernels::Communicator& world_;
    kernels::Communicator ring_;
    const Schedule& schedule_;
    const Options& options_;
    WorkerThreads threads_;
    std::int64_t first_sample_;
    Feed feed_;
    std::vector<float> average_, last_, sum_;
    std::vector<Sum> sums_;
    std::vector<std::vector<int>> taken_;  // by step
    GradientCheck lost_{0, 1};             // the share of a step's updates that was lost, where it was largest
};

struct WorkerTraining::Impl {
    Impl(const kernels::Communicator& world, const Schedule& schedule, const Options& options)
        : trainer(world, schedule, options) {}
    WorkerTrainer trainer;
};

WorkerTraining::WorkerTraining(const kernels::Communicator& world, const Schedule& schedule, const Options& options)
    : impl_(std::make_unique<Impl>(world, schedule, options)) {}
WorkerTraining::~WorkerTraining() = default;

StepReport WorkerTraining::train_step(int step) { return impl_->trainer.train_step(step); }
void WorkerTraining::finish(Result& result) { impl_->trainer.finish(result); }
WorkerState WorkerTraining::state() { return impl_->trainer.state(); }
void WorkerTraining::go_on(const WorkerState& state, int step, std::int64_t sample) {
    impl_->trainer.go_on(state, step, sample);
}

Result train_with_threads(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
                          const Report& report) {
    if (!options.by_learners.empty()) return train_tuned(world, schedule, options, report);
    return WorkerTrainer{world, schedule, options}.train(report);
}

}  // namespace rehearse::run
