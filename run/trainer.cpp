// SPDX-License-Identifier: Apache-2.0
#include "run/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "kernels/comm/idle.hpp"
#include "run/clock.hpp"
#include "run/data.hpp"
#include "run/gradient_check.hpp"
#include "run/part_check.hpp"
#include "run/random.hpp"
#include "run/record.hpp"

namespace rehearse::run {

namespace {

enum Purpose : std::uint64_t { weights_of, data_of, dropout_of };

// What the synthetic data are for.
class Samples {
public:
    Samples(const Network& network, std::uint64_t seed) : loss_(loss_of(network)), seed_(seed) {
        for (const Layer& layer : network.layers) {
            const auto* input = std::get_if<Input>(&layer.op);
            if (input == nullptr) continue;
            if (input->vocabulary == 0) {
                pictures_.emplace(input->shape, loss_.classes, seed, loss_.image);
                continue;
            }
            const bool next_is_label = loss_.rows > 1;
            tokens_.emplace(next_is_label ? std::min(input->vocabulary, loss_.classes) : input->vocabulary, seed);
            ids_.resize(static_cast<std::size_t>(elements(input->shape)));
        }
        if (loss_.rows == 1 || loss_.rows == static_cast<std::int64_t>(ids_.size())) return;
        throw InputError(
            fmt::format("network '{}' has a loss of {} rows a sample: the synthetic data have one label a "
                        "sample, a pixel or a token",
                        network.name, loss_.rows));
    }

    // `input` and `ids` are empty where nobody reads them.
    void fill(std::int64_t sample, std::span<float> input, std::span<std::int32_t> ids,
              std::span<std::int32_t> labels) {
        if (pictures_ && !input.empty()) pictures_->fill(sample, input);
        if (loss_.rows > 1) return tokens_->fill(sample, ids.empty() ? std::span{ids_} : ids, labels);
        if (pictures_) pictures_->fill_labels(sample, labels);
        if (!pictures_) labels.front() = synthetic_label(sample, loss_.classes, seed_);
        if (tokens_ && !ids.empty()) tokens_->fill_class(sample, labels.front(), ids);
    }

private:
    SoftmaxLoss loss_;
    std::uint64_t seed_;
    std::optional<SyntheticTask> pictures_;
    std::optional<SyntheticTokens> tokens_;
    std::vector<std::int32_t> ids_;  // of one sample, where only the labels are of use
};

void check_job(const kernels::Communicator& world, const Schedule& schedule, const Options& options) {
    const std::int64_t needed = ranks(schedule.mesh);
    if (needed != world.size()) {
        throw InputError(fmt::format("the plan '{}' is for {} ranks, but this job has {}: start it with mpirun -n {}",
                                     schedule.plan, needed, world.size(), needed));
    }
    if (options.steps < 1) throw InputError(fmt::format("--steps {}: at least 1 is needed", options.steps));
}

std::vector<float> copy_of(std::span<const float> values) { return {values.begin(), values.end()}; }

class Trainer {
public:
    Trainer(const kernels::Communicator& world, const Schedule& schedule, const Options& options, const Probe& probe)
        : world_(world),
          schedule_(schedule),
          options_(options),
          samples_(schedule.network, key(options.seed, data_of)),
          wish_{options.backend, options.algorithm, options.scratch_limit, options.tuned},
          hyperparameters_{options.learning_rate, options.momentum, options.weight_decay},
          program_(schedule, world.rank(), wish_, key(options.seed, weights_of), hyperparameters_),
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
        gather_pieces();
        result.weights = copy_of(program_.tensors().weights());
        result.gradients = copy_of(program_.tensors().gradients());
        if (options_.check_gradients) check(result);
        return result;
    }

private:
    StepReport train_step(int step) {
        load(step, shard_ * schedule_.batch_per_rank, program_);
        world_.barrier(kernels::attentive());
        executor_.run(step, dropout_seed(step), shard_ * schedule_.batch_per_rank);
        if (options_.record) recording_.add(executor_.times());
        return reported();
    }

    std::uint64_t dropout_seed(int step) const {
        return key(key(options_.seed, dropout_of), static_cast<std::uint64_t>(step));
    }

    // The samples of a program, from `first` of the global batch on, are made before the step's clock starts: nobody
    // reads them from anywhere.
    void load(int step, std::int64_t first, Program& program) {
        const std::span<std::int32_t> labels = program.tensors().labels();
        const std::span<std::int32_t> ids = program.tensors().indices();
        const std::span<float> input = program.tensors().input();
        const auto samples = static_cast<std::size_t>(program.samples());
        const std::size_t size = input.size() / samples, rows = labels.size() / samples;
        const std::size_t words = ids.size() / samples;
        for (std::size_t i = 0; i < samples; ++i) {
            const std::int64_t sample = step * global_batch(schedule_) + first + static_cast<std::int64_t>(i);
            samples_.fill(sample, input.subspan(i * size, size), ids.subspan(i * words, words),
                          labels.subspan(i * rows, rows));
        }
    }

