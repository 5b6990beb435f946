// SPDX-License-Identifier: Apache-2.0
#include "run/methods/server_shard.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "core/index.hpp"
#include "core/methods/servers.hpp"
#include "kernels/comm/idle.hpp"
#include "kernels/comm/operation.hpp"
#include "run/checkpoint/saver.hpp"
#include "run/clock.hpp"
#include "run/methods/server_weights.hpp"
#include "run/methods/servers.hpp"
#include "run/methods/workers.hpp"

namespace rehearse::run {

namespace {

/// A rank of a worker as a server sees it: the gradients that come next, then the weights that go back.
class Sender {
public:
    /// Of steps [first, end).
    Sender(RankIndex rank, kernels::Communicator& link, KeptPlace& kept, int first, int end)
        : rank_(rank),
          link_(link),
          kept_(kept),
          pushes_(kept.pushes()),
          first_(first),
          left_((end - first) * static_cast<std::int64_t>(pushes_.size())) {
        for (const PushPull* push_pull : pushes_) {
            memory_.resize(std::max(memory_.size(), at(std::max(push_pull->sent, push_pull->received))));
        }
        expect();
    }

    RankIndex rank() const { return rank_; }
    bool is_through() const { return left_ == 0; }
    const PushPull& next() const { return *pushes_[taken_ % pushes_.size()]; }
    int step() const { return first_ + static_cast<int>(taken_ / pushes_.size()); }
    bool pushes(int bucket) const {
        return std::ranges::any_of(pushes_, [&](const PushPull* push) { return push->bucket == bucket; });
    }
    /// Whether gradients of a bucket have come that nobody has looked at.
    bool waits_with(int bucket) const { return has_come_ && next().bucket == bucket; }
    bool waits() const { return has_come_; }
    /// What has come meanwhile. `log` gets when the answer before had been sent.
    void look(std::vector<Served>& log) {
        if (is_through() || !under_way_ || !under_way_->test()) return;
        under_way_.reset();
        if (!replying_) {
            has_come_ = true;
            return;
        }
        log[logged_].answered = now();
        --left_;
        ++taken_;
        expect();
    }
    void take() { kept_.take(next(), memory_); }
    /// With what has been made of what has come, which is the last in a log of so many.
    void reply(std::size_t logged) {
        has_come_ = false;
        replying_ = true;
        logged_ = logged - 1;
        rounds_ = kernels::RankProgram::message(0, true, next().received);
        under_way_ = std::make_unique<kernels::Operation>(link_, rounds_, kernels::floats(of(next().received)));
    }

private:
    std::span<float> of(std::int64_t elements) { return std::span{memory_}.first(at(elements)); }
    void expect() {
        replying_ = false;
        if (is_through()) return;
        rounds_ = kernels::RankProgram::message(0, false, next().sent);
        under_way_ = std::make_unique<kernels::Operation>(link_, rounds_, kernels::floats(of(next().sent)));
    }

    RankIndex rank_;
    kernels::Communicator& link_;
    KeptPlace& kept_;
    const std::vector<const PushPull*>& pushes_;
    int first_;
    std::int64_t left_;
    std::size_t taken_ = 0;
    bool has_come_ = false, replying_ = false;
    std::size_t logged_ = 0;  // where what it replies to is in the log
    std::vector<float> memory_;
    kernels::RankProgram rounds_;
    std::unique_ptr<kernels::Operation> under_way_;
};

/// A worker's ranks of one stage. They have one model between them, of which some weights are on several of them: all
/// of a bucket that they push is taken together, as one update of the worker's.
class Team {
public:
    explicit Team(int stage) : stage_(stage) {}
    void add(std::unique_ptr<Sender> member) { members_.push_back(std::move(member)); }

    bool is_through() const {
        return std::ranges::all_of(members_, [](const auto& member) { return member->is_through(); });
    }
    /// Takes what all ranks that push it have pushed; who has been heard.
    std::vector<RankIndex> serve(std::vector<Served>& log) {
        for (const auto& member : members_) member->look(log);
        for (const auto& member : members_) {
            if (!member->waits()) continue;
            const std::vector<Sender*> all = all_with(member->next().bucket);
            if (!all.empty()) return take(all, log);
        }
        return {};
    }

private:
    /// Those that push a bucket; nobody while one of them has not.
    std::vector<Sender*> all_with(int bucket) const {
        std::vector<Sender*> all;
        for (const auto& member : members_) {
            if (!member->pushes(bucket)) continue;
            if (!member->waits_with(bucket)) return {};
            all.push_back(member.get());
        }
        return all;
    }
    std::vector<RankIndex> take(const std::vector<Sender*>& all, std::vector<Served>& log) const {
        log.push_back({all.front()->rank(), all.front()->step(), all.front()->next().bucket, stage_});
        log.back().came = now();
        for (Sender* member : all) member->take();
        log.back().updated = now();
        std::vector<RankIndex> heard;
        for (Sender* member : all) {
            member->reply(log.size());
            heard.push_back(member->rank());
        }
        return heard;
    }

    int stage_;
    std::vector<std::unique_ptr<Sender>> members_;
};

/// A server with its shard of the weights: what it does for whoever comes.
class ServerShard {
public:
    ServerShard(const Schedule& schedule, int server, const Options& options, ServerLinks& links)
        : schedule_(schedule), links_(links) {
        for (int stage = 0; stage < stages(schedule); ++stage) {
            for (const RankIndex rank : pushing_ranks_of(schedule, stage))
                places_[rank] = std::make_unique<KeptPlace>(schedule, server, rank, options);
        }
    }

    using GoesOn = std::function<bool(std::span<const RankIndex> heard)>;

    /// What workers send in steps [first, end): all of it, or as long as `goes_on`, told who has come, says so.
    void serve(int first, int end, const GoesOn& goes_on = {}) {
        std::map<std::pair<RankIndex, int>, Team> teams;  // by worker and stage
        for (auto& [pair, link] : links_) {
            const RankIndex rank = pair.first;
            KeptPlace& kept = *places_.at(alike_of_first(schedule_.mesh, rank));
            if (kept.pushes().empty()) continue;
            const int stage = stage_of(schedule_, rank).stage;
            teams.try_emplace({worker_of(schedule_.mesh, rank), stage}, stage)
                .first->second.add(std::make_unique<Sender>(rank, link, kept, first, end));
        }
        if (teams.empty() && !goes_on) return;
        kernels::Idle idle = kernels::attentive();
        for (;;) {
            std::vector<RankIndex> heard;
            for (auto& [of, team] : teams) std::ranges::copy(team.serve(log_), std::back_inserter(heard));
            const auto is_through = [](const auto& team) { return team.second.is_through(); };
            if (goes_on ? !goes_on(heard) : std::ranges::all_of(teams, is_through)) return;
            if (!heard.empty()) {
                idle = kernels::attentive();
            } else {
                idle();
            }
        }
    }
    std::vector<Served>& log() { return log_; }
    void visit_state(const UseNumbers& use) {
        for (const auto& [rank, place] : places_) place->visit_state(use);
    }

private:
    const Schedule& schedule_;
    std::map<RankIndex, std::unique_ptr<KeptPlace>> places_;  // by the first worker's rank
    ServerLinks& links_;
    std::vector<Served> log_;
};

}  // namespace

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

}  // namespace rehearse::run
