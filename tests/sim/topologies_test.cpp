// SPDX-License-Identifier: Apache-2.0
// Folded equals exact within 0.5 % wherever ranks are alike: every collective, every algorithm, every topology, with
// and without contention.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "core/error.hpp"
#include "fixture.hpp"
#include "sim/collective/price.hpp"
#include "sim/network/placement.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

std::map<std::string, Machine> machines(std::int64_t ranks) {
    const Dragonfly dragonfly{.groups = (ranks + 15) / 16,
                              .routers = 8,
                              .nodes = 2,
                              .local = {5.0_GBps, "test"},
                              .global = {6.0_GBps, "test"}};
    std::int64_t side = 1;  // the largest power of two that is no more than the root of `ranks`
    while (4 * side * side <= ranks) side *= 2;
    std::map<std::string, Machine> all{
        {"star", one_device_nodes(ranks, Star{})},
        {"fat tree", one_device_nodes(ranks, FatTree{{8, 8, 8}, {1, 1}})},
        {"tapered fat tree", one_device_nodes(ranks, FatTree{{8, 8, 8}, {4, 2}})},
        {"dragonfly", one_device_nodes(ranks, dragonfly)},
        {"torus", one_device_nodes(ranks, Torus{{side, (ranks + side - 1) / side}, {10.0_GBps, "test"}})}};
    if (ranks % 6 == 0) all.emplace("nodes of six", summit_like(ranks / 6));
    return all;
}

struct Case {
    CollectiveKind kind;
    std::string algorithm;
};

std::vector<Case> cases(std::int64_t ranks) {
    std::vector<Case> all;
    for (const CollectiveKind kind : collective_kinds()) {
        for (const AlgorithmName& one : algorithms(kind)) {
            // Three collectives send these very messages. SimGrid takes minutes for one of very many ranks.
            if (one.name == "pairwise" && ranks > 256 && kind != CollectiveKind::all_to_all) continue;
            if (one.name == "direct" && ranks > 64) continue;  // all at once
            const bool nested = one.name.find('(') != std::string_view::npos;
            all.push_back({kind, nested ? "hierarchical(ring,halving)" : std::string{one.name}});
        }
    }
    return all;
}

class EveryTopology : public testing::TestWithParam<std::int64_t> {};

TEST_P(EveryTopology, FoldedIsExact) {
    const std::int64_t ranks = GetParam();
    if (ranks > 24 && std::getenv("REHEARSE_LONG") == nullptr)
        GTEST_SKIP() << "up to ten minutes: ctest -L long runs it";
    const Mesh mesh{{{"data", ranks}}};
    int compared = 0;
    for (const auto& [topology, machine] : machines(ranks)) {
        for (const Case& one : cases(ranks)) {
            Call call{.kind = one.kind, .axis = 0, .elements = ranks * 20'000, .type = DataType::f32};
            try {
                call.algorithm = parse_algorithm(one.algorithm, one.kind);
                const double exact = collective_time(call, mesh, machine, Mode::exact).value;
                const double folded = collective_time(call, mesh, machine, Mode::automatic).value;
                EXPECT_NEAR(folded / exact, 1, 0.005)
                    << to_string(one.kind) << " " << one.algorithm << " of " << ranks << " on a " << topology;
                ++compared;
            } catch (const InputError&) {  // hierarchical on one device a node, a torus of a prime
            }
        }
    }
    EXPECT_GT(compared, 50);
}

INSTANTIATE_TEST_SUITE_P(Ranks, EveryTopology, testing::Values(4, 6, 8, 16, 24));
INSTANTIATE_TEST_SUITE_P(ManyRanks, EveryTopology, testing::Values(32, 48, 64, 96, 128, 256));
INSTANTIATE_TEST_SUITE_P(MostRanks, EveryTopology, testing::Values(384, 512));

// A tree of 4 x 4 nodes whose leaves have one up-link of a NIC's rate each. A ring of four nodes in one leaf takes
// 10 MB / 10 GB/s + 2 us a round; scattered, each on a leaf of its own, two switches of 1 us more. Halving of eight
// nodes sends 20 MB to the next, 10 MB two and 5 MB four nodes on: contiguous, the last four share an up-link;
// scattered, two do in the second and third round.
TEST(Placement, DecidesWhoSharesLinks) {
    const Machine machine = one_device_nodes(16, FatTree{{4, 4}, {4}});
    EXPECT_TRUE(placed_nodes(Placement::contiguous, machine, 4).empty());
    EXPECT_EQ(placed_nodes(Placement::scattered, machine, 4), (std::vector<std::int64_t>{0, 4, 8, 12}));
    const auto time = [&](std::int64_t ranks, const char* algorithm, Placement placement, Mode mode) {
        const Schedule schedule = data_schedule(ranks, {all_reduce_step(0, 10'000'000, parse_algorithm(algorithm))});
        return step_time(
                   simulate(schedule, machine, {.mode = mode, .nodes = placed_nodes(placement, machine, ranks, 5)})
                       .timeline)
            .value;
    };
    for (const Mode mode : {Mode::exact, Mode::folded}) {
        EXPECT_NEAR(time(4, "ring", Placement::contiguous, mode), 6 * 1.002e-3, 1e-9);
        EXPECT_NEAR(time(4, "ring", Placement::scattered, mode), 6 * 1.004e-3, 1e-9);
        EXPECT_NEAR(time(8, "halving", Placement::contiguous, mode), 2 * (2.002e-3 + 1.002e-3 + 2.004e-3), 1e-8);
        EXPECT_NEAR(time(8, "halving", Placement::scattered, mode), 2 * (2.002e-3 + 2.004e-3 + 1.004e-3), 1e-8);
    }
    EXPECT_NEAR(
        time(8, "halving", Placement::random, Mode::folded) / time(8, "halving", Placement::random, Mode::exact), 1,
        0.005);
}

TEST(Placement, AtRandomIsNodesOfTheMachineOnceEachAndRepeatable) {
    const Machine machine = summit_like(100);
    const std::vector<std::int64_t> nodes = placed_nodes(Placement::random, machine, 60 * 6, 3);
    EXPECT_EQ(nodes, placed_nodes(Placement::random, machine, 60 * 6, 3));
    EXPECT_NE(nodes, placed_nodes(Placement::random, machine, 60 * 6, 4));
    std::vector<std::int64_t> sorted = nodes;
    std::ranges::sort(sorted);
    EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end());
    EXPECT_EQ(sorted.size(), 60U);
    EXPECT_LT(sorted.back(), 100);
    EXPECT_GE(sorted.front(), 0);
}

}  // namespace
}  // namespace rehearse::sim
