// SPDX-License-Identifier: Apache-2.0
// One collective of each kind by itself: counted rounds against SimGrid, and against what can be worked out by hand.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>

#include "core/collectives/library.hpp"
#include "fixture.hpp"
#include "meshes.hpp"
#include "sim/collective/in_step.hpp"
#include "sim/collective/price.hpp"
#include "sim/modes/exact_collectives.hpp"
#include "sim/network/node_rings.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

// hierarchical(A,B) is agreement_test.cpp's.
struct Which {
    CollectiveKind kind;
    std::string algorithm;
};
void PrintTo(const Which& which, std::ostream* out) { *out << to_string(which.kind) << " " << which.algorithm; }

std::vector<Which> every_collective() {
    std::vector<Which> all{{CollectiveKind::all_reduce, "adasum"}};
    for (const CollectiveKind kind : collective_kinds()) {
        for (const AlgorithmName& algorithm : algorithms(kind)) {
            if (algorithm.name.find('(') == std::string_view::npos) all.push_back({kind, std::string{algorithm.name}});
        }
    }
    return all;
}

class EveryCollective : public testing::TestWithParam<Which> {
protected:
    static Seconds time(const Machine& machine, std::int64_t ranks, std::int64_t elements, Mode mode) {
        Mesh mesh;
        mesh.axes = {{"data", ranks}};
        const Which& which = GetParam();
        return collective_time({which.kind, 0, elements, DataType::f32, parse_algorithm(which.algorithm, which.kind)},
                               mesh, machine, mode);
    }
    // Relative to SimGrid, over large and small data.
    static double worst_error(const Machine& machine, std::int64_t ranks, Mode mode) {
        double worst = 0;
        for (const std::int64_t elements : {10'000'000, 1'000'003, 20'011}) {
            const Seconds exact = time(machine, ranks, elements, Mode::exact);
            worst = std::max(worst, std::abs(time(machine, ranks, elements, mode) / exact - 1));
        }
        return worst;
    }
};

TEST_P(EveryCollective, IsCountedExactlyWhereRanksAreAlike) {
    // Powers of two on a star. Sizes are taken at their mean: in a chunk of 20,011 / 64 elements, one more or less is
    // 0.3 % of the 0.13 us that it takes, of rounds of 2.1 us and more.
    // Of direct and grouped a rank has 63 such chunks in one round.
    const bool in_one = GetParam().algorithm == "direct" || GetParam().algorithm == "grouped";
    const double bound = in_one ? 1e-3 : 2e-4;
    for (const std::int64_t ranks : {4, 8, 16, 32, 64}) {
        EXPECT_LE(worst_error(one_device_nodes(ranks, Star{}), ranks, Mode::folded), bound) << ranks;
    }
}

// The band of counting alone is what was measured, not derived: ranks fall out of step on shared NICs, and where their
// number is no power of two. Worst are double trees and doubling without regard to nodes; and turns, of which half the
// ranks of a node are idle while the others share its NICs, and those that end first meet their next ones early.
TEST_P(EveryCollective, IsNearToSimGridOnNodesOfSixGpus) {
    const double bound = GetParam().algorithm == "turns" ? 0.3 : 0.15;
    for (const std::int64_t ranks : {4, 6, 8, 12, 24, 48}) {
        EXPECT_LE(worst_error(summit_like((ranks + 5) / 6), ranks, Mode::folded), bound) << ranks;
    }
}

TEST_P(EveryCollective, IsFollowedBySimGridWhileItIsSmall) {
    for (const std::int64_t ranks : {5, 6, 7, 9}) {
        EXPECT_LE(worst_error(one_device_nodes(ranks, Star{}), ranks, Mode::automatic), 2e-4) << ranks;
    }
}

INSTANTIATE_TEST_SUITE_P(All, EveryCollective, testing::ValuesIn(every_collective()));

// Nodes that are far apart hold a ring up, and its other ranks are out of step with them for as many rounds as they are
// away. No two of its messages meet, so that counting tells of each rank when it ends, with nobody to follow it.
TEST(CollectiveTime, OfARingOutOfStepIsCountedExactly) {
    const Machine machine = summit_like(20);
    const Mesh mesh{{{"data", 120}}};
    const Wiring wiring{machine};
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
        const Begun begun{{kind, 0, 120 * 37 * 1000, DataType::f32, parse_algorithm("ring", kind)}, Seconds{0}};
        const std::vector<double> start(120, 0);
        Collectives counting{mesh, wiring, 0};
        Collectives::Progress progress;
        progress.ready = start;
        counting.run(begun.call, begun.earliest, progress);
        EXPECT_THAT(progress.ready,
                    testing::Pointwise(testing::DoubleNear(1e-9), follow(mesh, {&begun, 1}, wiring, start)));
    }
}

