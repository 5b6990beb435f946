// SPDX-License-Identifier: Apache-2.0
#include "run/methods/server_shard.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/averaging.hpp"
#include "core/methods/servers.hpp"
#include "kernels/comm/idle.hpp"
#include "kernels/comm/operation.hpp"
#include "run/checkpoint/saver.hpp"
#include "run/clock.hpp"
#include "run/methods/averaging.hpp"
#include "run/methods/servers.hpp"
#include "run/random.hpp"
#include "run/trainer.hpp"

namespace rehearse::run {

namespace {

std::vector<const PushPull*> pushes_to(const Schedule& schedule, int server, int stage) {
    std::vector<const PushPull*> pushes;
    for (const Step& step : class_of_stage(schedule, stage).steps) {
        const auto* push_pull = std::get_if<PushPull>(&step.action);
        if (push_pull != nullptr && push_pull->server == server) pushes.push_back(push_pull);
    }
    return pushes;
}

/// A worker as a server sees it: the gradients that come next, then the weights that go back.
class Worker {
public:
    /// Of steps [first, end).
    Worker(RankIndex rank, int stage, kernels::Communicator& link, const std::vector<const PushPull*>& pushes,
           int first, int end)
        : rank_(rank),
          stage_(stage),
          link_(link),
          pushes_(pushes),
          first_(first),
          left_((end - first) * static_cast<std::int64_t>(pushes.size())) {
        for (const PushPull* push_pull : pushes) {
            memory_.resize(std::max(memory_.size(), at(std::max(push_pull->sent, push_pull->received))));
        }
        expect();
    }

    bool is_through() const { return left_ == 0; }
    const PushPull& next() const { return *pushes_[taken_ % pushes_.size()]; }
    int stage() const { return stage_; }
    Served served() const { return {rank_, first_ + static_cast<int>(taken_ / pushes_.size()), next().bucket, stage_}; }
    std::span<float> memory() { return std::span{memory_}.first(at(next().sent)); }
    std::span<float> answer() { return std::span{memory_}.first(at(next().received)); }
    /// Whether gradients have come that nobody has looked at. `log` gets when the answer before them had been sent.
    bool has_come(std::vector<Served>& log) {
        if (is_through() || !under_way_ || !under_way_->test()) return false;
        under_way_.reset();
        if (!replying_) return true;
        log[logged_].answered = now();
        --left_;
        ++taken_;
        expect();
        return false;
    }
    /// With what is in answer() by now, to what is the last in a log of so many.
    void reply(std::size_t logged) {
        replying_ = true;
        logged_ = logged - 1;
        rounds_ = kernels::RankProgram::message(0, true, next().received);
        under_way_ = std::make_unique<kernels::Operation>(link_, rounds_, kernels::floats(answer()));
    }

private:
    void expect() {
        replying_ = false;
        if (is_through()) return;
        rounds_ = kernels::RankProgram::message(0, false, next().sent);
        under_way_ = std::make_unique<kernels::Operation>(link_, rounds_, kernels::floats(memory()));
    }

    RankIndex rank_;
    int stage_;
    kernels::Communicator& link_;
    const std::vector<const PushPull*>& pushes_;
    int first_;
    std::int64_t left_;
    std::size_t taken_ = 0;
    bool replying_ = false;
    std::size_t logged_ = 0;  // where what it replies to is in the log
    std::vector<float> memory_;
    kernels::RankProgram rounds_;
    std::unique_ptr<kernels::Operation> under_way_;
};

/// Gradients of dense layers from the sufficient factors that workers send instead.
class Products {
public:
    explicit Products(const KernelSelection& selection) : selection_(selection) {}

