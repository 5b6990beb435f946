// SPDX-License-Identifier: Apache-2.0
#include "run/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/error.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/lag.hpp"
#include "core/methods/servers.hpp"
#include "core/text.hpp"
#include "kernels/comm/idle.hpp"
#include "run/checkpoint/checkpoint.hpp"
#include "run/checkpoint/saver.hpp"
#include "run/clock.hpp"
#include "run/data/feed.hpp"
#include "run/job_check.hpp"
#include "run/loss_target.hpp"
#include "run/methods/learners.hpp"
#include "run/methods/server_shard.hpp"
#include "run/methods/worker_trainer.hpp"
#include "run/program.hpp"
#include "run/random.hpp"
#include "run/record.hpp"
#include "run/reference/followed.hpp"
#include "run/reference/gradient_check.hpp"
#include "run/reference/part_check.hpp"
#include "run/step_report.hpp"

namespace rehearse::run {

namespace {

/// The whole job where it has servers, as the workers, which are the ranks of the mesh, see it: none of them waits for
/// another one, so that their figures are shared when all steps are over.
struct ServerJob {
    const kernels::Communicator& all;
    ServerLinks links;
    std::optional<kernels::Communicator> left{}, left_workers{};  // where some may have died: after the last step
    std::vector<std::vector<double>> figures{};                   // of each step
    ServerLogs logs{};
};

/// The type that sums of gradients are sent in.
DataType wire_of(const Schedule& schedule) {
    for (const Step& step : schedule.classes.front().steps) {
        const auto* sum = std::get_if<Communicate>(&step.action);
        if (sum != nullptr && sum->of_bucket() && sum->kind != CollectiveKind::all_gather) return sum->type;
    }
    return DataType::f32;
}

class Trainer {
public:
    Trainer(const kernels::Communicator& world, const Schedule& schedule, const Options& options, const Probe& probe,
            kernels::Device* device, ServerJob* job = nullptr)
        : world_(world),
          job_(job),
          schedule_(schedule),
          options_(options),
          program_(schedule, RankIndex{world.rank()}, selection_of(options, device), key(options.seed, weights_of),
                   hyperparameters_of(options)),
          executor_(schedule, program_, world, probe, job == nullptr ? nullptr : &job->links, options.graphs),
          recording_(executor_.bytes_sent(), options.record ? options.steps : 0),
          saver_(make_saver()),
          first_sample_(first_sample(schedule, shard_of(schedule.mesh, RankIndex{world.rank()}))),
          feed_(schedule, key(options.seed, data_of), options.data, options.shuffle, options.ignored_label,
                first_sample_) {}

    Result train(const Report& report) {
        Result result;
        if (options_.begun) options_.begun();
        if (program_.device() == nullptr) program_.tensors().touch();
        const Beginning begin = saver_->begin();
        const auto first = result.first_step = static_cast<int>(begin.step);
        if (options_.check_gradients) program_.write_down(checked_.sent);
        recording_.start_at(first);
        checked_.begun = begin.checkpoint;
        feed_.start_at(begin.step, options_.first_sample + begin.samples);
        checked_.skipped.assign(static_cast<std::size_t>(first), false);
        feed_.begin(first, options_.steps, program_);
        const double first_time = now();
        const double first_ahead = measure_ahead(clocks());
        for (int step = first; step < options_.steps; ++step) {
            if (may_lose() && is_cut(job_->all, schedule_)) break;
            if (step + 1 == options_.steps && options_.check_gradients)
                checked_.weights_before = floats_of(program_.tensors().weights());
            const StepReport made = train_step(step);
            if (job_ == nullptr)
                add_step(result, options_, made);
            else
                result.steps.push_back(made);  // whose figures are shared at the end
            done_ = step + 1;
            result.target = target_.after(result.steps.back().loss, global_batch(schedule_));
            const bool last = done_ == options_.steps || result.target.reached || asked_to_stop();
            saver_->after(step, last);
            if (report && world_.rank() == 0 && job_ == nullptr) report(step, result.steps.back());
            if (last) break;
        }
        result.samples = begin.samples + (done_ - begin.step) * global_batch(schedule_);
        if (may_lose()) find_who_is_left(result);
        const double last_ahead = may_lose() ? first_ahead : measure_ahead(clocks());
        const double last_time = now();
        if (job_ != nullptr) {
            share(result);
            for (std::size_t i = 0; i < result.steps.size() && report && job_workers().rank() == 0; ++i) {
                report(first + static_cast<int>(i), result.steps[i]);
            }
        }
        feed_.end();
        if (may_lose()) {
            keep(result);
            return result;
        }
        recording_.align({first_time, first_ahead, last_time, last_ahead});
        result.timeline = make_timeline(schedule_, world_, recording_, job_ == nullptr ? ServerLogs{} : job_->logs);
        result.timeline.title = title();
        result.left_to_host = left_to_host();
        gather_pieces();
        save_named();
        keep(result);
        if (options_.check_gradients) check(result);
        return result;
    }

private:
    std::unique_ptr<Saver> make_saver() {
        if (!keeps_own_states(schedule_)) {
            return std::make_unique<NetworkSaver>(world_, schedule_, options_, program_, executor_);
        }
        return std::make_unique<RankSaver>(job_ == nullptr ? world_ : job_->all, schedule_, options_,
                                           [this](const UseNumbers& use) { program_.visit_own_state(use); });
    }