// Two nodes of four devices, which reach each other at 50 GB/s, each with a NIC of its own of 10 GB/s; 32 MB. By rings
// a round is 1 MB by each NIC, and three within the node beside it; one ring through all of them would take each NIC in
// turn, and stages one after another leave links of one kind idle.
TEST(CollectiveTime, RingsUseEveryCardOfANode) {
    Machine machine = one_device_nodes(2, Star{});
    NodeKind& kind = machine.nodes[0];
    kind.vertices.clear();
    kind.links.clear();
    for (int d = 0; d < 4; ++d) kind.vertices.push_back({fmt::format("gpu{}", d), VertexKind::device, 0});
    for (int n = 0; n < 4; ++n) kind.vertices.push_back({fmt::format("nic{}", n), VertexKind::nic, -1});
    kind.vertices.push_back({"switch", VertexKind::bridge, -1});
    for (int d = 0; d < 4; ++d) {
        kind.links.push_back(node_link(d, 4 + d, 50.0_GBps));
        kind.links.push_back(node_link(d, 8, 50.0_GBps));
    }
    const Mesh mesh{{{"data", 8}}};
    const auto time = [&](const char* algorithm, Mode mode) {
        return collective_time({.elements = 8'000'000, .algorithm = parse_algorithm(algorithm)}, mesh, machine, mode)
            .value;
    };
    for (const Mode mode : {Mode::exact, Mode::folded}) {
        EXPECT_NEAR(time("rings", mode), 14 * (2e-6 + 1e6 / 10e9), 1e-9);
        EXPECT_NEAR(time("ring", mode), 14 * (2e-6 + 4e6 / 10e9), 1e-8);
        EXPECT_NEAR(time("hierarchical(ring,ring)", mode), 6 * 8e6 / 50e9 + 2 * (2e-6 + 4e6 / 10e9), 1e-8);
    }
}

// Each of four devices reaches the others at 100 GB/s each. Six rings, each over half of a link, fill all three of a
// device: 240 MB in chunks of 60 take 6 rounds of 1 us + 60 MB / 300 GB/s. One ring would have one link of a device.
TEST(NodeRings, FillAllLinksBetweenFourDevices) {
    Machine machine = mesh_of_links(2, 4, all_pairs(4, 100));
    const auto time = [&](CollectiveKind kind, const char* algorithm, std::int64_t ranks, Mode mode) {
        const Call call{kind, 0, 60'000'000, DataType::f32, parse_algorithm(algorithm, kind)};
        return collective_time(call, {{{"data", ranks}}}, machine, mode).value;
    };
    using enum CollectiveKind;
    const double round = 1e-6 + 60e6 / 300e9;
    for (const Mode mode : {Mode::exact, Mode::folded}) {
        EXPECT_NEAR(time(all_reduce, "ring", 4, mode), 6 * round, 1e-9);
        EXPECT_NEAR(time(all_reduce, "rings", 4, mode), 6 * round, 1e-9);
        EXPECT_NEAR(time(reduce_scatter, "ring", 4, mode), 3 * round, 1e-9);
        EXPECT_NEAR(time(all_gather, "ring", 4, mode), 3 * round, 1e-9);
        // Between the nodes each device sends and receives half of its chunk twice by its NIC of 10 GB/s.
        const double across = 2 * (2e-6 + 30e6 / 10e9);
        EXPECT_NEAR(time(all_reduce, "hierarchical(ring,halving)", 8, mode), 6 * round + across, 1e-8);
    }
    machine.inside.one_ring = true;
    EXPECT_NEAR(time(all_reduce, "ring", 4, Mode::folded), 6 * (1e-6 + 60e6 / 100e9), 1e-9);
}

