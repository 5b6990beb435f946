// SPDX-License-Identifier: Apache-2.0
#include "run/job_check.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/servers.hpp"
#include "run/methods/method.hpp"
#include "run/methods/server_shard.hpp"

namespace rehearse::run {

namespace {

void check_tuning(const Schedule& schedule, const Options& options) {
    if (options.target_loss < 0 || options.target_samples < 1) {
        throw InputError("--target-loss: above 0, over 1 sample or more");
    }
    if (options.target_loss > 0 && (options.check_gradients || schedule.methods.get<Servers>().count > 0)) {
        throw InputError(
            "--target-loss: not with --check-gradients, nor with servers, whose ranks have no common step");
    }
    if (options.by_learners.empty()) return;
    if (options.check_gradients || !options.checkpoint.empty() || options.unlocked > 0 ||
        !options.learner_paces.empty()) {
        throw InputError(
            "--tune-learners: not with --check-gradients, --checkpoint, --unlocked or --learner-paces, which go by a "
            "number of learners");
    }
    const auto learners = static_cast<std::size_t>(schedule.methods.get<Averaging>().learners);
    if (schedule.methods.get<Averaging>().elastic <= 0 || learners > options.by_learners.size()) {
        throw InputError(fmt::format("--tune-learners {}: with a plan of data:learners=N, N being no more than that",
                                     options.by_learners.size()));
    }
    if (options.tuning_steps < 1 || options.learner_gain <= -1) {
        throw InputError("--tune-learners: --tuning-steps from 1, --gain from 0");
    }
}

void check_patience(const Schedule& schedule, const Options& options) {
    if (options.patience.value == 0) return;
    if (options.patience.value < 0) throw InputError("--patience: above 0 s");
    if (schedule.methods.get<Servers>().count == 0) {
        throw InputError("--patience: with servers, whose workers do not wait for each other: --plan server=1,data");
    }
    if (pushing_ranks(schedule).size() != static_cast<std::size_t>(ranks(schedule.mesh))) {
        throw InputError("--patience: of workers by themselves, not of groups");
    }
    const bool gathers = !options.checkpoint.empty() || !options.save.empty() || !options.save_gradients.empty();
    if (gathers || options.check_gradients) {
        throw InputError(
            "--patience: not with --checkpoint, --save or --check-gradients, for which all ranks have to live");
    }
}

void check_options(std::int64_t ranks, const Schedule& schedule, const Options& options) {
    const std::int64_t needed = all_ranks(schedule);
    if (needed != ranks) {
        throw InputError(fmt::format("the plan '{}' is for {} ranks, but this job has {}: start it with mpirun -n {}",
                                     schedule.plan, needed, ranks, needed));
    }
    if (options.checkpoint_every < 1) {
        throw InputError(fmt::format("--checkpoint-every {}: at least 1 step", options.checkpoint_every));
    }
    if (options.resume && options.checkpoint.empty()) {
        throw InputError("--resume: say where from with --checkpoint DIR");
    }
    if (options.rebatch && !options.resume) throw InputError("--rebatch: of a training that goes on, with --resume");
    if (!options.stop_file.empty() && options.check_gradients) {
        throw InputError("--stop-file: not with --check-gradients, which looks at the last of --steps");
    }
    const bool own_states = keeps_own_states(schedule);
    if (own_states && (options.rebatch || !options.stop_file.empty())) {
        throw InputError(fmt::format("{}: not of the plan '{}', whose ranks have states of their own",
                                     options.rebatch ? "--rebatch" : "--stop-file", schedule.plan));
    }
    check_tuning(schedule, options);
    check_patience(schedule, options);
    if (options.steps < 1) throw InputError(fmt::format("--steps {}: at least 1 is needed", options.steps));
    if (options.unlocked < 0) {
        throw InputError(fmt::format("--unlocked {}: at least 1 thread, or 0 for none", options.unlocked));
    }
}

void refuse(const Asked& asked, const Limit& limit) {
    throw InputError(fmt::format("run: plan '{}': {}: {}", asked.schedule.plan, limit.found(asked), limit.why));
}

}  // namespace

void check_program(const Schedule& schedule) {
    const Options none;
    const Asked asked{schedule, none, "cpu"};
    if (const Limit* limit = first_limit(asked, true)) refuse(asked, *limit);
}

void check_limits(const Asked& asked) {
    if (const Limit* limit = first_limit(asked)) refuse(asked, *limit);
}

void check_job(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
               std::string_view device) {
    check_limits({schedule, options, device});  // whatever the number of ranks is
    check_options(world.size(), schedule, options);
}

}  // namespace rehearse::run
