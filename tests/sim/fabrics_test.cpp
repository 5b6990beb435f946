// SPDX-License-Identifier: Apache-2.0
// Trees, rails and sums between nodes against what can be worked out of their drawings: hops, tapers, and how long
// permutations, shifts and rings take, in folded mode and message by message.
#include "fabrics.hpp"
#include "core/collectives/library.hpp"

#include <gmock/gmock.h>

#include <random>
#include <set>

#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

// Four leaves of four nodes with four cables each. By d-mod-k, shifts never meet (Zahavi 2010): the four destinations
// of a leaf's nodes are consecutive numbers, so that each takes a cable of its own.
TEST(StaticRouting, CarriesEveryShiftAsAdaptiveRoutingDoes) {
    const Machine machine = plain(16, FatTree{{4, 4}, {1, 1}, {4, 1}});
    for (std::int64_t by = 1; by < 16; ++by) {
        EXPECT_NEAR(counted(machine, shift(16, by)), 1, 1e-9) << by;
        EXPECT_NEAR(followed(machine, shift(16, by)), 1, 1e-6) << by;
    }
}

// Nodes 0, 1 and 2 of one leaf send to nodes 4, 8 and 12, whose numbers are all 0 modulo 4: one cable of 10 GB/s
// carries the three. Adaptive routing spreads them.
TEST(StaticRouting, PutsWhatGoesToNumbersAlikeOnOneCable) {
    const std::vector<Flow> flows{{0, 4}, {1, 8}, {2, 12}};
    const Machine fixed = plain(16, FatTree{{4, 4}, {1, 1}, {4, 1}});
    EXPECT_NEAR(counted(fixed, flows), 3, 1e-9);
    EXPECT_NEAR(followed(fixed, flows), 3, 1e-6);
    EXPECT_NEAR(counted(plain(16, FatTree{{4, 4}, {1, 1}}), flows), 1, 1e-9);
    EXPECT_THAT(names(fixed, 1, 8), testing::IsSupersetOf({"switch0.0:cable0:up", "switch0.2:cable0:down"}));
    EXPECT_THAT(names(fixed, 1, 10), testing::IsSupersetOf({"switch0.0:cable2:up", "switch0.2:cable2:down"}));
}

// Random permutations of 64 nodes, eight leaves of eight cables: the busiest cable carries as many messages as the
// fullest of 8 x 8 bins holds of those that leave its leaf, or come to it.
TEST(StaticRouting, HoldsPermutationsUpByTheFullestCable) {
    const Machine machine = plain(64, FatTree{{8, 8}, {1, 1}, {8, 1}});
    std::mt19937 random{7};
    for (int turn = 0; turn < 5; ++turn) {
        std::vector<std::int64_t> to(64);
        for (std::int64_t i = 0; i < 64; ++i) to[static_cast<std::size_t>(i)] = i;
        for (std::size_t i = 63; i > 0; --i) std::swap(to[i], to[random() % (i + 1)]);
        std::vector<Flow> flows;
        std::map<std::pair<std::int64_t, std::int64_t>, int> up, down;
        int most = 1;
        for (std::int64_t from = 0; from < 64; ++from) {
            const std::int64_t end = to[static_cast<std::size_t>(from)];
            if (end == from) continue;
            flows.push_back({from, end});
            if (from / 8 == end / 8) continue;
            most = std::max({most, ++up[{from / 8, end % 8}], ++down[{end / 8, end % 8}]});
        }
        EXPECT_NEAR(counted(machine, flows), most, 1e-9);
    }
}

// Two scalable units of four nodes with two cards; the last level joins the rails. Device 2 n + c is at card c of node
// n.
TEST(Rails, JoinedMeetAtTheLastLevelAlone) {
    const Machine machine = railed(8, 2, {{4, 2}, {1, 1}, {}, FatTree::Rails::joined});
    EXPECT_DOUBLE_EQ(microseconds(machine, 0, 6), 2);      // card 0 of nodes 0 and 3: one switch
    EXPECT_DOUBLE_EQ(microseconds(machine, 0, 8), 2 + 2);  // card 0 of the other unit: three
    EXPECT_DOUBLE_EQ(microseconds(machine, 0, 7), 2 + 2);  // card 1 of node 3: by the last level
    EXPECT_THAT(names(machine, 0, 7), testing::IsSupersetOf({"rail0:switch0.0:up", "rail1:switch0.0:down"}));
}

// A taper of 4 above each rail's leaf of four nodes leaves 10 GB/s: a shift in the rails of a unit does not feel it,
// one from rail to rail takes four times as long.
TEST(Rails, SpareTheUpperLevels) {
    const Machine machine = railed(8, 2, {{4, 2}, {4, 1}, {}, FatTree::Rails::joined});
    std::vector<Flow> along, over;
    for (std::int64_t node = 0; node < 4; ++node) {
        for (std::int64_t card = 0; card < 2; ++card) {
            along.push_back({2 * node + card, 2 * ((node + 1) % 4) + card});
            over.push_back({2 * node + card, 2 * ((node + 1) % 4) + 1 - card});
        }
    }
    EXPECT_NEAR(counted(machine, along) / (1 + 2e-6 / 1e-4), 1, 1e-6);
    EXPECT_NEAR(counted(machine, over) / (4 + 4e-6 / 1e-4), 1, 1e-6);
}

