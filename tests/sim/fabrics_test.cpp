// SPDX-License-Identifier: Apache-2.0
// Fabrics against what can be worked out of their drawings: hops, bisection, and how long permutations, shifts and
// all-to-alls take, in folded mode and message by message.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

#include "core/error.hpp"
#include "fixture.hpp"
#include "sim/collective/price.hpp"
#include "sim/modes/mail.hpp"
#include "sim/network/adaptive.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

// Links of 1 TB/s join devices and cards, so that these never hold up; cards of 10 GB/s; no latency that matters here.
Machine plain(std::int64_t nodes, Topology topology) {
    Machine machine = one_device_nodes(nodes, std::move(topology));
    machine.fabric.latency.value = machine.fabric.hop_latency.value = Seconds{0};
    return machine;
}

/// `cards` devices and cards a node, each device at its own card and all devices joined by a switch.
Machine railed(std::int64_t nodes, int cards, FatTree tree) {
    Machine machine = one_device_nodes(nodes, std::move(tree));
    NodeKind& kind = machine.nodes[0];
    kind.vertices.clear();
    kind.links.clear();
    for (int d = 0; d < cards; ++d) kind.vertices.push_back({fmt::format("gpu{}", d), VertexKind::device, 0});
    for (int d = 0; d < cards; ++d) kind.vertices.push_back({fmt::format("nic{}", d), VertexKind::nic, -1});
    kind.vertices.push_back({"switch", VertexKind::bridge, -1});
    for (int d = 0; d < cards; ++d) {
        kind.links.push_back(node_link(d, cards + d, 100.0_GBps));
        kind.links.push_back(node_link(d, 2 * cards, 200.0_GBps));
        kind.links.push_back(node_link(cards + d, 2 * cards, 50.0_GBps));
    }
    return machine;
}

/// How many times as long as alone on a card of 10 GB/s messages take that all start together: by counting.
double counted(const Machine& machine, const std::vector<Flow>& flows) {
    const Wiring wiring{machine};
    return round_time(RoundCounter{wiring}.count(flows).flows, 1_MB) / (1_MB / 10.0_GBps);
}

/// The same, every message by itself, each cut into pieces that choose their ways when they start. A piece sees only
/// what is under way then, and the last of a round leave links unevenly busy: up to 15 % longer than the best.
double followed(const Machine& machine, const std::vector<Flow>& flows) {
    const Wiring wiring{machine};
    Simulation simulation{wiring, device_count(machine)};
    Mail mail{simulation};
    Seconds last;
    for (RankIndex rank{0}; rank < device_count(machine); ++rank) {
        std::vector<Exchange> mine;
        for (const Flow& flow : flows) {
            if (flow.from == rank) mine.push_back({RankIndex{flow.to}, 1_MB, true, Seconds{0}});
            if (flow.to == rank) mine.push_back({RankIndex{flow.from}, 1_MB, false, Seconds{0}});
        }
        if (mine.empty()) continue;
        simulation.start(rank, [&, mine, rank] {
            last = std::max(last, mail.exchange(rank, mine, Stream::communication, Seconds{0}).end);
        });
    }
    simulation.run();
    return last / (1_MB / 10.0_GBps);
}

std::vector<Flow> shift(std::int64_t devices, std::int64_t by) {
    std::vector<Flow> flows;
    for (std::int64_t d = 0; d < devices; ++d) flows.push_back({d, (d + by) % devices});
    return flows;
}

std::vector<std::string> names(const Machine& machine, std::int64_t from, std::int64_t to) {
    const Wiring wiring{machine};
    std::vector<Hop> hops;
    wiring.route(from, to, hops);
    std::vector<std::string> result;
    for (const Hop& hop : hops) result.push_back(wiring.link(hop.link).name);
    return result;
}

double microseconds(const Machine& machine, std::int64_t from, std::int64_t to) {
    const Wiring wiring{machine};
    std::vector<Hop> hops;
    return wiring.route(from, to, hops).value * 1e6;
}

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

Dragonfly adaptive(std::int64_t groups, std::int64_t routers, std::int64_t nodes, Bandwidth local, Bandwidth global) {
    return {groups, routers, nodes, {local, "test"}, {global, "test"}, FabricRouting::adaptive};
}

