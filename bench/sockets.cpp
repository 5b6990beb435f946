// SPDX-License-Identifier: Apache-2.0
#include "bench/sockets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <exception>
#include <span>
#include <thread>
#include <vector>

namespace rehearse::bench {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t smallest = 16, largest = 2 << 20;                       // floats of a message
constexpr std::array<std::int64_t, 4> beside{256, 1 << 14, 1 << 16, 1 << 18};  // ... beside computation

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double thread_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct Beside {
    double message = 0, core = 0;  // seconds of one
};

// So many all-reduces on a thread of their own, while this one computes on what an L2 cache holds.
Beside time_beside(SocketRing& ring, std::span<float> data, int count, double messages, const Team& team) {
    std::vector<float> own(24 << 10, 0.5F);
    std::atomic<bool> over = false;
    std::exception_ptr failure;
    Beside result;
    team.barrier();
    std::thread thread{[&] {
        try {
            const auto start = Clock::now();
            const double core = thread_seconds() + ring.helper_seconds();
            for (int i = 0; i < count; ++i) ring.all_reduce(data);
            result = {since(start), thread_seconds() + ring.helper_seconds() - core};
        } catch (...) {
            failure = std::current_exception();
        }
        over = true;
    }};
    volatile float sink = 0;
    while (!over) {
        for (float& value : own) value = 0.999F * value + 0.001F;
        sink = own[own.size() / 2];
    }
    static_cast<void>(sink);
    thread.join();
    if (failure) std::rethrow_exception(failure);
    return {team.mean(result.message) / (messages * count), team.mean(result.core) / (messages * count)};
}

}  // namespace

calibrate::Messages measure_sockets(const Team& team, const SocketRing::Exchange& exchange, const Rounds& rounds) {
    SocketRing ring(team.rank, team.ranks, exchange);
    const double messages = 2 * static_cast<double>(team.ranks - 1);
    std::vector<float> data(static_cast<std::size_t>(team.ranks * largest));
    const auto whole = [&](std::int64_t floats) {
        return std::span{data}.first(static_cast<std::size_t>(team.ranks * floats));
    };
    std::vector<Case> cases;
    for (std::int64_t count = smallest; count <= largest; count *= 2) {
        const Bytes size = static_cast<double>(count) * size_of(DataType::f32);
        cases.push_back({.name = fmt::format("message:ring:{}B/sockets", size.value),
                         .flops = Flops{},
                         .bytes = size,
                         .run = [&ring, part = whole(count)] { ring.all_reduce(part); }});
    }
    const Times times = time(cases, {rounds.count, rounds.budget * 0.7}, team);
    calibrate::Messages result;
    result.over = "sockets";
    for (std::size_t i = 0; i < cases.size(); ++i) {
        for (const double seconds : times.seconds[i])
            result.samples.push_back({cases[i].bytes, Seconds{seconds / messages}});
    }
    // What adding takes is in these messages: a thousandth of a message is as good as nothing.
    const calibrate::MessageSample& last = result.samples.back();
    result.reduce = {last.size / (last.one_way * 1e-3), 0, rounds.count};
    for (int round = 0; round < rounds.count; ++round) {
        for (const std::int64_t floats : beside) {
            constexpr int often = 8;
            const auto start = Clock::now();
            for (int i = 0; i < often; ++i) ring.all_reduce(whole(floats));
            const double alone = team.mean(since(start)) / (messages * often);
            const Beside measured = time_beside(ring, whole(floats), often, messages, team);
            result.overlap.push_back({static_cast<double>(floats) * size_of(DataType::f32), Seconds{alone},
                                      Seconds{measured.message}, Seconds{measured.core}});
        }
    }
    return result;
}

}  // namespace rehearse::bench