// Two planes: a message stays in that of the card it left by, and goes to its device over the node's own switch.
TEST(Rails, SeparateAreNeverLeft) {
    const Machine machine = railed(8, 2, {{8}, {1}, {}, FatTree::Rails::separate});
    EXPECT_THAT(names(machine, 0, 2),
                ElementsAre("node0:link0:gpu0>nic0", "node0:nic0:up", "node1:nic0:down", "node1:link0:nic0>gpu0"));
    EXPECT_THAT(names(machine, 0, 3), ElementsAre("node0:link0:gpu0>nic0", "node0:nic0:up", "node1:nic0:down",
                                                  "node1:link2:nic0>switch", "node1:link4:switch>gpu1"));
    Machine uneven = machine;
    uneven.nodes.push_back(one_device_nodes(1, Star{}).nodes[0]);
    uneven.nodes[0].count = 7;
    EXPECT_THAT([&] { const Wiring wiring{uneven}; },
                testing::ThrowsMessage<InputError>(HasSubstr("as many network cards in every kind of node")));
}

// By NCCL since 2.12 (PXN) device 0 of node 0 has device 1 send what goes to card 1 of another node, over the links
// between devices, so that no message leaves its rail: what takes four times as long on a taper of 4 takes once.
TEST(Rails, AreKeptWhereNeighboursSend) {
    Machine machine = railed(8, 2, {{4, 2}, {4, 1}, {}, FatTree::Rails::joined});
    machine.nodes[0].vertices.back().bridge = BridgeKind::nvlink;
    const auto library = std::make_shared<CollectiveLibrary>();
    library->name = "nccl";
    machine.collectives.library = library;
    std::vector<Flow> over;
    for (std::int64_t node = 0; node < 4; ++node) {
        for (std::int64_t card = 0; card < 2; ++card)
            over.push_back({2 * node + card, 2 * ((node + 1) % 4) + 1 - card});
    }
    EXPECT_NEAR(counted(machine, over) / (1 + 2e-6 / 1e-4), 1, 1e-6);
    EXPECT_NEAR(followed(machine, over), 1, 1e-6);  // until the last byte leaves
    EXPECT_THAT(names(machine, 0, 3),
                ElementsAre("node0:link1:gpu0>switch", "node0:link4:switch>gpu1", "node0:link3:gpu1>nic1",
                            "node0:nic1:up", "node1:nic1:down", "node1:link3:nic1>gpu1"));
    machine.collectives.version = 21100;
    EXPECT_NEAR(counted(machine, over) / (4 + 4e-6 / 1e-4), 1, 1e-6);
    machine.collectives.version = 21200;
    machine.nodes[0].vertices.back().bridge = BridgeKind::pcie;  // through the host: each sends by itself
    EXPECT_NEAR(counted(machine, over) / (4 + 4e-6 / 1e-4), 1, 1e-6);
}

// Rings of a rail each over 8 nodes of two cards, 40 MB: 14 rounds of 2.5 MB by each card.
TEST(Rails, RingsTakeTheClosedForm) {
    for (const auto rails : {FatTree::Rails::joined, FatTree::Rails::separate}) {
        const Machine machine = railed(8, 2, {{8}, {1}, {}, rails});
        const Mesh mesh{{{"data", 8}, {"tensor", 2}}};
        const Call call{.axis = 0, .elements = 5'000'000, .algorithm = parse_algorithm("ring")};
        for (const Mode mode : {Mode::exact, Mode::folded}) {
            EXPECT_NEAR(collective_time(call, mesh, machine, mode).value, 14 * (2e-6 + 2.5e6 / 10e9), 1e-8);
        }
    }
}

// Eight nodes of one device, 40 MB: each card carries them once up and once down, 4 ms, and the sum takes 12 us; a
// taper of 4 above leaves of four is not felt, for one copy leaves a leaf. Sums of 5 GB/s a card: 8 ms.
TEST(SwitchesBetweenNodes, SumAtTheRateOfOneCard) {
    for (const double taper : {1.0, 4.0}) {
        Machine machine = one_device_nodes(8, FatTree{{4, 2}, {taper, 1}});
        const Mesh mesh{{{"data", 8}}};
        const Call call{.elements = 10'000'000, .algorithm = parse_algorithm("direct")};
        for (const Mode mode : {Mode::exact, Mode::folded}) {
            machine.fabric.sums = {{25.0_GBps, "test"}, {12_us, "test"}};
            EXPECT_NEAR(collective_time(call, mesh, machine, mode).value, 4e-3 + 12e-6, 1e-8);
            machine.fabric.sums.rate.value = 5.0_GBps;
            EXPECT_NEAR(collective_time(call, mesh, machine, mode).value, 8e-3 + 12e-6, 1e-8);
            machine.fabric.sums = {};
            EXPECT_GT(collective_time(call, mesh, machine, mode).value, 6e-3);  // 2 x 7 / 8 of the data, at least
        }
    }
}