// Of n places joined all to all, all of which send D messages to the next: n D + n (D - x) links are crossed, x by the
// way between, and there are n (n - 1): the best is x = 2 D / n. One that sends to one other has n - 1 ways. Where each
// sends one to every other, none goes around.
TEST(AdaptiveRouting, SharesLinksAsOnPaper) {
    for (const std::int64_t n : {3, 5, 8, 40}) {
        std::vector<PairDemand> next, all;
        for (std::int64_t i = 0; i < n; ++i) {
            next.push_back({i, (i + 1) % n, 12});
            for (std::int64_t k = 0; k < n; ++k) {
                if (k != i) all.push_back({i, k, 12});
            }
        }
        for (const double one : busiest_links(n, next)) EXPECT_NEAR(one, 24.0 / static_cast<double>(n), 1e-3);
        for (const double one : busiest_links(n, all)) EXPECT_NEAR(one, 12, 1e-9);
        const std::vector<PairDemand> pair{{0, 1, 12}};
        EXPECT_NEAR(busiest_links(n, pair)[0], 12 / static_cast<double>(n - 1), 1e-3);
    }
    const std::vector<PairDemand> two{{0, 1, 12}};
    EXPECT_EQ(busiest_links(2, two)[0], 12);
}

// Five groups of two routers of four nodes, 20 GB/s between two groups. All eight nodes of a group send to the next
// group: 80 GB/s where the best is 20 x 5 / 2 = 50, 1.6 times as long as alone; minimal routing gives 20, 4 times.
TEST(AdaptiveRouting, CarriesShiftsByOtherGroups) {
    const Machine machine = plain(40, adaptive(5, 2, 4, 1000.0_GBps, 20.0_GBps));
    EXPECT_NEAR(counted(machine, shift(40, 8)), 1.6, 2e-3);
    EXPECT_NEAR(followed(machine, shift(40, 8)), 1.6, 0.15 * 1.6);
    Dragonfly minimal = adaptive(5, 2, 4, 1000.0_GBps, 20.0_GBps);
    minimal.routing = FabricRouting::minimal;
    EXPECT_NEAR(counted(plain(40, minimal), shift(40, 8)), 4, 1e-9);
}

// One group sends to another while the rest is idle: all four ways of 20 GB/s carry the 80.
TEST(AdaptiveRouting, UsesEveryWayOfAnIdleMachine) {
    const Machine machine = plain(40, adaptive(5, 2, 4, 1000.0_GBps, 10.0_GBps));
    std::vector<Flow> flows;
    for (std::int64_t node = 0; node < 8; ++node) flows.push_back({node, 8 + node});
    EXPECT_NEAR(counted(machine, flows), 2, 2e-3);  // 80 GB/s over four ways of 10
    EXPECT_NEAR(followed(machine, flows), 2, 0.15 * 2);
}

// Each node sends to its like in every other group: every link between two groups carries 8 messages of 1 MB at 20
// GB/s, the cards 4 at 10: 4 times as long as one message; at 10 GB/s a link 8. No detour helps.
TEST(AdaptiveRouting, GoesStraightWhereAllAreBusy) {
    std::vector<Flow> flows;
    for (std::int64_t node = 0; node < 40; ++node) {
        for (std::int64_t by = 8; by < 40; by += 8) flows.push_back({node, (node + by) % 40});
    }
    const Machine wide = plain(40, adaptive(5, 2, 4, 1000.0_GBps, 20.0_GBps));
    EXPECT_NEAR(counted(wide, flows), 4, 1e-6);
    EXPECT_NEAR(followed(wide, flows), 4, 0.15 * 4);
    const Machine narrow = plain(40, adaptive(5, 2, 4, 1000.0_GBps, 10.0_GBps));
    EXPECT_NEAR(counted(narrow, flows), 8, 1e-6);
    EXPECT_NEAR(followed(narrow, flows), 8, 0.15 * 8);
}