    StepReport reported() {
        Recording last{executor_.bytes_sent(), 1};
        last.add(executor_.times());
        Timeline timeline;
        timeline.events = events_of(schedule_, world_.rank(), last.bytes_sent(), last.times(), last.times().front());
        const Summary summary = summarize(timeline);
        const double samples = program_.has_loss() ? static_cast<double>(schedule_.batch_per_rank) : 0;
        const std::vector<double> own{program_.loss(), summary.step.value, summary.exposed_comm.value, samples};
        const std::vector<double> all = world_.all_gather(own);
        StepReport report;
        double counted = 0;  // the ranks along the tensor axis have the same samples
        for (std::size_t i = 0; i < all.size(); i += own.size()) counted += all[i + 3];
        for (std::size_t i = 0; i < all.size(); i += own.size()) {
            report.loss += all[i] / counted;
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

    const RankClass& rank_class() const {
        return schedule_.classes[static_cast<std::size_t>(class_of(schedule_, world_.rank()))];
    }

    // Communicators are made by all ranks together, whichever buckets each of them has.
    std::map<int, kernels::Communicator> groups_of_buckets() const {
        std::set<int> axes;
        for (const RankClass& rank_class : schedule_.classes) {
            for (const Bucket& bucket : rank_class.part.buckets) axes.insert(bucket.axis);
        }
        std::map<int, kernels::Communicator> groups;
        for (const int axis : axes) {
            if (axis < 0) continue;
            groups.emplace(axis, world_.split(group_of(schedule_.mesh, axis, world_.rank()).front(), world_.rank()));
        }
        return groups;
    }

    // Where each rank has the sums of its piece, or keeps its piece of the weights only.
    void gather_pieces() {
        std::map<int, kernels::Communicator> groups = groups_of_buckets();
        std::set<int> scattered;
        for (const Step& step : rank_class().steps) {
            const auto* action = std::get_if<Communicate>(&step.action);
            if (action == nullptr || action->bucket < 0 || action->kind != CollectiveKind::reduce_scatter) continue;
            scattered.insert(action->bucket);
        }
        const auto gather = [&](int bucket, std::span<float> pieces) {
            kernels::Communicator& group = groups.at(rank_class().part.buckets[static_cast<std::size_t>(bucket)].axis);
            const auto elements = static_cast<std::int64_t>(pieces.size());
            const Collective whole{CollectiveKind::all_gather, {}, {group.size(), group.size()}, elements};
            group.run({whole, group.rank()}, kernels::floats(pieces));
        };
        for (const int bucket : scattered) {
            const BucketTensors& tensors = program_.tensors().bucket(bucket);
            gather(bucket, tensors.gradients);
            if (gathers_weights(rank_class())) gather(bucket, tensors.weights);
        }
    }

    void check(Result& result) {
        GradientCheck checked = is_whole(schedule_) ? check_shards(result) : check_own_part();
        if (!is_whole(schedule_)) {
            const std::vector<double> all = world_.all_gather(std::vector{checked.error, checked.tolerance});
            for (std::size_t i = 0; i < all.size(); i += 2) {
                if (all[i] / all[i + 1] > checked.error / checked.tolerance) checked = {all[i], all[i + 1]};
            }
        }
        world_.broadcast(std::as_writable_bytes(std::span{&checked, 1}), 0, kernels::considerate());
        result.gradient_error = checked.error;
        result.gradient_tolerance = checked.tolerance;
    }

    // Rank 0 computes the last step again, alone. Leaves the running statistics of batch normalization moved on, which
    // nobody reads after this.
    GradientCheck check_shards(const Result& result) {
        if (world_.rank() != 0) return {};
        const int step = options_.steps - 1;
        std::ranges::copy(weights_before_, program_.tensors().weights().begin());
        const GradientCheck checked = check_gradients(
            program_, shards_, schedule_.batch_per_rank, dropout_seed(step),
            [&](std::int64_t shard) { load(step, shard * schedule_.batch_per_rank, program_); }, result.gradients);
        std::ranges::copy(result.weights, program_.tensors().weights().begin());
        return checked;
    }

    GradientCheck check_own_part() {
        if (!options_.alone)
            throw InputError("gradients of a plan that cuts the network need the whole to compare with");
        return check_part(schedule_, world_.rank(), program_, *options_.alone,
                          {.wish = wish_,
                           .weights_seed = key(options_.seed, weights_of),
                           .hyperparameters = hyperparameters_,
                           .steps = options_.steps,
                           .dropout_seed = [this](int step) { return dropout_seed(step); },
                           .load = [this](int step, std::int64_t first, Program& to) { load(step, first, to); }});
    }

    const kernels::Communicator& world_;
    const Schedule& schedule_;
    const Options& options_;
    Samples samples_;
    Wish wish_;
    Hyperparameters hyperparameters_;
    Program program_;
    Executor executor_;
    Recording recording_;
    std::int64_t shards_ = 1, shard_ = 0;
    std::vector<float> weights_before_;  // the last step's update
};

}  // namespace

float default_learning_rate(Optimizer optimizer) {
    if (optimizer == Optimizer::adam) return 1e-3F;
    if (optimizer == Optimizer::lamb) return 1e-2F;
    return 0.05F;
}

Result train_on(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
                const Report& report, const Probe& probe) {
    rehearse::check(schedule);
    check_job(world, schedule, options);
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