    void multiply(const PushPull& push_pull, std::span<const float> factors, kernels::View gradient) {
        const Problem& problem = push_pull.work.front();
        const std::size_t inputs = at(problem.batch * elements(input_shapes(problem.op).front()));
        kernels::Buffers buffers;
        buffers.src.emplace_back(factors.first(inputs));
        buffers.diff_dst = factors.subspan(inputs);
        buffers.diff_weights = gradient;
        auto& kernel = kernels_[push_pull.bucket];
        if (kernel == nullptr) {
            const auto choices = kernels::choose_passes(problem.op, problem.batch, problem.type, selection_);
            kernel = kernels::prepare(of(choices, problem.pass), problem, selection_.scratch_limit);
        }
        kernel->run(buffers);
    }

private:
    const KernelSelection& selection_;
    std::map<int, std::unique_ptr<kernels::Kernel>> kernels_;  // by bucket
};

/// What a server keeps of one stage of the workers, and does with what comes from there.
class KeptStage {
public:
    KeptStage(const Schedule& schedule, int server, int stage, const Options& options)
        : schedule_(schedule),
          selection_(selection_of(options, nullptr)),
          kept_(kept_by_server(schedule, server, stage)),
          program_(kept_, RankIndex{0}, selection_, key(options.seed, weights_of), hyperparameters_of(options)),
          products_(selection_),
          pushes_(pushes_to(schedule, server, stage)) {
        for (ReadyStep& ready : program_.steps()) update_of_[std::get<Update>(ready.step->action).bucket] = &ready;
        for (const PushPull* push : pushes_) {
            if (schedule.methods.get<Averaging>().momentum > 0)
                last_[push->bucket] = floats_of(program_.tensors().bucket(push->bucket).weights);
        }
    }

    const std::vector<const PushPull*>& pushes() const { return pushes_; }
    void visit_state(const UseNumbers& use) {
        program_.visit_own_state(use);
        for (auto& [bucket, last] : last_) use(last);
    }

    void take(Worker& worker) {
        const BucketTensors& bucket = program_.tensors().bucket(worker.next().bucket);
        if (schedule_.methods.get<Averaging>().period > 0) {
            pull(worker.memory(), worker.next().bucket);
        } else {
            if (sends_factors(worker.next())) {
                products_.multiply(worker.next(), worker.memory(), bucket.applied);
            } else {
                unpack_gradients(schedule_, worker.memory(), bucket.applied);
            }
            program_.compute(*update_of_.at(worker.next().bucket), 0, 0);
            std::ranges::copy(std::span<const float>{bucket.weights}, worker.answer().begin());
        }
    }

private:
    void pull(std::span<float> model, int bucket) {
        const Averaging& by = schedule_.methods.get<Averaging>();
        const std::span<float> average = program_.tensors().bucket(bucket).weights;
        const auto last = last_.find(bucket);
        if (last == last_.end()) return pull_average(by.elastic, model, average);
        pull_average(by, model, average, last->second);
    }

    const Schedule& schedule_;
    KernelSelection selection_;
    Schedule kept_;
    Program program_;
    Products products_;
    std::vector<const PushPull*> pushes_;
    std::map<int, ReadyStep*> update_of_;     // by bucket
    std::map<int, std::vector<float>> last_;  // by bucket: where the average was, if it goes on by its last step
};

/// A server with its shard of the weights: what it does for whoever comes.
class ServerShard {
public:
    ServerShard(const Schedule& schedule, int server, const Options& options, ServerLinks& links)
        : schedule_(schedule), links_(links) {
        for (int stage = 0; stage < stages(schedule); ++stage)
            stages_.push_back(std::make_unique<KeptStage>(schedule, server, stage, options));
    }

    using GoesOn = std::function<bool(std::span<const RankIndex> heard)>;

