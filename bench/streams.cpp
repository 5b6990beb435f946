// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "bench/caches.hpp"
#include "bench/ceilings.hpp"
#include "bench/thread_team.hpp"
#include "calibrate/fit.hpp"
#include "core/error.hpp"
#include "kernels/memory.hpp"

namespace rehearse::bench {

namespace {

// Whole numbers, so that every sum is exact.
double x_at(std::size_t i) { return static_cast<double>(i % 7 + 1); }
double y_at(std::size_t i) { return static_cast<double>(i % 5) - 2; }

double expected(StreamKernel kernel, std::size_t i) {
    switch (kernel) {
        case StreamKernel::copy:
            return x_at(i);
        case StreamKernel::scale:
            return stream_scale * x_at(i);
        case StreamKernel::add:
            return x_at(i) + y_at(i);
        case StreamKernel::triad:
            return x_at(i) + stream_scale * y_at(i);
    }
    return 0;
}

// Whether results are as expected, which repeat after 5 x 7 elements.
bool all_expected(StreamKernel kernel, std::span<const double> results) {
    std::array<double, 35> period{};
    for (std::size_t i = 0; i < period.size(); ++i) period[i] = expected(kernel, i);
    for (std::size_t i = 0; i < results.size(); i += period.size()) {
        const auto part = results.subspan(i, std::min(period.size(), results.size() - i));
        if (!std::equal(part.begin(), part.end(), period.begin())) return false;
    }
    return true;
}

// Three arrays of a thread, which the thread that uses them has touched first. They begin at cache lines, and at
// different places of their pages: a load must not wait for a store 4 KiB apart that only looks like its own. They lie
// on huge pages, as many systems give them unasked: figures of two hosts must not differ by that setting.
class Arrays {
public:
    void make(std::size_t count) {
        constexpr std::size_t line = 64 / sizeof(double);
        const std::size_t pitch = (count + line - 1) / line * line + 17 * line;
        memory_ = kernels::allocate_host(3 * pitch * sizeof(double));
        dst = reinterpret_cast<double*>(memory_.get());
        x = dst + pitch;
        y = x + pitch;
        for (std::size_t i = 0; i < count; ++i) x[i] = x_at(i);
        for (std::size_t i = 0; i < count; ++i) y[i] = y_at(i);
        std::fill_n(dst, count, std::numeric_limits<double>::quiet_NaN());
    }
    double *dst = nullptr, *x = nullptr, *y = nullptr;

private:
    kernels::HostMemory memory_;
};

// One kernel, size and number of threads.
struct Sweep {
    StreamKernel kernel;
    std::string level;
    int threads;
    std::size_t count;  // elements of an array of a thread
    std::int64_t repeats;
};

// The arrays of a team, and what they were last used for: it is checked before they are used for something else.
class Streamer {
public:
    Streamer(int threads, std::size_t largest) : team_(threads), arrays_(static_cast<std::size_t>(threads)) {
        team_.run([&](int t) { of(t).make(largest); });
    }