// Two groups of four on one node of eight, joined all to all, go on at the same time: pairs of different groups have
// links of their own.
TEST(NodeRings, ServeAllGroupsOfANode) {
    const Machine machine = mesh_of_links(1, 8, all_pairs(8, 100));
    const Mesh mesh{{{"data", 2}, {"tensor", 4}}};
    for (const int axis : {0, 1}) {
        const Call call{.axis = axis, .elements = 60'000'000, .algorithm = {}};
        const std::int64_t n = size_of(mesh, axis);
        const double chunk = 240e6 / static_cast<double>(n), links = static_cast<double>(n - 1);
        for (const Mode mode : {Mode::exact, Mode::folded}) {
            EXPECT_NEAR(collective_time(call, mesh, machine, mode).value,
                        2 * static_cast<double>(n - 1) * (1e-6 + chunk / (links * 100e9)), 1e-9);
        }
    }
}

// NCCL lays 1, 2, 4, 2, 4 and 6 rings through the
// first 2, 3, 4, 6, 7 and 8 of them (measured by vTrain, MIT: 22.6, 45.1, 85.4, 45.7, 87.0 and 134.5 GB/s); through
// five none, as the fifth has one neighbour: it goes in the order of ranks, over PCIe.
TEST(NodeRings, AreAsManyAsNcclsInACubeMesh) {
    const Machine machine = mesh_of_links(1, 8, cube_mesh());
    for (const auto& [devices, rings] : std::map<std::int64_t, int>{{2, 1}, {3, 2}, {4, 4}, {6, 2}, {7, 4}, {8, 6}}) {
        const double n = static_cast<double>(devices), bytes = 420e6;
        const Call call{.elements = 105'000'000, .algorithm = {}};
        for (const Mode mode : {Mode::exact, Mode::folded}) {
            EXPECT_NEAR(collective_time(call, {{{"data", devices}}}, machine, mode).value,
                        2 * (n - 1) * (1e-6 + bytes / n / (rings * 25e9)), 1e-8)
                << devices;
        }
    }
    const Wiring wiring{machine};
    EXPECT_EQ(groups_along({{{"data", 5}}}, 0, {}, wiring).shape.rings, nullptr);
}

// One ring fills a device's link to the switch.
TEST(NodeRings, AreOneOnASwitch) {
    const Machine machine = four_device_nodes(1);
    const Wiring wiring{machine};
    EXPECT_EQ(groups_along({{{"data", 4}}}, 0, {}, wiring).shape.rings, nullptr);
}

// Whatever the rates, no link of a mesh carries more than it can, each ring comes to all devices, and all of the data
// goes; more than by any one ring.
TEST(NodeRings, KeepToWhatLinksCarry) {
    std::mt19937 random{7};
    std::uniform_int_distribution<int> rate{1, 4};
    for (int trial = 0; trial < 50; ++trial) {
        const int n = 3 + trial % 4;
        std::vector<double> capacity(static_cast<std::size_t>(n * n));
        std::vector<std::vector<std::int64_t>> cycles;
        for (int a = 0; a < n; ++a) {
            for (int b = 0; b < a; ++b) {
                const auto forth = static_cast<std::size_t>(a * n + b), back = static_cast<std::size_t>(b * n + a);
                capacity[forth] = capacity[back] = rate(random);
            }
        }
        std::vector<std::int64_t> order(static_cast<std::size_t>(n));
        std::iota(order.begin(), order.end(), 0);
        do cycles.push_back(order);
        while (std::next_permutation(order.begin() + 1, order.end()));
        const std::vector<double> carried = most_through(cycles, capacity);
        std::vector<double> load(capacity.size());
        double all = 0, best = 0;
        for (std::size_t c = 0; c < cycles.size(); ++c) {
            double least = 1e9;
            for (std::size_t i = 0; i < cycles[c].size(); ++i) {
                const auto pair = static_cast<std::size_t>(cycles[c][i] * n + cycles[c][(i + 1) % cycles[c].size()]);
                load[pair] += carried[c];
                least = std::min(least, capacity[pair]);
            }
            EXPECT_GE(carried[c], 0);
            all += carried[c];
            best = std::max(best, least);
        }
        for (std::size_t pair = 0; pair < load.size(); ++pair) EXPECT_LE(load[pair], capacity[pair] + 1e-9);
        EXPECT_GE(all, 2 * best - 1e-9);  // links carry as much back: the same ring the other way round
    }
}

