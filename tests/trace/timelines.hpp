// SPDX-License-Identifier: Apache-2.0
// Timelines made by hand or by a seeded dice, and what it means that two are equal.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "core/timeline.hpp"

namespace rehearse::trace {

/// Three events on one rank and one counter: small enough to write its files by hand.
inline Timeline three_events() {
    Timeline t{.title = "lenet5 on this-host", .measured = false, .ranks = 2, .events = {}, .counters = {}};
    t.events.push_back({.rank = RankIndex{0},
                        .stream = Stream::compute,
                        .step = "conv1:forward",
                        .layer = "conv1",
                        .pass = "forward",
                        .micro_batch = 0,
                        .iteration = 0,
                        .start = Seconds{0},
                        .end = Seconds{1.5e-6},
                        .bytes = Bytes{4096},
                        .flops = Flops{1e6}});
    t.events.push_back({.rank = RankIndex{0},
                        .stream = Stream::compute,
                        .step = "conv1:backward_weights",
                        .layer = "conv1",
                        .pass = "backward_weights",
                        .micro_batch = 0,
                        .iteration = 0,
                        .start = Seconds{1.5e-6},
                        .end = Seconds{3.001e-6},
                        .bytes = Bytes{0},
                        .flops = Flops{2.5}});
    t.events.push_back({.rank = RankIndex{0},
                        .stream = Stream::communication,
                        .step = "bucket0:allreduce",
                        .layer = "bucket0",
                        .pass = "allreduce",
                        .micro_batch = 0,
                        .iteration = 0,
                        .start = Seconds{2e-6},
                        .end = Seconds{1.002e-3},
                        .bytes = Bytes{246824},
                        .flops = Flops{0}});
    t.counters.push_back(
        {.name = "memory rank 0", .unit = "bytes", .points = {{Seconds{0}, 1024}, {Seconds{1e-6}, 2048.5}}});
    return t;
}

/// In the order that Timeline promises. Names are short, empty, quoted, in other scripts, or very long; a fifth of the
/// events have no length, and with `crowded` ones of a stream overlap.
inline Timeline random_timeline(unsigned seed, std::size_t events, int ranks, bool crowded) {
    std::mt19937 dice(seed);
    const auto up_to = [&](int n) { return static_cast<int>(dice() % static_cast<unsigned>(n + 1)); };
    const std::vector<std::string> names{"conv1:forward", "",        "a,b\n\"c\"\\",
                                         "слой:прямой",   "層🙂", std::string(3000, 'x')};
    const auto name = [&] { return names[dice() % names.size()]; };
    Timeline t{.title = name(), .measured = dice() % 2 == 0, .ranks = ranks, .events = {}, .counters = {}};
    for (std::size_t i = 0; i < events; ++i) {
        // Thousandths of a nanosecond, so that rounding has something to do.
        const double start = up_to(crowded ? 40'000 : 2'000'000'000) * 1e-12;
        const double length = up_to(4) == 0 ? 0 : up_to(crowded ? 20'000 : 500'000) * 1e-12;
        t.events.push_back({.rank = RankIndex{up_to(ranks - 1)},
                            .stream = static_cast<Stream>(up_to(stream_count - 1)),
                            .step = name(),
                            .layer = name(),
                            .pass = name(),
                            .micro_batch = up_to(3),
                            .iteration = up_to(2),
                            .start = Seconds{start},
                            .end = Seconds{start + length},
                            .bytes = Bytes{up_to(1) * up_to(1'000'000) * 1e12},
                            .flops = Flops{up_to(100) / 3.0},
                            .flow = up_to(1) * up_to(9)});
    }
    std::ranges::stable_sort(t.events, [](const Event& a, const Event& b) {
        return std::tie(a.iteration, a.rank, a.start.value) < std::tie(b.iteration, b.rank, b.start.value);
    });
    for (int i = up_to(3); i > 0; --i) {
        Counter counter{.name = name(), .unit = i % 2 == 0 ? "bytes" : name(), .points = {}};
        for (int j = up_to(4); j > 0; --j)
            counter.points.emplace_back(Seconds{up_to(1000) * 1e-9}, up_to(99) / 7.0 - 5);
        t.counters.push_back(std::move(counter));
    }
    for (int i = up_to(3); i > 0; --i) {
        t.links.push_back({name(), name(), up_to(4), Bandwidth{up_to(99) / 7.0}, Bytes{up_to(9) * 1e12}, Bytes{0.5}});
    }
    return t;
}

/// Files hold whole nanoseconds, so a time may be off by half of one, and by what a double of that size cannot tell.
constexpr double half_ns = 0.5e-9 + 1e-15;

inline void expect_equal(const Event& a, const Event& b) {
    EXPECT_EQ(a.rank, b.rank);
    EXPECT_EQ(a.stream, b.stream);
    EXPECT_EQ(a.step, b.step);
    EXPECT_EQ(a.layer, b.layer);
    EXPECT_EQ(a.pass, b.pass);
    EXPECT_EQ(a.micro_batch, b.micro_batch);
    EXPECT_EQ(a.iteration, b.iteration);
    EXPECT_NEAR(a.start.value, b.start.value, half_ns);
    EXPECT_NEAR(a.end.value, b.end.value, half_ns);
    EXPECT_EQ(a.bytes, b.bytes);
    EXPECT_EQ(a.flops, b.flops);
    EXPECT_EQ(a.flow, b.flow);
}

inline void expect_equal(const Timeline& a, const Timeline& b) {
    EXPECT_EQ(a.title, b.title);
    EXPECT_EQ(a.measured, b.measured);
    EXPECT_EQ(a.ranks, b.ranks);
    ASSERT_EQ(a.events.size(), b.events.size());
    for (std::size_t i = 0; i < a.events.size(); ++i) {
        SCOPED_TRACE("event " + std::to_string(i));
        expect_equal(a.events[i], b.events[i]);
        if (testing::Test::HasFailure()) return;
    }
    ASSERT_EQ(a.counters.size(), b.counters.size());
    for (std::size_t i = 0; i < a.counters.size(); ++i) {
        EXPECT_EQ(a.counters[i].name, b.counters[i].name);
        EXPECT_EQ(a.counters[i].unit, b.counters[i].unit);
        ASSERT_EQ(a.counters[i].points.size(), b.counters[i].points.size());
        for (std::size_t j = 0; j < a.counters[i].points.size(); ++j) {
            EXPECT_NEAR(a.counters[i].points[j].first.value, b.counters[i].points[j].first.value, half_ns);
            EXPECT_EQ(a.counters[i].points[j].second, b.counters[i].points[j].second);
        }
    }
    EXPECT_EQ(a.links, b.links);
}

inline std::string path_of(const std::string& name) { return testing::TempDir() + "rehearse_trace_" + name; }

inline std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void put(const std::string& path, const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
}

}  // namespace rehearse::trace