    /// What workers send in steps [first, end): all of it, or as long as `goes_on`, told who has come, says so.
    void serve(int first, int end, const GoesOn& goes_on = {}) {
        std::vector<std::unique_ptr<Worker>> workers;
        for (auto& [pair, link] : links_) {
            const int stage = stage_of(schedule_, pair.first).stage;
            const std::vector<const PushPull*>& pushes = stages_[at(stage)]->pushes();
            if (!pushes.empty())
                workers.push_back(std::make_unique<Worker>(pair.first, stage, link, pushes, first, end));
        }
        if (workers.empty() && !goes_on) return;
        kernels::Idle idle = kernels::attentive();
        for (;;) {
            std::vector<RankIndex> heard;
            for (const std::unique_ptr<Worker>& worker : workers) {
                if (!worker->has_come(log_)) continue;
                heard.push_back(worker->served().rank);
                log_.push_back(worker->served());
                log_.back().came = now();
                stages_[at(worker->stage())]->take(*worker);
                log_.back().updated = now();
                worker->reply(log_.size());
            }
            if (goes_on ? !goes_on(heard) : std::ranges::all_of(workers, &Worker::is_through)) return;
            if (!heard.empty()) {
                idle = kernels::attentive();
            } else {
                idle();
            }
        }
    }
    std::vector<Served>& log() { return log_; }
    void visit_state(const UseNumbers& use) {
        for (const auto& stage : stages_) stage->visit_state(use);
    }

private:
    const Schedule& schedule_;
    std::vector<std::unique_ptr<KeptStage>> stages_;
    ServerLinks& links_;
    std::vector<Served> log_;
};

}  // namespace

const RankClass& class_of_stage(const Schedule& schedule, int stage) {
    RankIndex rank{0};
    while (stage_of(schedule, rank).stage != stage) ++rank;
    return schedule.classes[at(class_of(schedule, rank))];
}

std::vector<RankIndex> pushing_ranks(const Schedule& schedule) {
    std::vector<RankIndex> result;
    for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
        const RankClass& own = schedule.classes[at(class_of(schedule, rank))];
        const bool first = std::ranges::any_of(own.steps, [&](const Step& step) {
            const auto* push_pull = std::get_if<PushPull>(&step.action);
            return push_pull != nullptr &&
                   (push_pull->group < 0 || place_on(schedule.mesh, push_pull->group, rank) == 0);
        });
        if (first) result.push_back(rank);
    }
    return result;
}

Schedule kept_by_server(const Schedule& schedule, int server, int stage) {
    const RankClass& own = class_of_stage(schedule, stage);
    for (RankIndex rank{0}; rank < ranks(schedule.mesh); ++rank) {
        if (stage_of(schedule, rank).stage != stage) continue;
        const RankClass& other =
            schedule.classes[at(class_of(schedule, rank))];  // which has another share of the batch
        require(std::ranges::equal(other.part.buckets, own.part.buckets, {}, &Bucket::layers, &Bucket::layers),
                "workers have one network");
    }
    Schedule kept = schedule;
    kept.classes = {own};
    kept.class_axes.clear();
    kept.shares = {};
    kept.mesh = {{{"data", 1}}};
    kept.methods.edit<Servers>() = {};
    kept.micro_batches = 1;
    kept.batch_per_rank = 1;
    RankClass& all = kept.classes.front();
    all.steps.clear();
    all.slots = 1;
    for (Bucket& bucket : all.part.buckets) bucket.axis = -1;
    for (const Step& step : own.steps) {
        const auto* push_pull = std::get_if<PushPull>(&step.action);
        if (push_pull == nullptr || (server >= 0 && push_pull->server != server) ||
            kept.methods.get<Averaging>().period > 0)
            continue;
        all.steps.push_back({step.name, Stream::compute, Update{push_pull->bucket, push_pull->work.back()}, {}});
    }
    return kept;
}

ServerLinks link_servers(const kernels::Communicator& job, const Schedule& schedule) {
    ServerLinks links;
    const std::int64_t first_server = ranks(schedule.mesh), own = job.rank();
    for (const RankIndex rank : pushing_ranks(schedule)) {
        for (std::int64_t server = 0; server < schedule.methods.get<Servers>().count; ++server) {
            const bool serves = own == first_server + server, member = serves || own == rank;
            kernels::Communicator pair = job.split(member ? 1 : 0, serves ? 1 : 0);
            if (member) links.emplace(std::pair{rank, server}, std::move(pair));
        }
    }
    return links;
}

