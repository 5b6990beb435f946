// SPDX-License-Identifier: Apache-2.0
#include "run/methods/tuned_trainer.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "run/loss_target.hpp"
#include "run/methods/learner_tuner.hpp"
#include "run/methods/worker_trainer.hpp"
#include "run/step_report.hpp"

namespace rehearse::run {

namespace {

/// Trains in phases of some steps, between which learners are added and removed.
class TunedTrainer {
public:
    TunedTrainer(const kernels::Communicator& world, const Schedule& schedule, const Options& options)
        : world_(world),
          options_(options),
          tuner_(schedule.methods.get<Averaging>().learners, static_cast<int>(options.by_learners.size()),
                 options.learner_gain),
          target_(options) {}

    Result train(const Report& report) {
        while (!ended_) {
            const int learners = tuner_.learners();
            const Schedule& schedule = *options_.by_learners[at(learners - 1)];
            WorkerTraining trainer{world_, schedule, options_};
            trainer.go_on(state_, step_, result_.samples);
            while (!ended_ && tuner_.learners() == learners) train_phase(trainer, schedule, report);
            if (ended_) trainer.finish(result_);
            state_ = trainer.state();
        }
        return std::move(result_);
    }

private:
    void train_phase(WorkerTraining& trainer, const Schedule& schedule, const Report& report) {
        std::vector<double> seconds;
        for (int i = 0; i <= options_.tuning_steps && !ended_; ++i) {
            add_step(result_, options_, trainer.train_step(step_));
            const StepReport& step = result_.steps.back();
            seconds.push_back(step.seconds.value);
            if (report && world_.rank() == 0) report(step_, step);
            result_.samples += global_batch(schedule);
            result_.target = target_.after(step.loss, global_batch(schedule));
            ended_ = ++step_ == options_.steps || result_.target.reached;
        }
        TuningPhase phase{tuner_.learners(), static_cast<int>(seconds.size())};
        if (seconds.size() > 1) {
            const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>((seconds.size() + 1) / 2);
            std::nth_element(seconds.begin() + 1, middle, seconds.end());
            phase.samples_per_s = static_cast<double>(global_batch(schedule)) / *middle;
        }
        if (!ended_) phase.then = to_string(tuner_.measured(phase.samples_per_s));
        result_.phases.push_back(phase);
    }

    const kernels::Communicator& world_;
    const Options& options_;
    LearnerTuner tuner_;
    LossTarget target_;
    Result result_;
    WorkerState state_;
    int step_ = 0;
    bool ended_ = false;
};

}  // namespace

Result train_tuned(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
                   const Report& report) {
    return TunedTrainer{world, schedule, options}.train(report);
}

}  // namespace rehearse::run
