// SPDX-License-Identifier: Apache-2.0
#include "run/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "core/error.hpp"
#include "kernels/comm/idle.hpp"
#include "run/clock.hpp"
#include "run/data.hpp"
#include "run/gradient_check.hpp"
#include "run/random.hpp"
#include "run/record.hpp"

namespace rehearse::run {

namespace {

enum Purpose : std::uint64_t { weights_of, data_of, dropout_of };

std::int64_t classes_of(const Network& network) {
    for (const Layer& layer : network.layers) {
        if (const auto* loss = std::get_if<SoftmaxLoss>(&layer.op)) return loss->classes;
    }
    throw InputError(fmt::format("network '{}' does not end in a loss: there is nothing to train for", network.name));
}

const RankClass& own_class(const kernels::Communicator& world, const Schedule& schedule, const Options& options) {
    const std::int64_t needed = ranks(schedule.mesh);
    if (needed != world.size()) {
        throw InputError(fmt::format("the plan '{}' is for {} ranks, but this job has {}: start it with mpirun -n {}",
                                     schedule.plan, needed, world.size(), needed));
    }
    if (options.steps < 1) throw InputError(fmt::format("--steps {}: at least 1 is needed", options.steps));
    return schedule.classes.at(static_cast<std::size_t>(class_of(schedule, world.rank())));
}

std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

class Trainer {
public:
    Trainer(const kernels::Communicator& world, const Schedule& schedule, const Options& options, const Probe& probe)
        : world_(world),
          schedule_(schedule),
          options_(options),
          task_(schedule.network.layers.front().output, classes_of(schedule.network), key(options.seed, data_of)),
          program_(schedule, own_class(world, schedule, options),
                   {options.backend, options.algorithm, options.scratch_limit, options.tuned},
                   key(options.seed, weights_of), {options.learning_rate, options.momentum, options.weight_decay}),
          executor_(schedule, program_, world, probe),
          recording_(executor_.bytes_sent(), options.record ? options.steps : 0) {
        const int axis = axis_index(schedule.mesh, "data");
        if (axis < 0) return;
        shards_ = schedule.mesh.axes[static_cast<std::size_t>(axis)].size;
        shard_ = coordinates(schedule.mesh, world.rank())[static_cast<std::size_t>(axis)];
    }

    Result train(const Report& report) {
        Result result;
        const double first_time = now();
        const double first_ahead = measure_ahead(world_);
        for (int step = 0; step < options_.steps; ++step) {
            if (step + 1 == options_.steps) weights_before_ = copy_of(program_.tensors().weights());
            result.steps.push_back(train_step(step));
            if (report && world_.rank() == 0) report(step, result.steps.back());
        }
        const double last_ahead = measure_ahead(world_);
        recording_.align({first_time, first_ahead, now(), last_ahead});
        result.timeline = make_timeline(schedule_, world_, recording_);
        result.timeline.title = title();
        result.weights = copy_of(program_.tensors().weights());
        result.gradients = copy_of(program_.tensors().gradients());
        if (options_.check_gradients) check(result);
        return result;
    }

private:
    StepReport train_step(int step) {
        load(step, shard_);
        world_.barrier(kernels::attentive());
        executor_.run(step, key(key(options_.seed, dropout_of), static_cast<std::uint64_t>(step)),
                      shard_ * schedule_.batch_per_rank);
        if (options_.record) recording_.add(executor_.times());
        return reported();
    }

    // The batch of a step is made before its clock starts: nobody reads it from anywhere.
    void load(int step, std::int64_t shard) {
        const std::int64_t batch = schedule_.batch_per_rank;
        const std::int64_t first = step * global_batch(schedule_) + shard * batch;
        const std::span<float> input = program_.input();
        const std::size_t size = input.size() / static_cast<std::size_t>(batch);
        for (std::int64_t i = 0; i < batch; ++i) {
            const auto place = static_cast<std::size_t>(i);
            task_.fill(first + i, input.subspan(place * size, size));
            program_.tensors().labels()[place] = task_.label(first + i);
        }
    }

    StepReport reported() {
        Recording last{executor_.bytes_sent(), 1};
        last.add(executor_.times());
        Timeline timeline;
        timeline.events = events_of(schedule_, world_.rank(), last.bytes_sent(), last.times(), last.times().front());
        const Summary summary = summarize(timeline);
        const std::vector<double> own{program_.loss(), summary.step.value, summary.exposed_comm.value};
        const std::vector<double> all = world_.all_gather(own);
        StepReport report;
        for (std::size_t i = 0; i < all.size(); i += own.size()) {
            report.loss += all[i] / static_cast<double>(schedule_.batch_per_rank * world_.size());
            if (all[i + 1] < report.seconds.value) continue;
            report.seconds = Seconds{all[i + 1]};
            report.exposed_comm = Seconds{all[i + 2]};
        }
        report.samples_per_s = static_cast<double>(global_batch(schedule_)) / report.seconds.value;
        return report;
    }

    std::string title() const {
        return fmt::format("{}, {}, batch {} a rank, measured", schedule_.network.name, schedule_.plan,
                           schedule_.batch_per_rank);
    }

    // Rank 0 computes the last step again, alone. Leaves the running statistics of batch normalization moved on, which
    // nobody reads after this.
    void check(Result& result) {
        GradientCheck checked;
        if (world_.rank() == 0) {
            const int step = options_.steps - 1;
            std::ranges::copy(weights_before_, program_.tensors().weights().begin());
            checked = check_gradients(
                program_, shards_, schedule_.batch_per_rank,
                key(key(options_.seed, dropout_of), static_cast<std::uint64_t>(step)),
                [&](std::int64_t shard) { load(step, shard); }, result.gradients);
        }
        world_.broadcast(std::as_writable_bytes(std::span{&checked, 1}), 0, kernels::considerate());
        result.gradient_error = checked.error;
        result.gradient_tolerance = checked.tolerance;
    }

    const kernels::Communicator& world_;
    const Schedule& schedule_;
    const Options& options_;
    SyntheticTask task_;
    Program program_;
    Executor executor_;
    Recording recording_;
    std::int64_t shards_ = 1, shard_ = 0;
    std::vector<float> weights_before_;  // the last step's update
};

}  // namespace

Result train_on(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
                const Report& report, const Probe& probe) {
    rehearse::check(schedule);
    return Trainer{world, schedule, options, probe}.train(report);
}

Result train(const Session& session, const Schedule& schedule, const Options& options,
             const std::function<void(int step, const StepReport&)>& report) {
    const kernels::Communicator world = kernels::Communicator::world();
    require(world.size() == session.size(), "a session is the whole job");
    Result result = train_on(world, schedule, options, report, {});
    result.timeline.title +=
        fmt::format(" on {} rank{} with {} thread{} each", session.size(), session.size() == 1 ? "" : "s",
                    session.threads(), session.threads() == 1 ? "" : "s");
    return result;
}

}  // namespace rehearse::run
