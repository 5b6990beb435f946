// SPDX-License-Identifier: Apache-2.0
// Routes are compared with lists of links read off a drawing of each machine.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <memory>
#include <random>
#include <set>

#include "core/collectives/library.hpp"
#include "core/error.hpp"
#include "fixture.hpp"
#include "meshes.hpp"
#include "route_names.hpp"
#include "sim/collective/price.hpp"
#include "sim/network/wiring.hpp"

namespace rehearse::sim {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

double latency_us(const Wiring& wiring, std::int64_t from, std::int64_t to) {
    std::vector<Hop> hops;
    return wiring.route(from, to, hops).value * 1e6;
}

Machine cube_mesh_with(std::string_view library, std::int64_t version) {
    Machine machine = mesh_of_links(2, 8, cube_mesh());
    CollectiveLibrary software;
    software.name = library;
    machine.collectives.library = std::make_shared<const CollectiveLibrary>(software);
    machine.collectives.version = version;
    return machine;
}

// Of the ways from 0: 4-7 is two links, as 0-4; 4-5 and 4-6 are one, no wider than those from 1, 2 and 3, and 4 is
// asked before 1 and 2 since two links lead there.
TEST(CubeMesh, IsPassedByANeighbourSinceNccl28) {
    const Machine since = cube_mesh_with("nccl", 20800);
    const Wiring wiring{since};
    EXPECT_THAT(names(wiring, 0, 7), ElementsAre("node0:link19:gpu0>gpu4", "node0:link28:gpu4>gpu7"));
    EXPECT_THAT(names(wiring, 0, 5), ElementsAre("node0:link19:gpu0>gpu4", "node0:link26:gpu4>gpu5"));
    EXPECT_THAT(names(wiring, 0, 6), ElementsAre("node0:link19:gpu0>gpu4", "node0:link27:gpu4>gpu6"));
    EXPECT_THAT(names(wiring, 7, 0), ElementsAre("node0:link28:gpu7>gpu4", "node0:link19:gpu4>gpu0"));
    EXPECT_THAT(names(wiring, 0, 1), ElementsAre("node0:link16:gpu0>gpu1"));
    EXPECT_EQ(names(wiring, 0, 15).front(), "node0:link0:gpu0>pcie");  // to NICs as ever
    const Machine before = cube_mesh_with("nccl", 20700), another = cube_mesh_with("rccl", 22000);
    for (const Machine* machine : {&before, &another}) {
        EXPECT_THAT(names(Wiring{*machine}, 0, 7), ElementsAre("node0:link0:gpu0>pcie", "node0:link7:pcie>gpu7"));
    }
}

TEST(CubeMesh, AFailedLinkIsGoneAroundByAnotherNeighbour) {
    const Machine machine = cube_mesh_with("nccl", 20800);
    const std::vector<Degraded> failed{{"node0:link19:*", 0}};
    const Wiring wiring{machine, nominal, failed};
    // By 2, 6 is a single link on each side; 1 and 3 have none to 4.
    EXPECT_THAT(names(wiring, 0, 7), ElementsAre("node0:link18:gpu0>gpu3", "node0:link25:gpu3>gpu7"));
}

TEST(Star, JoinsNicsByOneSwitch) {
    const Machine machine = one_device_nodes(4, Star{});
    const Wiring wiring{machine};
    EXPECT_THAT(names(wiring, 0, 3),
                ElementsAre("node0:link0:dev0>nic0", "node0:nic0:up", "node3:nic0:down", "node3:link0:nic0>dev0"));
    EXPECT_DOUBLE_EQ(latency_us(wiring, 0, 3), 2);
}

// level 2            (2.0)
// level 1      (1.0)       (1.1)
// level 0   (0.0) (0.1) (0.2) (0.3)
// nodes      0 1   2 3   4 5   6 7
TEST(FatTree, ClimbsToTheLowestCommonSwitch) {
    const Machine machine = one_device_nodes(8, FatTree{{2, 2, 2}, {}});
    const Wiring wiring{machine};
    EXPECT_THAT(between_nics(wiring, 0, 1), ElementsAre());
    EXPECT_THAT(between_nics(wiring, 1, 2), ElementsAre("switch0.0:up", "switch0.1:down"));
    EXPECT_THAT(between_nics(wiring, 0, 7),
                ElementsAre("switch0.0:up", "switch1.0:up", "switch1.1:down", "switch0.3:down"));
    EXPECT_DOUBLE_EQ(latency_us(wiring, 0, 1), 2);      // one switch
    EXPECT_DOUBLE_EQ(latency_us(wiring, 1, 2), 2 + 2);  // three
    EXPECT_DOUBLE_EQ(latency_us(wiring, 0, 7), 2 + 4);  // five
}

TEST(FatTree, TapersTheBandwidthAboveEachLevel) {
    // NICs of 10 GB/s, four below a leaf, 2:1 above it: 20 up; two leaves below the next, 4:1 above: 10 up.
    const Machine machine = one_device_nodes(12, FatTree{{4, 2, 2}, {2, 4}});
    const Wiring wiring{machine};
    std::vector<Hop> hops;
    wiring.route(0, 11, hops);
    ASSERT_EQ(hops.size(), 8U);
    EXPECT_DOUBLE_EQ(wiring.link(hops[1].link).bandwidth.value, 10e9);
    EXPECT_DOUBLE_EQ(wiring.link(hops[2].link).bandwidth.value, 20e9);
    EXPECT_DOUBLE_EQ(wiring.link(hops[3].link).bandwidth.value, 10e9);
}

// Three groups of two routers of two nodes: router = node / 2, group = node / 4.
TEST(Dragonfly, TakesAtMostOneLocalOneGlobalOneLocalLink) {
    const Machine machine = one_device_nodes(12, dragonfly(3, 2, 2));
    const Wiring wiring{machine};
    EXPECT_THAT(between_nics(wiring, 0, 1), ElementsAre());
    EXPECT_THAT(between_nics(wiring, 0, 2), ElementsAre("group0:router0>router1"));
    // To router 1 of group 1: leaves by router (1 + 1) mod 2 = 0, enters by router (0 + 0) mod 2 = 0.
    EXPECT_THAT(between_nics(wiring, 0, 7), ElementsAre("group0>group1", "group1:router0>router1"));
    // To router 0 of group 1: leaves by router 1, enters by router 0.
    EXPECT_THAT(between_nics(wiring, 0, 4), ElementsAre("group0:router0>router1", "group0>group1"));
    // From router 1 of group 0 to router 0 of group 2: leaves by (2 + 0) mod 2 = 0, enters by (0 + 1) mod 2 = 1.
    EXPECT_THAT(between_nics(wiring, 2, 8),
                ElementsAre("group0:router1>router0", "group0>group2", "group2:router1>router0"));
    EXPECT_DOUBLE_EQ(latency_us(wiring, 2, 8), 2 + 3);  // four routers
}

TEST(Torus, GoesDimensionAfterDimensionTheShorterWay) {
    const Machine machine = one_device_nodes(16, Torus{{4, 4}, {10.0_GBps, ""}});  // node = 4 row + column
    const Wiring wiring{machine};
    EXPECT_THAT(between_nics(wiring, 0, 5), ElementsAre("node0:dim0+", "node4:dim1+"));
    EXPECT_THAT(between_nics(wiring, 0, 3), ElementsAre("node0:dim1-"));
    EXPECT_THAT(between_nics(wiring, 3, 0), ElementsAre("node3:dim1+"));
    EXPECT_THAT(between_nics(wiring, 0, 2), ElementsAre("node0:dim1+", "node1:dim1+"));  // equally long: even goes up
    EXPECT_THAT(between_nics(wiring, 1, 3), ElementsAre("node1:dim1-", "node0:dim1-"));  // and odd goes down
    EXPECT_DOUBLE_EQ(latency_us(wiring, 0, 5), 2 + 2);
}

TEST(Node, OnlyBridgesForward) {
    const Machine machine = summit_like(2);
    const Wiring wiring{machine};
    EXPECT_THAT(names(wiring, 0, 1), ElementsAre("node0:link1:gpu0>gpu1"));
    EXPECT_THAT(names(wiring, 2, 3),
                ElementsAre("node0:link4:gpu2>cpu0", "node0:link14:cpu0>cpu1", "node0:link7:cpu1>gpu3"));
    // 1 us a link, 3 us of software.
    EXPECT_DOUBLE_EQ(latency_us(wiring, 0, 1), 1 + 3);
    EXPECT_DOUBLE_EQ(latency_us(wiring, 2, 3), 3 + 3);
}

// Two ways of two links each, as long: the wider one, wherever its links stand in the file.
TEST(Node, OfEquallyLongWaysTheWiderIsTaken) {
    for (const bool wide_first : {true, false}) {
        Machine machine = one_device_nodes(1, Star{});
        NodeKind& node = machine.nodes[0];
        node.vertices = {{"gpu0", VertexKind::device, 0},
                         {"gpu1", VertexKind::device, 0},
                         {"narrow", VertexKind::bridge},
                         {"wide", VertexKind::bridge}};
        node.links.clear();
        for (const int bridge : wide_first ? std::vector{3, 2} : std::vector{2, 3}) {
            for (const int gpu : {0, 1})
                node.links.push_back(node_link(gpu, bridge, bridge == 3 ? 300.0_GBps : 32.0_GBps, 0_s));
        }
        const NodePaths paths{node, 1, 1, Forwards::bridges};
        for (const Hop& hop : paths.between(0, 1).hops) {
            const NodeLink& link = node.links[static_cast<std::size_t>(hop.link / 2)];
            EXPECT_EQ(std::max(link.a, link.b), 3) << wide_first;
        }
    }
}

TEST(Node, ReachesOthersByTheNearestNic) {
    const Machine machine = summit_like(2);
    const Wiring wiring{machine};
    EXPECT_THAT(names(wiring, 4, 6),  // gpu4 of node 0 to gpu0 of node 1
                ElementsAre("node0:link9:gpu4>cpu1", "node0:link13:cpu1>nic1", "node0:nic1:up", "node1:nic0:down",
                            "node1:link6:nic0>cpu0", "node1:link0:cpu0>gpu0"));
    // Two links of 1 us at each end, 1.5 us of fabric, 5 us of software.
    EXPECT_DOUBLE_EQ(latency_us(wiring, 4, 6), 2 + 1.5 + 2 + 5);
}

// Which NIC of its node a device sends by, and which one of the other node the message comes in by.
std::pair<std::string, std::string> nics_of(const Wiring& wiring, std::int64_t from, std::int64_t to) {
    const std::vector<std::string> way = names(wiring, from, to);
    return {way[2].substr(way[2].find(':') + 1), way[3].substr(way[3].find(':') + 1)};
}

// Whichever node they send to, two devices keep to two NICs, four to two in turn: as many of one as of the other.
TEST(Node, DevicesOfASocketHaveNicsOfTheirOwn) {
    const Machine pairs = mesh_of_links(4, 2, {}, 2);
    const Wiring two{pairs};
    const Machine crowded = mesh_of_links(4, 4, {}, 2);
    const Wiring four{crowded};
    using Ends = std::pair<std::string, std::string>;
    for (std::int64_t node = 1; node < 4; ++node) {
        for (std::int64_t d = 0; d < 2; ++d) {
            const std::string nic = fmt::format("nic{}", d);
            EXPECT_EQ(nics_of(two, d, 2 * node + d), (Ends{nic + ":up", nic + ":down"}));
        }
        for (std::int64_t d = 0; d < 4; ++d) {
            const std::string nic = fmt::format("nic{}", d % 2);
            EXPECT_EQ(nics_of(four, d, 4 * node + d), (Ends{nic + ":up", nic + ":down"}));
        }
    }
}

// Three NICs for two devices: the first has two, which take turns by the other node, the second one.
TEST(Node, NicsThatAreLeftGoToTheFirstDevices) {
    const Machine machine = mesh_of_links(4, 2, {}, 3);
    const Wiring wiring{machine};
    EXPECT_EQ(nics_of(wiring, 0, 4).first, "nic0:up");
    EXPECT_EQ(nics_of(wiring, 0, 6).first, "nic2:up");
    EXPECT_EQ(nics_of(wiring, 1, 4).first, "nic1:up");
    EXPECT_EQ(nics_of(wiring, 1, 6).first, "nic1:up");
}

// Two of a socket on each of two nodes, 32 MB by rings: each NIC of 10 GB/s carries a ring of half the data, so that
// the six rounds are of 4 MB; by one NIC they would take twice as long.
TEST(Node, RingsOfTheDevicesOfASocketDoNotMeet) {
    const Machine machine = mesh_of_links(2, 2, {}, 2);
    const Mesh mesh{{{"data", 4}}};
    const Call call{.elements = 8'000'000, .algorithm = parse_algorithm("rings")};
    for (const Mode mode : {Mode::exact, Mode::folded}) {
        EXPECT_NEAR(collective_time(call, mesh, machine, mode).value, 6 * (2e-6 + 4e6 / 10e9), 1e-8);
    }
}

TEST(Node, ADeviceWithSeveralNicsTakesThemInTurnByTheOtherNode) {
    Machine machine = one_device_nodes(4, Star{});
    machine.nodes[0].vertices.push_back({"nic1", VertexKind::nic, -1});
    machine.nodes[0].links.push_back(node_link(0, 2, Bandwidth{1e12}));
    const Wiring wiring{machine};
    EXPECT_THAT(between_nics(wiring, 0, 2), ElementsAre());
    EXPECT_EQ(names(wiring, 0, 2)[1], "node0:nic0:up");
    EXPECT_EQ(names(wiring, 0, 3)[1], "node0:nic1:up");
    EXPECT_EQ(names(wiring, 1, 2)[2], "node2:nic1:down");
}

TEST(Wiring, NumbersNodesKindAfterKind) {
    Machine machine = summit_like(2);
    machine.nodes.push_back(one_device_nodes(3, Star{}).nodes[0]);
    const Wiring wiring{machine};
    EXPECT_EQ(wiring.node_of(11), 1);
    EXPECT_EQ(wiring.node_of(12), 2);
    EXPECT_EQ(wiring.node_mates(13, 15), 1);
    EXPECT_EQ(wiring.node_mates(7, 9), 3);  // of node 1, devices 6, 7 and 8 are below 9
    EXPECT_THAT(names(wiring, 12, 14),
                ElementsAre("node2:link0:dev0>nic0", "node2:nic0:up", "node4:nic0:down", "node4:link0:nic0>dev0"));
}

TEST(Wiring, ScalesBandwidthByFractionAndTimesByTheQuantile) {
    Machine machine = one_device_nodes(2, Star{});
    machine.across = messaging(4_us, 0.5, 8.0_GBps, 0.25);
    // Two standard deviations of a quarter: everything takes 1.5 times as long. NIC: 10 * 0.5 / 1.5 GB/s.
    const Wiring slow{machine, ZScore{2}};
    std::vector<Hop> hops;
    EXPECT_DOUBLE_EQ(slow.route(0, 1, hops).value, (2e-6 + 4e-6) * 1.5);
    EXPECT_DOUBLE_EQ(hops[1].cost.value, 1.5 / 5e9);
    EXPECT_DOUBLE_EQ(slow.link(hops[1].link).bandwidth.value, 5e9 / 1.5);
    EXPECT_DOUBLE_EQ(slow.combine(0, 1).value, 1.5 / 8e9);
}

struct Named {
    const char* name;
    Topology topology;
};

void PrintTo(const Named& it, std::ostream* out) { *out << it.name; }

class AnyTopology : public testing::TestWithParam<Named> {};

TEST_P(AnyTopology, HasOneNameALinkAndRoutesThatCostWhatTheirLinksSay) {
    Machine machine = summit_like(24);
    machine.fabric.topology = GetParam().topology;
    const Wiring wiring{machine};
    std::set<std::string> seen;
    for (std::int64_t id = 0; id < wiring.link_count(); ++id) {
        EXPECT_TRUE(seen.insert(wiring.link(id).name).second) << wiring.link(id).name;
    }
    std::mt19937 random{1};
    for (int i = 0; i < 1000; ++i) {
        const auto from = static_cast<std::int64_t>(random() % 144), to = static_cast<std::int64_t>(random() % 144);
        std::vector<Hop> hops;
        wiring.route(from, to, hops);
        std::set<std::int64_t> once;
        for (const Hop& hop : hops) {
            EXPECT_TRUE(once.insert(hop.link).second) << from << " > " << to << " passes a link twice";
            EXPECT_DOUBLE_EQ(hop.cost.value * wiring.link(hop.link).bandwidth.value, 1);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    All, AnyTopology,
    testing::Values(Named{"star", Star{}}, Named{"tapered_tree", FatTree{{4, 3, 2}, {2, 1}}},
                    Named{"dragonfly", dragonfly(3, 4, 2)}, Named{"torus", Torus{{2, 3, 4}, {10.0_GBps, ""}}},
                    Named{"tree_of_three_levels", FatTree{{4, 3, 2}, {2, 1, 1}, {4, 6, 1}}},
                    Named{"joined_rails", FatTree{{4, 3, 2}, {2, 1, 1}, {}, FatTree::Rails::joined}},
                    Named{"separate_rails", FatTree{{24}, {1}, {}, FatTree::Rails::separate}},
                    Named{"adaptive_dragonfly",
                          Dragonfly{3, 4, 2, {5.0_GBps, ""}, {20.0_GBps, ""}, FabricRouting::adaptive}},
                    Named{"dragonfly_plus", DragonflyPlus{3, 4, 2, {5.0_GBps, ""}, {20.0_GBps, ""}}}),
    testing::PrintToStringParamName());

std::string refusal(const Machine& machine) {
    try {
        const Wiring wiring{machine};
    } catch (const InputError& error) {
        return error.what();
    }
    return "";
}

TEST(Wiring, RefusesWhatCannotBeRouted) {
    EXPECT_THAT(refusal(one_device_nodes(9, FatTree{{2, 4}, {}})), HasSubstr("room for 8 nodes, the machine has 9"));
    EXPECT_THAT(refusal(one_device_nodes(4, FatTree{{2, 2}, {0}})), HasSubstr("taper"));
    EXPECT_THAT(refusal(one_device_nodes(4, Torus{{2, 2}, {}})), HasSubstr("bandwidth"));
    EXPECT_THAT(refusal(one_device_nodes(4, Torus{{}, {1.0_GBps, ""}})), HasSubstr("at least 1"));
    Machine machine = one_device_nodes(2, Star{});
    machine.across.fraction.value = 0;
    EXPECT_THAT(refusal(machine), HasSubstr("plain.toml: machine 'plain': messaging across needs a fraction"));
    machine = one_device_nodes(2, Star{});
    machine.nodes[0].links[0].bandwidth.value = Bandwidth{0};
    EXPECT_THAT(refusal(machine), HasSubstr("link dev0-nic0 needs a bandwidth"));
    machine = one_device_nodes(2, Star{});
    machine.nodes[0].links.clear();
    EXPECT_THAT(refusal(machine), HasSubstr("no path of links from dev0 to any NIC"));
    machine = one_device_nodes(2, Star{});
    machine.nodes[0].vertices.pop_back();
    machine.nodes[0].links.clear();
    EXPECT_THAT(refusal(machine), HasSubstr("has no NIC"));
    machine.nodes[0].count = 1;  // which is fine for a machine of one node
    EXPECT_EQ(refusal(machine), "");
}

TEST(Wiring, OfAMillionDevicesIsBuiltWithoutStoringThem) {
    Machine machine = one_device_nodes(1'000'000, FatTree{{100, 100, 100}, {2, 2}});
    const Wiring wiring{machine};
    EXPECT_EQ(names(wiring, 123'456, 999'999).size(), 8U);
    EXPECT_EQ(wiring.node_of(999'999), 999'999);
}

}  // namespace
}  // namespace rehearse::sim
