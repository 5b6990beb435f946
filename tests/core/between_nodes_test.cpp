// SPDX-License-Identifier: Apache-2.0
// Which way sums go between nodes by default, against times written down by hand.
#include "core/collectives/between_nodes.hpp"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

using namespace literals;

/// Nodes with so many cards of 1 GB/s, 10 us a message; what arrives is added at no cost.
Machine machine_with(int cards) {
    Machine machine;
    machine.nodes.resize(1);
    for (int nic = 0; nic < cards; ++nic) machine.nodes[0].vertices.push_back({"nic", VertexKind::nic});
    machine.fabric.link = {1_GBps, "test"};
    machine.fabric.latency = {4_us, "test"};
    machine.across.overhead = {6_us, "test"};
    machine.across.fraction = {1.0, "test"};
    return machine;
}

TEST(BetweenNodes, PowersOfTwoHalve) {
    for (const std::int64_t nodes : {1, 2, 4, 64, 4096})
        EXPECT_EQ(usual_between_nodes(machine_with(1), nodes, 1, 1_GB), "halving") << nodes;
}

// Of n nodes a ring takes 2 (n - 1) (10 us + V / n / rate), halving 2 (10 us + V / rate) for what is beyond the power
// of two, and 2 (10 us + V / 2^k / rate) for k = 1, 2, ...; with V / rate = v and u = 10 us:
//   3 nodes: ring 4 u + 4/3 v, halving 4 u + 3 v: always the ring
//   5 nodes: ring 8 u + 8/5 v, halving 6 u + 7/2 v: the ring from v = 20/19 u on, that is from 10.5 kB on
//   100 nodes: ring 198 u + 1.98 v, halving 14 u + (2 + 63/32) v = 3.97 v: from v = 92.5 u on, 925 kB
TEST(BetweenNodes, OthersTakeWhatIsQuicker) {
    const Machine machine = machine_with(1);
    EXPECT_EQ(usual_between_nodes(machine, 3, 1, 4_B), "ring");
    EXPECT_EQ(usual_between_nodes(machine, 5, 1, 10_kB), "halving");
    EXPECT_EQ(usual_between_nodes(machine, 5, 1, 11_kB), "ring");
    EXPECT_EQ(usual_between_nodes(machine, 100, 1, 900_kB), "halving");
    EXPECT_EQ(usual_between_nodes(machine, 100, 1, 950_kB), "ring");
}

// Four ranks of a node have a quarter of the data each: on four cards that is as a quarter by itself, on one card as
// all of it.
TEST(BetweenNodes, LanesShareTheCards) {
    EXPECT_EQ(usual_between_nodes(machine_with(4), 5, 4, 40_kB), "halving");
    EXPECT_EQ(usual_between_nodes(machine_with(4), 5, 4, 44_kB), "ring");
    EXPECT_EQ(usual_between_nodes(machine_with(1), 5, 4, 10_kB), "halving");
    EXPECT_EQ(usual_between_nodes(machine_with(1), 5, 4, 11_kB), "ring");
}

TEST(BetweenNodes, OfAMachineWithoutPricesSendLeast) {
    Machine machine;
    machine.nodes.resize(1);
    EXPECT_EQ(usual_between_nodes(machine, 100, 1, 4_B), "ring");
}

}  // namespace
}  // namespace rehearse
