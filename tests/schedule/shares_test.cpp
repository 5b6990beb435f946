// SPDX-License-Identifier: Apache-2.0
// Uneven batches: who gets how many samples, and what the programs of unlike shares are.
#include "schedule/axes/shares.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "tests/schedule/examples.hpp"

namespace rehearse::schedule {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

bool always(std::int64_t /*samples*/) { return true; }

/// Every way to share `units` among copies of times[c](n), of at most most[c]; the shortest of the longest times.
double best_of_all(const std::vector<std::vector<double>>& times, const std::vector<std::int64_t>& most,
                   std::int64_t units, std::size_t copy = 0) {
    double best = 1e99;
    for (std::int64_t n = 1; n <= std::min(units, most[copy]); ++n) {
        const double own = times[copy][static_cast<std::size_t>(n)];
        if (copy + 1 < times.size()) {
            best = std::min(best, std::max(own, best_of_all(times, most, units - n, copy + 1)));
        } else if (n == units) {
            best = std::min(best, own);
        }
    }
    return best;
}

// Two kinds of two and one copies, whose times grow by random steps; of the second kind with little memory.
TEST(BalanceBatch, IsTheBestOfAllWays) {
    constexpr std::int64_t units = 9, unit = 2;
    for (std::uint32_t seed = 1; seed < 60; ++seed) {
        std::uint32_t state = seed;
        std::vector<std::vector<double>> grown(2, std::vector<double>(units + 1));
        for (std::vector<double>& times : grown) {
            for (std::size_t n = 1; n < times.size(); ++n) {
                times[n] = times[n - 1] + static_cast<double>((state = state * 1664525U + 1013904223U) >> 29U);
            }
        }
        const std::int64_t room = 1 + seed % 4;
        const auto kind = [&](std::size_t k, std::int64_t copies, std::int64_t most) {
            return AlikeCopies{copies,
                               [&grown, k](std::int64_t n) { return grown[k][static_cast<std::size_t>(n / unit)]; },
                               [most](std::int64_t n) { return n <= most * unit; }};
        };
        const std::vector<AlikeCopies> kinds{kind(0, 2, units), kind(1, 1, room)};
        const std::vector<std::int64_t> shares = balance_batch(kinds, units * unit, unit);
        ASSERT_EQ(shares.size(), 3U);
        EXPECT_EQ(std::accumulate(shares.begin(), shares.end(), std::int64_t{0}), units * unit);
        EXPECT_LE(shares[2], room * unit);
        EXPECT_LE(std::abs(shares[0] - shares[1]), unit);
        double longest = 0;
        for (std::size_t c = 0; c < 3; ++c) {
            EXPECT_TRUE(shares[c] > 0 && shares[c] % unit == 0);
            longest = std::max(longest, grown[c / 2][static_cast<std::size_t>(shares[c] / unit)]);
        }
        EXPECT_EQ(longest, best_of_all({grown[0], grown[0], grown[1]}, {units, units, room}, units)) << "seed " << seed;
    }
}

TEST(BalanceBatch, IsInProportionToSpeed) {
    const auto at_speed = [](double speed) {
        return [speed](std::int64_t n) { return static_cast<double>(n) / speed; };
    };
    EXPECT_THAT(balance_batch(std::vector<AlikeCopies>{{2, at_speed(3), always}, {2, at_speed(1), always}}, 32, 1),
                ElementsAre(12, 12, 4, 4));
    // The fast ones have room for 10 each only, whatever that costs.
    const auto ten = [](std::int64_t n) { return n <= 10; };
    EXPECT_THAT(balance_batch(std::vector<AlikeCopies>{{2, at_speed(3), ten}, {2, at_speed(1), always}}, 32, 1),
                ElementsAre(10, 10, 6, 6));
    // Nobody has room: as if all had, and what is too much is told by memory_use.
    const auto never = [](std::int64_t) { return false; };
    EXPECT_THAT(balance_batch(std::vector<AlikeCopies>{{1, at_speed(3), never}, {1, at_speed(1), never}}, 8, 2),
                ElementsAre(6, 2));
}

std::string refusal_of(const auto& make) {
    try {
        make();
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

TEST(CutBatch, KeepsTheProportions) {
    EXPECT_THAT(cut_batch(std::vector<std::int64_t>{3, 1}, 8, 1), ElementsAre(6, 2));
    EXPECT_THAT(cut_batch(std::vector<std::int64_t>{2, 2, 4}, 24, 2), ElementsAre(6, 6, 12));
    EXPECT_THAT(refusal_of([] { cut_batch(std::vector<std::int64_t>{3, 1}, 10, 1); }), HasSubstr("8 or 12 would do"));
    EXPECT_THAT(refusal_of([] { cut_batch(std::vector<std::int64_t>{3, 1}, 12, 2); }), HasSubstr("8 or 16 would do"));
    EXPECT_THAT(refusal_of([] { cut_batch(std::vector<std::int64_t>{3, 1}, 2, 1); }), HasSubstr("4 would do"));
}

/// Batches of the computations of a class.
std::vector<std::int64_t> batches(const RankClass& rank_class) {
    std::vector<std::int64_t> all;
    for (const Step& step : rank_class.steps) {
        const auto* compute = std::get_if<Compute>(&step.action);
        if (compute != nullptr && std::ranges::find(all, compute->problem.batch) == all.end())
            all.push_back(compute->problem.batch);
    }
    return all;
}

TEST(Shares, MakeAClassANumberOfSamples) {
    const Schedule s = schedule_of(tower(4), "data=4:shares=2x3+2x1", 4, 4);
    EXPECT_EQ(global_batch(s), 16);
    EXPECT_THAT(s.shares.samples, ElementsAre(6, 6, 2, 2));
    ASSERT_EQ(s.classes.size(), 2U);
    EXPECT_THAT(batches(s.classes[0]), ElementsAre(6));
    EXPECT_THAT(batches(s.classes[1]), ElementsAre(2));
    EXPECT_EQ(class_of(s, RankIndex{1}), 0);
    EXPECT_EQ(class_of(s, RankIndex{2}), 1);
    EXPECT_EQ(first_sample(s, 3), 14);
    EXPECT_EQ(s.classes[0].steps.size(), s.classes[1].steps.size());
    EXPECT_EQ(schedule_of(tower(4), "data=4:shares=4x1", 4, 4).classes.size(), 1U) << "alike after all";
}

// Stages outside, shares inside: class 2 s + k; what a stage sends is of its copy's micro-batches.
TEST(Shares, GoWithStages) {
    const Schedule s = schedule_of(tower(4), "pipe=2:microbatches=2,data=2:shares=3+1", 4, 4);
    ASSERT_EQ(s.classes.size(), 4U);
    for (RankIndex rank{0}; rank < 4; ++rank) EXPECT_EQ(class_of(s, rank), rank);
    EXPECT_THAT(batches(s.classes[2]), ElementsAre(3));
    EXPECT_THAT(batches(s.classes[3]), ElementsAre(1));
    const auto sends = [](const RankClass& rank_class) {
        for (const Step& step : rank_class.steps) {
            if (const auto* send = std::get_if<Send>(&step.action)) return send->bytes;
        }
        return Bytes{};
    };
    EXPECT_EQ(sends(s.classes[0]), Bytes{3 * 8 * 4.0});
    EXPECT_EQ(sends(s.classes[1]), Bytes{8 * 4.0});
}

/// Nodes of two devices, of the first kind three times as fast as of the second, which has memory for little.
Machine unlike(Bytes memory) {
    Machine machine = sixes();
    const auto device = [](const char* name, double flops, Bytes bytes) {
        return DeviceClass{.name = name,
                           .like = {},
                           .peak = {{DataType::f32, {FlopRate{flops}, "test"}}},
                           .memory = {bytes, "test"},
                           .memory_bandwidth = {Bandwidth{1e18}, "test"},
                           .launch = {Seconds{0}, "test"},
                           .efficiencies = {},
                           .measured = {},
                           .model = {},
                           .tiles = {}};
    };
    machine.classes = {device("fast", 3e9, memory), device("slow", 1e9, Bytes{1e12})};
    machine.nodes = {node_of(2, 1), node_of(2, 1)};
    for (Vertex& vertex : machine.nodes[1].vertices) {
        if (vertex.kind == VertexKind::device) vertex.device_class = 1;
    }
    return machine;
}

TEST(Shares, AreBalancedBySpeedAndMemory) {
    const auto samples = [](const Machine& machine, const char* plan, std::int64_t devices) {
        return make_schedule(tower(8), machine, parse_plan(plan), {.devices = devices, .batch_per_device = 8})
            .shares.samples;
    };
    EXPECT_THAT(samples(unlike(Bytes{1e12}), "data:shares=balanced", 4), ElementsAre(12, 12, 4, 4));
    // Each copy has a stage on a fast device and one on a slow one: alike, so nothing is uneven.
    EXPECT_THAT(samples(unlike(Bytes{1e12}), "pipe=2,data=2:shares=balanced", 4), testing::IsEmpty());
    // Copies of two stages, one on fast devices and one on slow ones.
    EXPECT_THAT(samples(unlike(Bytes{1e12}), "data=2:shares=balanced,pipe=2:microbatches=2", 4), ElementsAre(12, 4));
    // Of ten samples a fast device holds the activations, of eleven no more.
    const Schedule ten =
        make_schedule(tower(8), unlike(Bytes{1e12}), parse_plan("data"), {.devices = 4, .batch_per_device = 10});
    EXPECT_THAT(samples(unlike(ten.memory_peak), "data:shares=balanced", 4), ElementsAre(10, 10, 6, 6));
}

TEST(Shares, AreRefusedWithWhatDoesNotGoWithThem) {
    for (const auto& [plan, what] : {std::pair{"data=3:shares=3+1", "shares are of 2 copies, but data=3"},
                                     {"data:shares=3+1:kfac=1", "kfac"},
                                     {"data:shares=balanced:dense=shared", "dense=shared"},
                                     {"data:shares=3+1:microbatch=2", "microbatches"},
                                     {"data:shares=3+1:allreduce=adasum", "adasum"},
                                     {"data:shares=3+x", "shares"}}) {
        EXPECT_THAT(refusal_of([&, plan = plan] { parse_plan(plan); }), HasSubstr(what)) << plan;
    }
    EXPECT_THAT(refusal_of([] { schedule_of(tower(4), "data:shares=3+1", 3); }), HasSubstr("there are 3"));
}

}  // namespace
}  // namespace rehearse::schedule
