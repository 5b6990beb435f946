// SPDX-License-Identifier: Apache-2.0
#include "run/methods/attendance.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/methods/servers.hpp"
#include "core/quorum.hpp"
#include "run/clock.hpp"
#include "run/methods/server_shard.hpp"

namespace rehearse::run {

namespace {

// What server 0 sends: a number a rank of the job, or all of them `stop`.
constexpr double gone = 0, here = 1, was_cut = 2, was_lost = 3, stop = -1;

std::int64_t first_server(const Schedule& schedule) { return ranks(schedule.mesh); }

void tell(const kernels::Communicator& job, const std::vector<double>& news, std::int64_t to) {
    job.send(std::as_bytes(std::span{news}), to);
}

std::vector<double> news_from(const kernels::Communicator& job, std::int64_t server) {
    std::vector<double> news(static_cast<std::size_t>(job.size()));
    job.receive(std::as_writable_bytes(std::span{news}), server);
    return news;
}

}  // namespace

Attendance::Attendance(const kernels::Communicator& job, const Schedule& schedule, int steps, Seconds patience)
    : job_(job), steps_(steps), patience_(patience) {
    for (const RankIndex rank : pushing_ranks(schedule)) heard_[rank] = now();
    workers_ = static_cast<std::int64_t>(heard_.size());
    quorum_ = waited_for(schedule.methods.get<Servers>().quorum, workers_);
    for (std::int64_t rank = first_server(schedule); rank < job.size(); ++rank) attended_.left.push_back(rank);
}

bool Attendance::goes_on(std::span<const RankIndex> heard) {
    for (const RankIndex rank : heard) {
        if (const auto found = heard_.find(rank); found != heard_.end()) found->second = now();
    }
    std::erase_if(heard_, [&](const auto& worker) {
        const auto& [rank, last] = worker;
        if (job_.has_sent(rank)) {
            double steps = 0;
            job_.receive(std::as_writable_bytes(std::span{&steps, 1}), rank);
            attended_.left.push_back(rank);
            if (static_cast<std::int64_t>(steps) < steps_) attended_.cut.push_back(rank);
            through_ += static_cast<std::int64_t>(steps) >= steps_ ? 1 : 0;
            return true;
        }
        if (now() - last < patience_.value) return false;
        attended_.lost.push_back(rank);
        return true;
    });
    if (!told_ && through_ >= quorum_) {
        told_ = true;
        const std::vector<double> news(static_cast<std::size_t>(job_.size()), stop);
        for (const auto& [rank, last] : heard_) tell(job_, news, rank);
    }
    return !heard_.empty();
}

Attended Attendance::conclude() {
    std::ranges::sort(attended_.left);
    std::vector<double> news(static_cast<std::size_t>(job_.size()), gone);
    const auto mark = [&](const std::vector<std::int64_t>& ranks, double as) {
        for (const std::int64_t rank : ranks) news[static_cast<std::size_t>(rank)] = as;
    };
    mark(attended_.left, here);
    mark(attended_.cut, was_cut);
    mark(attended_.lost, was_lost);
    for (const std::int64_t rank : attended_.left) {
        if (rank != job_.rank()) tell(job_, news, rank);
    }
    return attended_;
}

bool is_concluded(const kernels::Communicator& job, const Schedule& schedule) {
    return job.has_sent(first_server(schedule));
}

Attended hear_conclusion(const kernels::Communicator& job, const Schedule& schedule) {
    for (;;) {
        const std::vector<double> news = news_from(job, first_server(schedule));
        if (news.front() == stop) continue;  // it was on its way when this rank said goodbye
        Attended attended;
        for (std::size_t i = 0; i < news.size(); ++i) {
            const auto rank = static_cast<std::int64_t>(i);
            if (news[i] == here || news[i] == was_cut) attended.left.push_back(rank);
            if (news[i] == was_cut) attended.cut.push_back(rank);
            if (news[i] == was_lost) attended.lost.push_back(rank);
        }
        return attended;
    }
}

bool is_cut(const kernels::Communicator& job, const Schedule& schedule) {
    if (!job.has_sent(first_server(schedule))) return false;
    require(news_from(job, first_server(schedule)).front() == stop, "nothing is concluded while a worker works");
    return true;
}

Attended say_goodbye(const kernels::Communicator& job, const Schedule& schedule, int steps) {
    const double done = steps;
    job.send(std::as_bytes(std::span{&done, 1}), first_server(schedule));
    return hear_conclusion(job, schedule);
}

}  // namespace rehearse::run
