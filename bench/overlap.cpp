// SPDX-License-Identifier: Apache-2.0
#include "bench/overlap.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <exception>
#include <thread>

#include "bench/messages.hpp"
#include "core/error.hpp"
#include "kernels/comm/idle.hpp"

namespace rehearse::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::int64_t, 4> floats{256, 1 << 14, 1 << 16, 1 << 18};  // of a message
constexpr std::chrono::milliseconds rest{5};                                   // between two messages

// What this thread has had of its core.
double thread_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Some tens of microseconds of multiply-adds on 288 KiB.
class Work {
public:
    void once() {
        for (std::size_t i = 0; i < a_.size(); ++i) a_[i] = 0.999F * a_[i] + b_[i] * c_[i];
        benchmark_sink_ = a_[a_.size() / 2];
    }

private:
    static constexpr std::size_t size = 24 << 10;
    std::vector<float> a_ = std::vector<float>(size, 0.5F), b_ = a_, c_ = a_;
    volatile float benchmark_sink_ = 0;
};

// So many rounds on this thread.
double alone(kernels::Communicator& communicator, const kernels::RankProgram& program, std::span<float> data,
             int count) {
    communicator.barrier(kernels::attentive());
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) communicator.all_reduce(program, data, kernels::attentive());
    return since(start) / count;
}

// What another thread does, while this one computes.
template <typename Communication>
void compute_beside(Work& work, const Communication& communication) {
    std::atomic<bool> over = false;
    std::exception_ptr failure;
    std::thread thread{[&] {
        try {
            communication();
        } catch (...) {
            failure = std::current_exception();
        }
        over = true;
    }};
    while (!over) work.once();
    thread.join();
    if (failure) std::rethrow_exception(failure);
}

// Of the core, in each of so many rounds one after the other: what their thread takes of it. What the computation
// misses would be the same and more, but drowns in what ranks that share a core miss by each other.
double lost(kernels::Communicator& communicator, const kernels::RankProgram& program, std::span<float> data, int count,
            Work& work, const Team& team) {
    communicator.barrier(kernels::attentive());
    double seconds = 0;
    compute_beside(work, [&] {
        const double start = thread_seconds();
        for (int i = 0; i < count; ++i) communicator.all_reduce(program, data, kernels::considerate());
        seconds = thread_seconds() - start;
    });
    return team.mean(seconds) / count;
}

// A message from each even rank to the next one and back; the last of an odd number of ranks has none.
kernels::RankProgram there_and_back(const kernels::Communicator& communicator, std::int64_t count) {
    const bool first = communicator.rank() % 2 == 0;
    const std::int64_t peer = communicator.rank() + (first ? 1 : -1);
    kernels::RankProgram program = kernels::RankProgram::message(peer, first, count);
    program.ranks = communicator.size();
    if (peer == communicator.size()) {
        program.rounds.clear();
    } else {
        program.rounds.push_back(kernels::RankProgram::message(peer, !first, count).rounds.front());
    }
    return program;
}

// A message now and then: half the time of so many there and back, as the first rank of a pair sees them, after rests.
double now_and_then(kernels::Communicator& communicator, std::int64_t floats_of_one, std::span<float> data, int count,
                    Work& work, const Team& team) {
    const kernels::RankProgram program = there_and_back(communicator, floats_of_one);
    const bool counts = communicator.rank() % 2 == 0 && !program.rounds.empty();
    double seconds = 0;
    communicator.barrier(kernels::attentive());
    compute_beside(work, [&] {
        for (int i = 0; i < count; ++i) {
            if (counts) std::this_thread::sleep_for(rest);
            const auto start = Clock::now();
            communicator.all_reduce(program, data.first(static_cast<std::size_t>(floats_of_one)),
                                    kernels::considerate());
            if (counts) seconds += since(start);
        }
    });
    return team.mean(seconds) / team.mean(counts ? 1 : 0) / (2 * count);
}

}  // namespace

std::vector<calibrate::OverlapSample> measure_overlap(kernels::Communicator& communicator, const Rounds& rounds) {
    require(communicator.size() > 1, "messages need two ranks");
    const Team team = team_of(communicator);
    std::vector<float> data(static_cast<std::size_t>(communicator.size() * floats.back()), 0.5F);
    const double share = rounds.budget.value / static_cast<double>(rounds.count * std::ssize(floats)) / 3;
    std::vector<calibrate::OverlapSample> samples;
    Work work;
    for (int round = 0; round <= rounds.count; ++round) {
        for (const std::int64_t count : floats) {
            const kernels::RankProgram program = ring_round(communicator, count);
            const double pilot = team.mean(alone(communicator, program, data, 3));
            const int repeats = static_cast<int>(std::clamp(share / pilot, 3.0, 2000.0));
            calibrate::OverlapSample sample;
            sample.size = static_cast<double>(count) * size_of(DataType::f32);
            sample.alone = Seconds{team.mean(alone(communicator, program, data, repeats))};
            sample.lost = Seconds{lost(communicator, program, data, repeats, work, team)};
            const int few =
                static_cast<int>(std::clamp(share / std::chrono::duration<double>(rest).count(), 4.0, 20.0));
            sample.beside = Seconds{now_and_then(communicator, count, data, few, work, team)};
            if (round > 0) samples.push_back(sample);  // the first warms up
        }
    }
    return samples;
}

}  // namespace rehearse::bench