    void set_up(const Sweep& sweep) {
        check();
        team_.run([&](int t) { std::fill_n(of(t).dst, sweep.count, std::numeric_limits<double>::quiet_NaN()); });
        last_ = &sweep;
    }
    void run(const Sweep& sweep) {
        team_.run([&](int t) {
            const Arrays& a = of(t);
            for (std::int64_t i = 0; i < sweep.repeats; ++i) {
                bench::run(sweep.kernel, a.dst, a.x, a.y, sweep.count);
            }
        });
    }
    void check() {
        if (last_ == nullptr) return;
        std::atomic<bool> right = true;
        team_.run([&](int t) {
            if (!all_expected(last_->kernel, {of(t).dst, last_->count})) right = false;
        });
        if (!right) {
            throw BackendError(
                fmt::format("stream {}: a result is wrong at {} elements", to_string(last_->kernel), last_->count));
        }
        last_ = nullptr;
    }

private:
    Arrays& of(int thread) { return arrays_[static_cast<std::size_t>(thread)]; }
    ThreadTeam team_;
    std::vector<Arrays> arrays_;
    const Sweep* last_ = nullptr;
};

struct Place {
    std::string level;
    Bytes of_thread;  // its three arrays
};

// Half of a thread's share of a cache, beyond what the caches before it hold.
std::vector<Place> levels(const std::vector<Cache>& caches, int threads, double memory_factor) {
    std::vector<Place> places;
    Bytes before{0};
    for (const Cache& cache : caches) {
        const Bytes share = cache.size / static_cast<double>(std::min(threads, cache.sharers));
        places.push_back({fmt::format("L{}", cache.level), before + share * 0.5});
        before += share;
    }
    const Cache& last = caches.back();
    const Bytes all = last.size * static_cast<double>(last.instances);
    places.push_back({"memory", all * (3 * memory_factor / threads)});
    return places;
}

// Also the powers of two between; a size belongs to the first level that holds it, and to none near its edge.
std::vector<Place> every_size(const std::vector<Cache>& caches, int threads, const std::vector<Place>& chosen) {
    std::vector<Place> places = chosen;
    for (Bytes size{8.0 * 1024}; size < chosen.back().of_thread; size = 2 * size) {
        std::string level = "memory";
        Bytes within{0};
        for (const Cache& cache : caches) {
            within += cache.size / static_cast<double>(std::min(threads, cache.sharers));
            if (level == "memory" && size <= within) level = fmt::format("L{}", cache.level);
        }
        places.push_back({level, size});
    }
    std::ranges::sort(places, {}, &Place::of_thread);
    return places;
}

std::vector<Place> places(const StreamOptions& options, int threads) {
    const std::vector<Cache> caches = data_caches();
    const std::vector<Place> chosen = levels(caches, threads, options.memory_factor);
    std::vector<Place> all = options.every_size ? every_size(caches, threads, chosen) : chosen;
    if (options.wanted) std::erase_if(all, [&](const Place& place) { return !options.wanted(place.level); });
    if (all.empty()) throw InputError("bench stream: no level is wanted; there are L1 to the last cache's, and memory");
    return all;
}

// A run lasts tens of microseconds at least, so that the meeting of threads and the clock are small beside it.
std::vector<Sweep> sweeps(const std::vector<Place>& places, const std::vector<StreamKernel>& kernels, int threads) {
    constexpr double least_bytes = 32 << 20;
    std::vector<Sweep> found;
    for (const Place& place : places) {
        const auto count = static_cast<std::size_t>(place.of_thread.value / 3 / sizeof(double)) / 32 * 32;
        const auto repeats = static_cast<std::int64_t>(std::max(1.0, least_bytes / place.of_thread.value));
        for (const StreamKernel kernel : kernels) found.push_back({kernel, place.level, threads, count, repeats});
    }
    return found;
}

Bytes array_of_all(const Sweep& sweep) {
    return Bytes{static_cast<double>(sweep.count) * sizeof(double) * sweep.threads};
}

Bytes bytes_of(const Sweep& sweep) { return 3.0 * array_of_all(sweep); }

Case case_of(Streamer& streamer, const Sweep& sweep) {
    return {.name = fmt::format("stream:{}:n{}:t{}:f64/cpu", to_string(sweep.kernel),
                                sweep.count * static_cast<std::size_t>(sweep.threads), sweep.threads),
            .flops = {},
            .bytes = array_of_all(sweep) * (arrays_of(sweep.kernel) * static_cast<double>(sweep.repeats)),
            .set_up = [&streamer, &sweep] { streamer.set_up(sweep); },
            .run = [&streamer, &sweep] { streamer.run(sweep); }};
}

void require_memory(const std::map<int, std::size_t>& largest) {
    Bytes needed{0};
    for (const auto& [threads, count] : largest) {
        needed += Bytes{3.0 * sizeof(double) * static_cast<double>(count) * threads};
    }
    const Bytes free = available_memory();
    if (needed > free * 0.9) {
        throw InfeasibleError(fmt::format("bench stream: its arrays take {}, but only {} of memory are free",
                                          to_string(needed), to_string(free)));
    }
}

}  // namespace

Streams measure_streams(const StreamOptions& options) {
    std::vector<Sweep> all;
    for (const int threads : options.threads) {
        for (const Sweep& sweep : sweeps(places(options, threads), options.kernels, threads)) all.push_back(sweep);
    }
    std::map<int, std::size_t> largest;
    for (const Sweep& sweep : all) largest[sweep.threads] = std::max(largest[sweep.threads], sweep.count);
    require_memory(largest);
    std::map<int, Streamer> streamers;
    for (const auto& [threads, count] : largest) streamers.try_emplace(threads, threads, count);
    std::vector<Case> cases;
    for (const Sweep& sweep : all) cases.push_back(case_of(streamers.at(sweep.threads), sweep));
    Times times = time(cases, options.rounds, {});
    for (auto& [threads, streamer] : streamers) streamer.check();
    Streams streams{{}, std::move(times.json)};
    for (std::size_t i = 0; i < all.size(); ++i) {
        const std::vector<double>& seconds = times.seconds[i];
        streams.samples.push_back({all[i].kernel, all[i].level, all[i].threads, bytes_of(all[i]),
                                   cases[i].bytes / Seconds{*std::ranges::min_element(seconds)},
                                   calibrate::robust_deviation(seconds) / calibrate::median(seconds)});
    }
    return streams;
}

}  // namespace rehearse::bench