    void keep(Result& result) {
        if (!options_.results && !options_.check_gradients) return;
        result.weights = floats_of(program_.tensors().weights());
        result.gradients = floats_of(program_.tensors().applied());
    }

    /// All whose clocks are held to rank 0's.
    const kernels::Communicator& clocks() const { return job_ == nullptr ? world_ : job_->all; }
    bool may_lose() const { return job_ != nullptr && options_.patience.value > 0; }
    const kernels::Communicator& job_workers() const { return job_->left_workers ? *job_->left_workers : world_; }

    /// Ranks that are there make communicators of their own. A step that somebody did not make has no share in it.
    void find_who_is_left(Result& result) {
        const Attended attended = say_goodbye(job_->all, schedule_, done_);
        const std::int64_t workers = ranks(schedule_.mesh);
        std::vector<std::int64_t> left;
        std::ranges::copy_if(attended.left, std::back_inserter(left), [&](std::int64_t r) { return r < workers; });
        job_->left = job_->all.among(attended.left);
        job_->left_workers = job_->all.among(left);
        result.lost = attended.lost;
        result.cut = attended.cut;
        result.speaker = left.front();
        job_->figures.resize(static_cast<std::size_t>(options_.steps),
                             std::vector<double>(own_figures({}).size(), 0.0));
        result.steps.resize(job_->figures.size());
    }

    /// Rank 0 looks whether the file is there.
    bool asked_to_stop() const {
        if (options_.stop_file.empty()) return false;
        char there = world_.rank() == 0 && std::filesystem::exists(options_.stop_file) ? 1 : 0;
        world_.broadcast(std::as_writable_bytes(std::span{&there, 1}), 0, kernels::considerate());
        return there != 0;
    }

    StepReport train_step(int step) {
        const double asked = now();
        feed_.take(step, program_);
        const double waited = now() - asked;
        if (job_ == nullptr) world_.barrier(kernels::attentive());  // no worker of servers waits for another one
        executor_.run(step, dropout_seed(step), first_sample_);
        program_.take_messages();
        if (options_.record) recording_.add(executor_.times());
        const std::vector<double> own = own_figures(Seconds{waited});
        if (job_ != nullptr) job_->figures.push_back(own);
        if (job_ == nullptr) world_.barrier(kernels::attentive());  // who is through leaves shared cores to the others
        StepReport report = job_ != nullptr ? StepReport{} : reported(world_, schedule_, program_, own);
        report.loss_scale = program_.scale().now();
        last_scale_ = program_.scale().applied();
        report.skipped = program_.scale().skips();
        checked_.skipped.push_back(report.skipped);
        if (program_.scale().on()) program_.scale().adapt();
        return report;
    }

    std::vector<double> own_figures(Seconds waited) {
        return figures_of(schedule_, RankIndex{world_.rank()}, program_, executor_, waited);
    }