// Four devices joined by 10 GB/s each, 4 MB: NCCL posts all of an all-to-all that stays in a node, over three links at
// once; before 2.7, by another library and between nodes, rounds go over one after the other.
TEST(AllToAll, IsPostedTogetherByNcclInANode) {
    const auto time = [](const std::string& name, std::int64_t version, std::int64_t nodes) {
        Machine machine = mesh_of_links(nodes, 4, all_pairs(4, 10));
        CollectiveLibrary library;
        library.name = name;
        machine.collectives.library = std::make_shared<const CollectiveLibrary>(library);
        machine.collectives.version = version;
        Mesh mesh;
        mesh.axes = {{"data", 4 * nodes}};
        const Call call{CollectiveKind::all_to_all, 0, 1'000'000, DataType::f32, Algorithm{.name = "pairwise"}};
        std::array<double, 2> times{};
        for (const Mode mode : {Mode::exact, Mode::folded}) {
            times[mode == Mode::exact ? 0 : 1] = collective_time(call, mesh, machine, mode).value;
        }
        EXPECT_NEAR(times[0] / times[1], 1, 1e-3);
        return times[0];
    };
    const double block = 1e6 / 10e9;
    EXPECT_NEAR(time("nccl", 20700, 1), block, 0.1 * block);
    EXPECT_NEAR(time("nccl", 0, 1), block, 0.1 * block);
    EXPECT_NEAR(time("nccl", 20600, 1), 3 * block, 0.1 * block);
    EXPECT_NEAR(time("rccl", 21000, 1), 3 * block, 0.1 * block);
    EXPECT_DOUBLE_EQ(time("nccl", 20700, 2), time("nccl", 20600, 2));
}

// On a star of 10 GB/s with 2 us from NIC to NIC, 8 ranks, 4 MB.
TEST(CollectiveTime, IsWhatCanBeWorkedOutByHand) {
    using enum CollectiveKind;
    const Machine machine = one_device_nodes(8, Star{});
    Mesh mesh;
    mesh.axes = {{"data", 8}};
    const auto time = [&](CollectiveKind kind, const char* algorithm) {
        return collective_time({kind, 0, 1'000'000, DataType::f32, parse_algorithm(algorithm, kind)}, mesh, machine,
                               Mode::exact)
            .value;
    };
    const double whole = 4e6 / 10e9, latency = 2e-6;
    const double ring = 7 * (latency + whole / 8);
    EXPECT_NEAR(time(reduce_scatter, "ring"), ring, 1e-9);
    EXPECT_NEAR(time(reduce_scatter, "pairwise"), ring, 1e-9);
    EXPECT_NEAR(time(reduce_scatter, "halving"), 3 * latency + 7 * whole / 8, 1e-9);
    EXPECT_NEAR(time(all_gather, "ring"), ring, 1e-9);
    EXPECT_NEAR(time(all_gather, "doubling"), 3 * latency + 7 * whole / 8, 1e-9);
    EXPECT_NEAR(time(broadcast, "tree"), 3 * (latency + whole), 1e-9);
    EXPECT_NEAR(time(broadcast, "scatter"), 3 * latency + 7 * whole / 8 + ring, 1e-9);
    // 30 pieces of 2^15 elements or a little more; 7 hops.
    EXPECT_NEAR(time(broadcast, "chain"), (30 + 6) * (latency + whole / 30), 1e-8);
    EXPECT_NEAR(time(all_to_all, "pairwise"), ring, 1e-9);
    EXPECT_NEAR(time(all_to_all, "turns"), 2 * ring, 1e-9);
    EXPECT_NEAR(time(all_to_all, "grouped"), latency + 7 * whole / 8, 1e-9);
    EXPECT_NEAR(time(all_to_all, "bruck"), 3 * (latency + whole / 2), 1e-9);
    EXPECT_NEAR(time(all_reduce, "ring"), 2 * ring, 1e-9);
    EXPECT_NEAR(time(all_reduce, "rings"), 2 * ring, 1e-9);
    EXPECT_NEAR(time(all_reduce, "direct"), 2 * (latency + 7 * whole / 8), 1e-9);
    // 2 x 4: every NIC carries both halves. Reducing, half A: 3 rounds of 1/8 along rows, 1 of 1/16 along columns;
    // half B: 1 of 1/4, 3 of 1/16. Each round lasts as long as its NIC's two messages; then the same back.
    const double reduce = 4 * latency + whole * (2 + 4 + 2 * (2 + 1) + 1 + 1) / 16;
    EXPECT_NEAR(time(all_reduce, "torus"), 2 * reduce, 1e-9);
    // Halves, quarters, eighths and back; dot products by doubling among 2, 4 and 8: 1 + 2 + 3 rounds of 12 bytes.
    EXPECT_NEAR(time(all_reduce, "adasum"), 12 * latency + 2 * 7 * whole / 8 + 6 * 12 / 10e9, 1e-9);
}