// Eight routers of four nodes in one group, 5 GB/s between two: a shift by a router's nodes finds 5 x 8 / 2 = 20 of 40
// GB/s.
TEST(AdaptiveRouting, CarriesShiftsByOtherRouters) {
    const Machine machine = plain(32, adaptive(1, 8, 4, 5.0_GBps, {}));
    EXPECT_NEAR(counted(machine, shift(32, 4)), 2, 2e-3);
    EXPECT_NEAR(followed(machine, shift(32, 4)), 2, 0.15 * 2);
}

// Half of the nodes send to the other half: of eight groups of four nodes the first four, 40 GB/s each, to the last,
// with 4 GB/s between two groups. The bisection is 4 x 4 links, 64 of 160 GB/s.
TEST(AdaptiveRouting, HalvesTheMachineOverAllItsLinks) {
    const Machine machine = plain(32, adaptive(8, 2, 2, 1000.0_GBps, 4.0_GBps));
    std::vector<Flow> flows;
    for (std::int64_t node = 0; node < 16; ++node) flows.push_back({node, 16 + node});
    EXPECT_NEAR(counted(machine, flows), 2.5, 2e-3);
    EXPECT_NEAR(followed(machine, flows), 2.5, 0.15 * 2.5);
}

TEST(AdaptiveRouting, TakesNoSharesOfItsLinks) {
    const Machine machine = plain(40, adaptive(5, 2, 4, 100.0_GBps, 20.0_GBps));
    const std::vector<Degraded> degraded{{"group0>group1", 0.5}};
    EXPECT_THAT(([&] {
                    const Wiring wiring{machine, nominal, degraded};
                }),
                testing::ThrowsMessage<InputError>(HasSubstr("route adaptively")));
}

DragonflyPlus plus(std::int64_t groups, std::int64_t leaves, std::int64_t nodes, Bandwidth up, Bandwidth global,
                   FabricRouting routing) {
    return {groups, leaves, nodes, {up, "test"}, {global, "test"}, routing};
}

TEST(DragonflyPlus, PassesLeavesAndSpines) {
    const Machine machine = one_device_nodes(24, plus(3, 2, 4, 40.0_GBps, 20.0_GBps, FabricRouting::minimal));
    EXPECT_DOUBLE_EQ(microseconds(machine, 0, 3), 2);       // one leaf
    EXPECT_DOUBLE_EQ(microseconds(machine, 0, 4), 2 + 2);   // leaf, spine, leaf
    EXPECT_DOUBLE_EQ(microseconds(machine, 0, 23), 2 + 3);  // leaf, spine, spine, leaf
    EXPECT_THAT(names(machine, 0, 4), testing::IsSupersetOf({"group0:leaf0:out", "group0:leaf1:in"}));
    EXPECT_THAT(names(machine, 0, 23), testing::IsSupersetOf({"group0:leaf0:out", "group0>group2", "group2:leaf1:in"}));
}