kernels::RankProgram push_pull_rounds(const PushPull& push_pull) {
    kernels::RankProgram rounds = kernels::RankProgram::message(1, true, push_pull.sent);
    kernels::RankProgram back = kernels::RankProgram::message(1, false, push_pull.received);
    rounds.elements = std::max(push_pull.sent, push_pull.received);
    rounds.rounds.push_back(std::move(back.rounds.front()));
    return rounds;
}

std::vector<Served> serve(const kernels::Communicator& job, const Schedule& schedule, int server,
                          const Options& options, ServerLinks& links) {
    ServerShard shard{schedule, server, options, links};
    RankSaver saver{job, schedule, options, [&](const auto& use) { shard.visit_state(use); }};
    auto step = static_cast<int>(saver.begin().step);
    const double first_time = now(), first_ahead = measure_ahead(job);
    while (step < options.steps) {
        const int steps = saver.steps_from(step);
        shard.serve(step, step + steps);
        step += steps;
        saver.after(step - 1, step == options.steps);
    }
    const double last_ahead = measure_ahead(job);
    const Alignment alignment{first_time, first_ahead, now(), last_ahead};
    for (Served& served : shard.log())
        for (double* const time : {&served.came, &served.updated, &served.answered})
            *time = alignment.at_rank_zero(*time);
    return shard.log();
}

std::pair<std::vector<Served>, Attended> serve_who_is_there(const kernels::Communicator& job, const Schedule& schedule,
                                                            int server, const Options& options, ServerLinks& links) {
    ServerShard shard{schedule, server, options, links};
    measure_ahead(job);  // as its workers do; who is left at the end is not asked again
    if (server > 0) {
        shard.serve(0, options.steps, [&](auto) { return !is_concluded(job, schedule); });
        return {shard.log(), hear_conclusion(job, schedule)};
    }
    Attendance attendance{job, schedule, options.steps, options.patience};
    shard.serve(0, options.steps, [&](std::span<const RankIndex> heard) { return attendance.goes_on(heard); });
    return {shard.log(), attendance.conclude()};
}

ServerLogs share_logs(const kernels::Communicator& job, const Schedule& schedule, const std::vector<Served>& own) {
    ServerLogs logs;
    for (std::int64_t server = 0; server < schedule.methods.get<Servers>().count; ++server) {
        const std::int64_t root = job.size() - schedule.methods.get<Servers>().count + server;
        std::vector<Served>& log = logs.emplace_back();
        if (job.rank() == root) log = own;
        std::uint64_t count = log.size();
        job.broadcast(std::as_writable_bytes(std::span{&count, 1}), root, kernels::considerate());
        log.resize(count);
        if (count > 0) job.broadcast(std::as_writable_bytes(std::span{log}), root, kernels::considerate());
    }
    return logs;
}

std::vector<std::int64_t> staleness(const ServerLogs& logs) {
    std::vector<std::int64_t> counts;
    for (const std::vector<Served>& log : logs) {
        std::map<std::pair<int, int>, std::int64_t> updates;        // by stage and bucket
        std::map<std::pair<int, std::int64_t>, std::int64_t> last;  // by bucket and rank: the update that it got
        for (const Served& served : log) {
            const std::int64_t before = updates[{served.stage, served.bucket}]++;
            const auto known = last.try_emplace({served.bucket, served.rank}, 0).first;
            const std::size_t stale = at(before - known->second);
            if (counts.size() <= stale) counts.resize(stale + 1);
            ++counts[stale];
            known->second = before + 1;
        }
    }
    return counts;
}

}  // namespace rehearse::run
