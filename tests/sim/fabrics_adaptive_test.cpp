// SPDX-License-Identifier: Apache-2.0
// Dragonflies and dragonfly+ against what can be worked out of their drawings: hops, bisection, and how long shifts and
// all-to-alls take by adaptive and by minimal routing.
#include "fabrics.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "sim/network/adaptive.hpp"

namespace rehearse::sim {
namespace {

using namespace test;
using testing::HasSubstr;

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

}  // namespace
}  // namespace rehearse::sim