// Three groups of two leaves of four nodes. A shift by a leaf inside a group is a leaf's up-links: 40 of 40 GB/s, at 20
// twice as long. One by a group: 80 GB/s over 20 are 4 times as long by minimal routing, over 20 x 3 / 2 adaptively
// 2.67.
TEST(DragonflyPlus, ShiftsTakeTheClosedForm) {
    for (const auto routing : {FabricRouting::minimal, FabricRouting::adaptive}) {
        std::vector<Flow> leaves;
        for (std::int64_t node = 0; node < 24; ++node) leaves.push_back({node, node / 8 * 8 + (node + 4) % 8});
        EXPECT_NEAR(counted(plain(24, plus(3, 2, 4, 40.0_GBps, 20.0_GBps, routing)), leaves), 1, 1e-9);
        const Machine tapered = plain(24, plus(3, 2, 4, 20.0_GBps, 20.0_GBps, routing));
        EXPECT_NEAR(counted(tapered, leaves), 2, 1e-9);
        EXPECT_NEAR(followed(tapered, leaves), 2, 0.02);
        const Machine machine = plain(24, plus(3, 2, 4, 40.0_GBps, 20.0_GBps, routing));
        const double expected = routing == FabricRouting::minimal ? 4 : 8.0 / 3;
        EXPECT_NEAR(counted(machine, shift(24, 8)), expected, 3e-3);
        EXPECT_NEAR(followed(machine, shift(24, 8)), expected, 0.05 * expected);
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

// Groups of one axis are all under way at once: their rings share what lies between groups of nodes.
Topology fabric(const std::string& name) {
    if (name == "tapered_tree") return FatTree{{8, 4}, {4, 1}};
    if (name == "static_tree") return FatTree{{8, 4}, {1, 1}, {8, 1}};
    if (name == "dragonfly") return adaptive(4, 2, 2, 20.0_GBps, 10.0_GBps);
    if (name == "groups_of_one_router") return adaptive(8, 1, 2, {}, 4.0_GBps);
    if (name == "dragonfly_plus") return plus(4, 2, 2, 10.0_GBps, 10.0_GBps, FabricRouting::adaptive);
    return plus(4, 2, 4, 40.0_GBps, 10.0_GBps, FabricRouting::minimal);
}

class ManyGroups : public testing::TestWithParam<const char*> {};

TEST_P(ManyGroups, FoldedIsExact) {
    const Topology topology = fabric(GetParam());
    const auto* fly = std::get_if<DragonflyPlus>(&topology);
    const bool fixed =
        std::holds_alternative<FatTree>(topology) || (fly != nullptr && fly->routing == FabricRouting::minimal);
    const std::int64_t nodes = fixed ? 32 : 16;
    const Machine machine = one_device_nodes(nodes, topology);
    for (const char* algorithm : {"ring", "halving"}) {
        for (const std::int64_t outer : {2, 4}) {
            const Mesh mesh{{{"data", outer}, {"tensor", nodes / outer}}};
            for (const int axis : {0, 1}) {
                const Call call{.axis = axis, .elements = 1'600'000, .algorithm = parse_algorithm(algorithm)};
                const double exact = collective_time(call, mesh, machine, Mode::exact).value;
                const double folded = collective_time(call, mesh, machine, Mode::folded).value;
                EXPECT_NEAR(folded / exact, 1, fixed ? 0.005 : 0.2)
                    << algorithm << " of " << size_of(mesh, axis) << " ranks along axis " << axis;
            }
        }
    }
}

// Sums along both axes of a mesh at the same time: all groups of the one and all of the other.
Schedule two_axes(std::int64_t outer, std::int64_t inner) {
    Schedule schedule;
    schedule.plan = fmt::format("data={},tensor={}", outer, inner);
    schedule.mesh.axes = {{"data", outer}, {"tensor", inner}};
    schedule.network.name = "by-hand";
    std::vector<Step> steps;
    for (const int axis : {0, 1}) {
        Step step = all_reduce_step(axis, 1'600'000, parse_algorithm("ring"));
        std::get<Communicate>(step.action).axis = AxisIndex{axis};
        step.stream = communicator_stream(schedule.mesh, axis);
        steps.push_back(std::move(step));
    }
    Part part = part_for(steps);
    schedule.classes.push_back({.name = "all", .part = std::move(part), .steps = std::move(steps)});
    return schedule;
}

// A fixed way is shared alike in both modes. Adaptively, pieces see both collectives; the fluid sees each by itself and
// what they share of cards, routers and groups.
TEST_P(ManyGroups, OfTwoAxesAtOnceAreExact) {
    const Topology topology = fabric(GetParam());
    const auto* fly = std::get_if<DragonflyPlus>(&topology);
    const bool fixed =
        std::holds_alternative<FatTree>(topology) || (fly != nullptr && fly->routing == FabricRouting::minimal);
    const Machine machine = one_device_nodes(16, topology);
    for (const std::int64_t outer : {2, 4, 8}) {
        const Schedule schedule = two_axes(outer, 16 / outer);
        const double exact = step_time(simulate(schedule, machine, {.mode = Mode::exact}).timeline).value;
        const double folded = step_time(simulate(schedule, machine, {.mode = Mode::folded}).timeline).value;
        EXPECT_NEAR(folded / exact, 1, fixed ? 0.01 : 0.2) << outer << " x " << 16 / outer;
    }
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ManyGroups,
                         testing::Values("tapered_tree", "static_tree", "dragonfly", "groups_of_one_router",
                                         "dragonfly_plus", "minimal_dragonfly_plus"),
                         [](const auto& test) { return std::string{test.param}; });

}  // namespace
}  // namespace rehearse::sim
