// SPDX-License-Identifier: Apache-2.0
// Folded equals exact within 0.5 % wherever ranks are alike: every collective, every algorithm, every topology, with
// and without contention.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "core/error.hpp"
#include "fixture.hpp"
#include "sim/price.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

std::map<std::string, Machine> machines(std::int64_t ranks) {
    const Dragonfly dragonfly{.groups = (ranks + 15) / 16,
                              .routers = 8,
                              .nodes = 2,
                              .local = {5.0_GBps, "test"},
                              .global = {6.0_GBps, "test"}};
    const std::int64_t side = ranks <= 4 ? 2 : ranks <= 16 ? 4 : ranks <= 64 ? 8 : ranks <= 256 ? 16 : 23;
    std::map<std::string, Machine> all{{"star", one_device_nodes(ranks, Star{})},
                                       {"fat tree", one_device_nodes(ranks, FatTree{{8, 8, 8}, {1, 1}})},
                                       {"tapered fat tree", one_device_nodes(ranks, FatTree{{8, 8, 8}, {4, 2}})},
                                       {"dragonfly", one_device_nodes(ranks, dragonfly)},
                                       {"torus", one_device_nodes(ranks, Torus{{side, side}, {10.0_GBps, "test"}})}};
    if (ranks % 6 == 0) all.emplace("nodes of six", summit_like(ranks / 6));
    return all;
}

struct Case {
    CollectiveKind kind;
    std::string algorithm;
};

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const CollectiveKind kind : collective_kinds()) {
        for (const AlgorithmName& one : algorithms(kind)) {
            const bool nested = one.name.find('(') != std::string_view::npos;
            all.push_back({kind, nested ? "hierarchical(ring,halving)" : std::string{one.name}});
        }
    }
    return all;
}

class EveryTopology : public testing::TestWithParam<std::int64_t> {};

TEST_P(EveryTopology, FoldedIsExact) {
    const std::int64_t ranks = GetParam();
    if (ranks > 24 && std::getenv("REHEARSE_LONG") == nullptr) GTEST_SKIP() << "minutes: ctest -L long runs it";
    const Mesh mesh{{{"data", ranks}}};
    int compared = 0;
    for (const auto& [topology, machine] : machines(ranks)) {
        for (const Case& one : cases()) {
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
INSTANTIATE_TEST_SUITE_P(ManyRanks, EveryTopology, testing::Values(32, 48, 64, 96, 128, 256, 384, 512));

}  // namespace
}  // namespace rehearse::sim
