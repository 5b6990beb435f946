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
#include "core/text.hpp"
#include "kernels/comm/idle.hpp"
#include "run/checkpoint.hpp"
#include "run/clock.hpp"
#include "run/gradient_check.hpp"
#include "run/learners.hpp"
#include "run/part_check.hpp"
#include "run/prefetch.hpp"
#include "run/random.hpp"
#include "run/record.hpp"
#include "run/samples.hpp"
#include "run/saver.hpp"

namespace rehearse::run {

namespace {

void check_job(const kernels::Communicator& world, const Schedule& schedule, const Options& options) {
    const std::int64_t needed = ranks(schedule.mesh);
    if (needed != world.size()) {
        throw InputError(fmt::format("the plan '{}' is for {} ranks, but this job has {}: start it with mpirun -n {}",
                                     schedule.plan, needed, world.size(), needed));
    }
    if (options.checkpoint_every < 1) {
        throw InputError(fmt::format("--checkpoint-every {}: at least 1 step", options.checkpoint_every));
    }
    if (options.resume && options.checkpoint.empty()) {
        throw InputError("--resume: say where from with --checkpoint DIR");
    }
    if (options.steps < 1) throw InputError(fmt::format("--steps {}: at least 1 is needed", options.steps));
}

/// The type that sums of gradients are sent in.
DataType wire_of(const Schedule& schedule) {
    for (const Step& step : schedule.classes.front().steps) {
        const auto* sum = std::get_if<Communicate>(&step.action);
        if (sum != nullptr && sum->bucket >= 0 && sum->kind != CollectiveKind::all_gather) return sum->type;
    }
    return DataType::f32;
}

class Trainer {
public:
    Trainer(const kernels::Communicator& world, const Schedule& schedule, const Options& options, const Probe& probe,
            kernels::Device* device)
        : world_(world),
          schedule_(schedule),
          options_(options),
          samples_(schedule.network, key(options.seed, data_of), options.data),
          wish_{options.backend, options.algorithm, options.scratch_limit, options.tuned, device},
          hyperparameters_{.learning_rate = options.learning_rate,
                           .momentum = options.momentum,
                           .weight_decay = options.weight_decay,
                           .loss_scale = options.loss_scale,
                           .growth_interval = options.growth_interval},
          program_(schedule, world.rank(), wish_, key(options.seed, weights_of), hyperparameters_),
          executor_(schedule, program_, world, probe),
          recording_(executor_.bytes_sent(), options.record ? options.steps : 0),
          saver_(world, schedule, options, program_, executor_) {
        const int axis = axis_index(schedule.mesh, "data");
        if (axis < 0) return;
        shards_ = schedule.mesh.axes[static_cast<std::size_t>(axis)].size;
        shard_ = coordinates(schedule.mesh, world.rank())[static_cast<std::size_t>(axis)];
    }

    Result train(const Report& report) {
        Result result;
        const int first = result.first_step = saver_.begin();
        skipped_.assign(static_cast<std::size_t>(first), false);
        if (options_.data != "synthetic") {
            prefetch_.emplace(first, options_.steps, own_batch(),
                              [this, blocks = program_.blocks()](int step, Batch& batch) {
                                  fill({step, shard_ * schedule_.batch_per_rank, program_.samples()}, blocks,
                                       batch.input, batch.ids, batch.labels);
                              });
        }
        const double first_time = now();
        const double first_ahead = measure_ahead(world_);
        for (int step = first; step < options_.steps; ++step) {
            if (step + 1 == options_.steps) weights_before_ = floats_of(program_.tensors().weights());
            result.steps.push_back(train_step(step));
            saver_.after(step);
            if (report && world_.rank() == 0) report(step, result.steps.back());
        }
        prefetch_.reset();
        const double last_ahead = measure_ahead(world_);
        recording_.align({first_time, first_ahead, now(), last_ahead});
        result.timeline = make_timeline(schedule_, world_, recording_);
        result.timeline.title = title();
        result.left_to_host = left_to_host();
        gather_pieces();
        result.weights = floats_of(program_.tensors().weights());
        result.gradients = floats_of(program_.tensors().applied());
        if (options_.check_gradients) check(result);
        return result;
    }

private:
    Batch own_batch() {
        Tensors& tensors = program_.tensors();
        return {std::vector<float>(tensors.input().size()), std::vector<std::int32_t>(tensors.indices().size()),
                std::vector<std::int32_t>(tensors.labels().size())};
    }

    StepReport train_step(int step) {
        const double asked = now();
        take_samples(step);
        const double waited = now() - asked;
        world_.barrier(kernels::attentive());
        executor_.run(step, dropout_seed(step), shard_ * schedule_.batch_per_rank);
        if (options_.record) recording_.add(executor_.times());
        StepReport report = reported();
        report.input_wait = Seconds{waited};
        report.loss_scale = program_.loss_scale();
        last_scale_ = program_.applied_scale();
        report.skipped = program_.skips();
        skipped_.push_back(report.skipped);
        if (program_.scales()) program_.adapt_scale();
        return report;
    }

