// SPDX-License-Identifier: Apache-2.0
#include "bench/overlap.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "bench/messages.hpp"
#include "core/error.hpp"
#include "kernels/comm/idle.hpp"

namespace rehearse::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::int64_t, 4> floats{256, 1 << 14, 1 << 16, 1 << 18};  // of a message

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Some tens of microseconds of multiply-adds on 288 KiB.
class Work {
public:
    void once() {
        for (std::size_t i = 0; i < a_.size(); ++i) a_[i] = 0.999F * a_[i] + b_[i] * c_[i];
        benchmark_sink_ = a_[a_.size() / 2];
    }
    double seconds(double budget) {
        const auto start = Clock::now();
        std::int64_t count = 0;
        do {
            once();
            ++count;
        } while (since(start) < budget);
        return since(start) / static_cast<double>(count);
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

struct Beside {
    double seconds = 0;  // of a round
    double lost = 0;     // of computation, a round
};

// So many rounds on another thread, while this one computes.
Beside beside(kernels::Communicator& communicator, const kernels::RankProgram& program, std::span<float> data,
              int count, Work& work, double unit) {
    communicator.barrier(kernels::attentive());
    std::atomic<bool> over = false;
    std::exception_ptr failure;
    const auto start = Clock::now();
    std::thread thread{[&] {
        try {
            for (int i = 0; i < count; ++i) communicator.all_reduce(program, data, kernels::considerate());
        } catch (...) {
            failure = std::current_exception();
        }
        over = true;
    }};
    std::int64_t done = 0;
    for (; !over; ++done) work.once();
    const double whole = since(start);
    thread.join();
    if (failure) std::rethrow_exception(failure);
    return {whole / count, (whole - static_cast<double>(done) * unit) / count};
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
            communicator.barrier(kernels::attentive());
            const double unit = work.seconds(std::min(share, 0.02));
            const Beside measured = beside(communicator, program, data, repeats, work, unit);
            sample.beside = Seconds{team.mean(measured.seconds)};
            sample.lost = Seconds{team.mean(measured.lost)};
            if (round > 0) samples.push_back(sample);  // the first warms up
        }
    }
    return samples;
}

}  // namespace rehearse::bench