    std::uint64_t dropout_seed(int step) const {
        return key(key(options_.seed, dropout_of), static_cast<std::uint64_t>(step));
    }

    /// What the ranks have kept to themselves while they trained.
    void share(Result& result) {
        for (std::size_t i = 0; i < job_->figures.size(); ++i) {
            result.steps[i] = reported(job_workers(), schedule_, program_, job_->figures[i]);
        }
        job_->logs = share_logs(job_->left ? *job_->left : job_->all, schedule_, {});
        result.staleness = staleness(job_->logs);
    }

    /// By the names of the layers, for other programs.
    void save_named() {
        if (options_.save.empty() && options_.save_gradients.empty()) return;
        // Of a skipped step there are no gradients that are numbers.
        const bool gradients = !options_.save_gradients.empty() && !checked_.skipped.back();
        Checkpoint whole = gather(world_, schedule_, program_, gradients ? With::gradients : With::state, last_scale_);
        whole.steps = done_;
        if (world_.rank() != 0) return;
        if (!options_.save.empty()) save_weights(options_.save, schedule_.network, whole);
        if (gradients) save_gradients(options_.save_gradients, schedule_.network, whole);
    }

    std::string left_to_host() const {
        const PlacedLayers placed = program_.placed();
        if (placed.on_host == 0) return {};
        const std::vector<std::string_view> kinds(placed.kinds.begin(), placed.kinds.end());
        return fmt::format("{} of {} layers: {}", placed.on_host, placed.layers, rehearse::join(kinds));
    }

    std::string title() const {
        const bool uneven = !schedule_.shares.samples.empty();
        return fmt::format("{}, {}, batch {}{}, measured", schedule_.network.name, schedule_.plan,
                           uneven ? global_batch(schedule_) : schedule_.batch_per_rank,
                           uneven ? " in uneven shares" : " a rank");
    }

    const RankClass& rank_class() const {
        return schedule_.classes[static_cast<std::size_t>(class_of(schedule_, RankIndex{world_.rank()}))];
    }

    // Where each rank has the sums of its piece, or keeps its piece of the weights only.
    void gather_pieces() {
        std::map<int, kernels::Communicator> groups = groups_of_buckets(world_, schedule_);
        std::set<int> scattered, kept;  // buckets whose sums, whose weights are in pieces
        for (const Step& step : rank_class().steps) {
            const auto* update = std::get_if<Update>(&step.action);
            if (update != nullptr && update->sharded >= 0 && gathers_weights(rank_class())) kept.insert(update->bucket);
            const auto* action = std::get_if<Communicate>(&step.action);
            if (action == nullptr || !action->of_bucket() || action->kind != CollectiveKind::reduce_scatter) continue;
            scattered.insert(action->bucket());
        }
        const auto group_of = [&](int bucket) -> kernels::Communicator& {
            return groups.at(rank_class().part.buckets[static_cast<std::size_t>(bucket)].axis);
        };
        for (const int bucket : scattered) join_pieces(group_of(bucket), program_.tensors().bucket(bucket).applied);
        for (const int bucket : kept) {
            const BucketTensors& tensors = program_.tensors().bucket(bucket);
            kernels::Communicator& group = group_of(bucket);
            join_pieces(group, tensors.weights);
            if (!tensors.copy.empty()) join_pieces(group, tensors.copy);
        }
    }

    void check(Result& result) {
        const bool equal_bits =
            is_whole(schedule_) && schedule_.precision == Precision::fp32 && schedule_.methods.get<Lag>().steps == 0;
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
        std::ranges::copy(checked_.weights_before, program_.tensors().weights().begin());
        const auto load_shard = [&](std::int64_t shard) {
            feed_.load(step, shard * schedule_.batch_per_rank, program_);
        };
        const GradientCheck checked =
            combines_gradients(rank_class())
                ? check_combined(program_, shards(schedule_.mesh), schedule_.batch_per_rank, dropout_seed(step),
                                 load_shard, result.gradients)
                : check_gradients(program_, shards(schedule_.mesh), schedule_.batch_per_rank, dropout_seed(step),
                                  load_shard, result.gradients, wire_of(schedule_));
        std::ranges::copy(result.weights, program_.tensors().weights().begin());
        return checked;
    }