    // What is made up is made before the step's clock starts, so that a step is measured as it is predicted; what is
    // read, or takes long to make, comes from a thread of its own.
    void take_samples(int step) {
        if (!prefetch_) return load(step, shard_ * schedule_.batch_per_rank, program_);
        const Batch& batch = prefetch_->next();
        std::ranges::copy(batch.input, program_.tensors().input().begin());
        std::ranges::copy(batch.ids, program_.tensors().indices().begin());
        std::ranges::copy(batch.labels, program_.tensors().labels().begin());
    }

    std::uint64_t dropout_seed(int step) const {
        return key(key(options_.seed, dropout_of), static_cast<std::uint64_t>(step));
    }

    // The samples of a program, from `first` of the global batch on.
    void load(int step, std::int64_t first, Program& program) {
        Tensors& tensors = program.tensors();
        fill({step, first, program.samples()}, program.blocks(), tensors.input(), tensors.indices(), tensors.labels());
    }

    struct Wanted {
        int step = 0;
        std::int64_t first = 0, count = 0;  // samples of the global batch
    };
    void fill(const Wanted& wanted, const Blocks& blocks, std::span<float> input, std::span<std::int32_t> ids,
              std::span<std::int32_t> labels) {
        const auto samples = static_cast<std::size_t>(wanted.count);
        const std::size_t size = input.size() / samples, rows = labels.size() / samples;
        const std::size_t words = ids.size() / samples;
        for (std::size_t i = 0; i < samples; ++i) {
            const std::int64_t sample =
                wanted.step * global_batch(schedule_) + wanted.first + static_cast<std::int64_t>(i);
            fill_sample(sample, blocks, input.subspan(i * size, size), ids.subspan(i * words, words),
                        labels.subspan(i * rows, rows));
        }
    }

    // A rank that works on a block of each sample makes or reads the whole and keeps its block.
    void fill_sample(std::int64_t sample, const Blocks& blocks, std::span<float> input, std::span<std::int32_t> ids,
                     std::span<std::int32_t> labels) {
        std::vector<float> whole(static_cast<std::size_t>(input.empty() ? 0 : blocks.whole_input));
        std::vector<std::int32_t> all(static_cast<std::size_t>(blocks.whole_labels));
        samples_.fill(sample, whole.empty() ? input : std::span{whole}, ids, all.empty() ? labels : std::span{all});
        for (std::size_t i = 0; i < input.size() && !whole.empty(); ++i) {
            input[i] = whole[static_cast<std::size_t>(blocks.input[i])];
        }
        for (std::size_t i = 0; i < labels.size() && !all.empty(); ++i) {
            labels[i] = all[static_cast<std::size_t>(blocks.labels[i])];
        }
    }

    StepReport reported() {
        Recording last{executor_.bytes_sent(), 1};
        last.add(executor_.times());
        Timeline timeline;
        timeline.events = events_of(schedule_, world_.rank(), last.bytes_sent(), last.times(), last.times().front());
        const Summary summary = summarize(timeline);
        const double samples = program_.has_loss() ? static_cast<double>(schedule_.batch_per_rank) : 0;
        const std::int64_t classes = program_.pixel_classes();
        std::vector<double> own{program_.loss(), summary.step.value, summary.exposed_comm.value, samples};
        own.insert(own.end(), program_.confusion().begin(), program_.confusion().end());
        const std::vector<double> all = world_.all_gather(own);
        StepReport report;
        double counted = 0;  // the ranks along the tensor axis have the same samples
        std::vector<double> confusion(program_.confusion().size());
        for (std::size_t i = 0; i < all.size(); i += own.size()) counted += all[i + 3];
        for (std::size_t i = 0; i < all.size(); i += own.size()) {
            for (std::size_t c = 0; c < confusion.size(); ++c) confusion[c] += all[i + 4 + c];
            report.loss += all[i] / counted;
            if (all[i + 1] < report.seconds.value) continue;
            report.seconds = Seconds{all[i + 1]};
            report.exposed_comm = Seconds{all[i + 2]};
        }
        if (classes > 0) report.mean_iou = mean_iou(confusion, classes);
        report.samples_per_s = static_cast<double>(global_batch(schedule_)) / report.seconds.value;
        return report;
    }

    std::string left_to_host() const {
        const Program::Placed placed = program_.placed();
        if (placed.on_host == 0) return {};
        const std::vector<std::string_view> kinds(placed.kinds.begin(), placed.kinds.end());
        return fmt::format("{} of {} layers: {}", placed.on_host, placed.layers, join(kinds));
    }