// Ranks in step, as very many are priced, against ranks that are followed one by one.
double in_step_over_followed(const Machine& machine, const Call& call, std::int64_t ranks) {
    const Mesh mesh{{{"data", ranks}}};
    const Wiring wiring{machine};
    InStep in_step{mesh, wiring};
    Collectives followed{mesh, wiring, 0};
    Collectives::Progress progress;
    progress.ready.resize(static_cast<std::size_t>(ranks));
    followed.run(call, Seconds{0}, progress);
    EXPECT_EQ(in_step.messages(call), followed.messages(call));
    EXPECT_NEAR(in_step.sent(call).value, followed.sent(call, RankIndex{0}).value,
                1e-4 * followed.sent(call, RankIndex{0}).value);
    return in_step.time(call).value / std::ranges::max(progress.ready);
}

TEST_P(EveryCollective, InStepIsTheSameWhereRanksAreAlike) {
    const Which& which = GetParam();
    if (which.algorithm == "adasum")
        GTEST_SKIP() << "its dot products are sums of few elements, which InStep knows not apart";
    for (const std::int64_t ranks : {4, 16, 64}) {
        const Call call{which.kind, 0, 1'000'003, DataType::f32, parse_algorithm(which.algorithm, which.kind)};
        EXPECT_NEAR(in_step_over_followed(one_device_nodes(ranks, Star{}), call, ranks), 1, 1e-6) << ranks;
    }
}

// Waiting for the slowest message of each round can only take longer. How much was measured, not derived: what ranks
// gain by going ahead, some of the latency of each round.
TEST(InStep, IsALittleLongerThanFollowingEachRank) {
    for (const char* algorithm : {"hierarchical(ring,halving)", "hierarchical(ring,doubling)"}) {
        for (const std::int64_t nodes : {8, 40, 324}) {
            const Call call{.elements = 12'500'000, .algorithm = parse_algorithm(algorithm)};
            ASSERT_TRUE(InStep::serves(call));
            const double ratio = in_step_over_followed(summit_like(nodes), call, 6 * nodes);
            EXPECT_GE(ratio, 1 - 1e-6) << algorithm << " " << nodes;
            EXPECT_LE(ratio, 1.02) << algorithm << " " << nodes;
        }
    }
}

// A link at all of its bandwidth changes nothing but that nodes may not be taken to be alike: each message is counted.
TEST(InStep, CountsNodesThatAreAlikeAsItCountsMessages) {
    for (const char* across : {"halving", "doubling", "tree"}) {
        for (const std::int64_t nodes : {2, 3, 18, 19, 41}) {
            const Machine machine = summit_like(nodes);
            const Call call{.elements = 1'000'003,
                            .algorithm = parse_algorithm(fmt::format("hierarchical(ring,{})", across))};
            const Mesh mesh{{{"data", 6 * nodes}}};
            const std::vector<Degraded> whole{{"node0:nic0:up", 1}};
            const Wiring alike{machine}, apart{machine, nominal, whole};
            ASSERT_TRUE(alike.nodes_are_alike());
            ASSERT_FALSE(apart.nodes_are_alike());
            InStep by_node{mesh, alike}, by_message{mesh, apart};
            EXPECT_NEAR(by_node.time(call).value, by_message.time(call).value, 1e-5 * by_message.time(call).value)
                << across << " " << nodes;
            EXPECT_EQ(by_node.messages(call), by_message.messages(call)) << across << " " << nodes;
        }
    }
}

}  // namespace
}  // namespace rehearse::sim