TEST(SwitchesBetweenNodes, SumForMoreNodesThanCouldSendToAll) {
    Machine machine = one_device_nodes(1000, FatTree{{40, 25}, {1, 1}});
    machine.fabric.sums = {{25.0_GBps, "test"}, {12_us, "test"}};
    const Call call{.elements = 10'000'000, .algorithm = parse_algorithm("direct")};
    EXPECT_NEAR(collective_time(call, {{{"data", 1000}}}, machine, Mode::folded).value, 4e-3 + 12e-6, 1e-7);
}

// Nodes of two cards, each device at its own, on one switch that sums: 40 MB by hierarchical(ring,direct). A ring of
// two leaves each device half of the node's sum (20 MB over the node's 200 GB/s links), which its card carries up once
// and the sum down, 2 ms at 10 GB/s, or 4 ms where sums go at 5 GB/s a card; then the halves are shared.
TEST(SwitchesBetweenNodes, SumTheLanesOfHierarchicalSums) {
    for (const std::int64_t nodes : {2, 8}) {
        Machine machine = railed(nodes, 2, {{8}, {1}});
        machine.inside = messaging(0_s);
        const Mesh mesh{{{"data", 2 * nodes}}};
        const Call call{.elements = 10'000'000, .algorithm = parse_algorithm("hierarchical(ring,direct)")};
        const double inside = 2 * 20e6 / 200e9;
        for (const Mode mode : {Mode::exact, Mode::folded}) {
            machine.fabric.sums = {{25.0_GBps, "test"}, {12_us, "test"}};
            EXPECT_NEAR(collective_time(call, mesh, machine, mode).value, inside + 2e-3 + 12e-6, 1e-5) << nodes;
            machine.fabric.sums.rate.value = 5.0_GBps;
            EXPECT_NEAR(collective_time(call, mesh, machine, mode).value, inside + 4e-3 + 12e-6, 1e-5) << nodes;
        }
    }
}

// ... of so many ranks that they are priced node by node.
TEST(SwitchesBetweenNodes, SumTheLanesOfVeryManyRanks) {
    Machine machine = railed(40'000, 2, {{200, 200}, {1, 1}});
    machine.inside = messaging(0_s);
    machine.fabric.sums = {{25.0_GBps, "test"}, {12_us, "test"}};
    const Call call{.elements = 10'000'000, .algorithm = parse_algorithm("hierarchical(ring,direct)")};
    EXPECT_NEAR(collective_time(call, {{{"data", 80'000}}}, machine, Mode::folded).value, 4e-4 / 2 + 2e-3 + 12e-6,
                1e-5);
}

// Four devices on a switch at 50 GB/s that could sum more: no faster than their links, 5/4 of 40 MB, in both modes.
TEST(SwitchesThatSum, DoNotOutrunTheLinks) {
    Machine machine = four_device_nodes(1);
    machine.inside = messaging(0_s);
    machine.nodes[0].sums = {{90.0_GBps, "test"}, {10_us, "test"}};
    const Call call{.elements = 10'000'000, .algorithm = parse_algorithm("direct")};
    for (const Mode mode : {Mode::exact, Mode::folded}) {
        const double taken = collective_time(call, {{{"data", 4}}}, machine, mode).value;
        EXPECT_NEAR(taken, 10e-6 + 40e6 * 1.25 / 50e9, 1e-9) << to_string(mode);
    }
}

// Of so many ranks that their collectives are priced node by node, in the fabric's switches and in those of nodes: 40
// MB and their sum, each rank's share of which it keeps, over 40 GB/s.
TEST(SwitchesThatSum, DoSoForVeryManyRanks) {
    Machine machine = one_device_nodes(70'000, FatTree{{100, 700}, {1, 1}});
    machine.fabric.sums = {{25.0_GBps, "test"}, {12_us, "test"}};
    const Call call{.elements = 10'000'000, .algorithm = parse_algorithm("direct")};
    EXPECT_NEAR(collective_time(call, {{{"data", 70'000}}}, machine, Mode::folded).value, 4e-3 + 12e-6, 1e-7);
    Machine inside = four_device_nodes(17'500);
    inside.inside = messaging(0_s);
    inside.nodes[0].sums = {{40.0_GBps, "test"}, {10_us, "test"}};
    const Call in_node{.axis = 1, .elements = 10'000'000, .algorithm = parse_algorithm("direct")};
    const Mesh mesh{{{"data", 17'500}, {"tensor", 4}}};
    EXPECT_NEAR(collective_time(in_node, mesh, inside, Mode::folded).value, 10e-6 + 40e6 * 1.25 / 40e9, 1e-9);
}

}  // namespace
}  // namespace rehearse::sim