    std::string title() const {
        return fmt::format("{}, {}, batch {} a rank, measured", schedule_.network.name, schedule_.plan,
                           schedule_.batch_per_rank);
    }

    const RankClass& rank_class() const {
        return schedule_.classes[static_cast<std::size_t>(class_of(schedule_, world_.rank()))];
    }

    // Where each rank has the sums of its piece, or keeps its piece of the weights only.
    void gather_pieces() {
        std::map<int, kernels::Communicator> groups = groups_of_buckets(world_, schedule_);
        std::set<int> scattered;
        for (const Step& step : rank_class().steps) {
            const auto* action = std::get_if<Communicate>(&step.action);
            if (action == nullptr || action->bucket < 0 || action->kind != CollectiveKind::reduce_scatter) continue;
            scattered.insert(action->bucket);
        }
        for (const int bucket : scattered) {
            const BucketTensors& tensors = program_.tensors().bucket(bucket);
            kernels::Communicator& group = groups.at(rank_class().part.buckets[static_cast<std::size_t>(bucket)].axis);
            join_pieces(group, tensors.applied);
            if (!gathers_weights(rank_class())) continue;
            join_pieces(group, tensors.weights);
            if (!tensors.copy.empty()) join_pieces(group, tensors.copy);
        }
    }

    void check(Result& result) {
        const bool equal_bits = is_whole(schedule_) && schedule_.precision == Precision::fp32 && schedule_.lag == 0;
        GradientCheck checked = equal_bits ? check_shards(result) : check_own_part();
        if (!equal_bits) {
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
        const auto load_shard = [&](std::int64_t shard) { load(step, shard * schedule_.batch_per_rank, program_); };
        const GradientCheck checked =
            combines_gradients(rank_class())
                ? check_combined(program_, shards_, schedule_.batch_per_rank, dropout_seed(step), load_shard,
                                 result.gradients)
                : check_gradients(program_, shards_, schedule_.batch_per_rank, dropout_seed(step), load_shard,
                                  result.gradients, wire_of(schedule_));
        std::ranges::copy(result.weights, program_.tensors().weights().begin());
        return checked;
    }

    GradientCheck check_own_part() {
        if (!options_.alone)
            throw InputError(
                "gradients of a plan that cuts the network, or in 16 bits, need the whole to compare with");
        return check_part(schedule_, world_.rank(), program_, *options_.alone,
                          {.wish = wish_,
                           .weights_seed = key(options_.seed, weights_of),
                           .hyperparameters = hyperparameters_,
                           .steps = options_.steps,
                           .skipped = skipped_,
                           .scale = last_scale_,
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
    Saver saver_;
    std::int64_t shards_ = 1, shard_ = 0;
    std::optional<Prefetch> prefetch_;
    std::vector<float> weights_before_;  // the last step's update
    std::vector<bool> skipped_;          // of each step
    float last_scale_ = 1;
};

}  // namespace

float default_learning_rate(Optimizer optimizer) {
    if (optimizer == Optimizer::adam) return 1e-3F;
    if (optimizer == Optimizer::lamb) return 1e-2F;
    return 0.05F;
}

Result train_on(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
                const Report& report, const Probe& probe, kernels::Device* device) {
    rehearse::check(schedule);
    check_job(world, schedule, options);
    if (device == nullptr) device = kernels::usable_device(options.device);
    return Trainer{world, schedule, options, probe, device}.train(report);
}

Result train(const Session& session, const Schedule& schedule, const Options& options,
             const std::function<void(int step, const StepReport&)>& report) {
    const kernels::Communicator world = kernels::Communicator::world();
    require(world.size() == session.size(), "a session is the whole job");
    if (options.learners > 1) {
        if (world.size() > 1) throw InputError("--learners: of one rank; start it without mpirun");
        kernels::Device* const device = kernels::usable_device(options.device);
        if (device == nullptr) throw InputError("--learners: streams of a GPU, so with --device cuda");
        return train_learners(schedule, options, report, *device);
    }
    Result result = train_on(world, schedule, options, report, {});
    result.timeline.title +=
        fmt::format(" on {} rank{} with {} thread{} each", session.size(), session.size() == 1 ? "" : "s",
                    session.threads(), session.threads() == 1 ? "" : "s");
    return result;
}

Result train_each_alone(const Session& session, const Schedule& schedule, const Options& options) {
    const kernels::Communicator all = kernels::Communicator::world();
    require(all.size() == session.size(), "a session is the whole job");
    all.barrier(kernels::attentive());
    Result result = train_on(kernels::Communicator::self(), schedule, options, {}, {});
    all.barrier(kernels::attentive());
    return result;
}

}  // namespace rehearse::run