    GradientCheck check_own_part() {
        if (!options_.single_rank)
            throw InputError(
                "gradients of a plan that cuts the network, or in 16 bits, need the whole to compare with");
        return check_part(schedule_, RankIndex{world_.rank()}, program_, *options_.single_rank,
                          {.selection = selection_of(options_, program_.device()),
                           .weights_seed = key(options_.seed, weights_of),
                           .hyperparameters = hyperparameters_of(options_),
                           .steps = options_.steps,
                           .begun = checked_.begun,
                           .skipped = checked_.skipped,
                           .scale = last_scale_,
                           .dropout_seed = [this](int step) { return dropout_seed(step); },
                           .load = [this](int step, std::int64_t first, Program& to) { feed_.load(step, first, to); },
                           .served = job_ == nullptr ? ServerLogs{} : job_->logs,
                           .sent = job_ == nullptr ? share_sent(world_, checked_.sent) : AllSent{}});
    }

    const kernels::Communicator& world_;
    ServerJob* job_;
    const Schedule& schedule_;
    const Options& options_;
    Program program_;
    Executor executor_;
    Recording recording_;
    std::unique_ptr<Saver> saver_;
    std::int64_t first_sample_;
    Feed feed_;
    struct Checked {
        std::vector<float> weights_before{};  // the last step's update
        std::vector<bool> skipped{};          // of each step
        SentWords sent{};
        std::shared_ptr<const Checkpoint> begun{};  // that the training went on from
    } checked_;
    float last_scale_ = 1;
    int done_ = 0;  // steps
    LossTarget target_{options_};
};

/// Ranks train, servers serve, on the hosts. What a server returns has neither steps nor gradients.
Result train_with_servers(const kernels::Communicator& all, const Schedule& schedule, const Options& options,
                          const Report& report, const Probe& probe, kernels::Device* device) {
    const std::int64_t ranks = rehearse::ranks(schedule.mesh);
    const bool serves = all.rank() >= ranks;
    const kernels::Communicator own = all.split(serves ? 1 : 0, all.rank());
    ServerJob job{all, link_servers(all, schedule)};
    if (!serves) return Trainer{own, schedule, options, probe, device, &job}.train(report);
    if (options.patience.value > 0) {
        const auto [log, attended] =
            serve_who_is_there(all, schedule, static_cast<int>(all.rank() - ranks), options, job.links);
        const kernels::Communicator left = all.among(attended.left);
        Result result;
        result.staleness = staleness(share_logs(left, schedule, log));
        result.lost = attended.lost;
        result.speaker = attended.left.front();
        return result;
    }
    const std::vector<Served> log = serve(all, schedule, static_cast<int>(all.rank() - ranks), options, job.links);
    Result result;
    result.staleness = staleness(share_logs(all, schedule, log));
    return result;
}

}  // namespace

Result train_on(const kernels::Communicator& world, const Schedule& schedule, const Options& options,
                const Report& report, const Probe& probe, kernels::Device* device) {
    rehearse::check(schedule);
    check_job(world, schedule, options, device == nullptr ? std::string_view{options.device} : device->name());
    if (schedule.methods.get<Averaging>().learners > 1 || options.unlocked > 0 || !options.by_learners.empty()) {
        return train_with_threads(world, schedule, options, report);
    }
    if (device == nullptr) device = kernels::usable_device(options.device);
    if (schedule.methods.get<Servers>().count > 0)
        return train_with_servers(world, schedule, options, report, probe, device);
    return Trainer{world, schedule, options, probe, device}.train(report);
}

Result train(const Session& session, const Schedule& schedule, const Options& options,
             const std::function<void(int step, const StepReport&)>& report) {
    const kernels::Communicator world = kernels::Communicator::world();
    require(world.size() == session.size(), "a session is the whole job");
    if (options.learners > 1) {
        if (world.size() > 1) throw InputError("--learners: of one rank; start it without mpirun");
        check_learners(schedule, options);  // before a device is asked for
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

}  // namespace rehearse::run
