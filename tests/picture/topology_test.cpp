// SPDX-License-Identifier: Apache-2.0
// Which links are coloured by which load, told by the marks' titles.
#include "picture/topology.hpp"

#include <gmock/gmock.h>

namespace rehearse::picture {
namespace {

using testing::HasSubstr;

// Twelve nodes of two GPUs and a NIC, four below each switch of a tree.
Machine machine() {
    NodeKind node{"n", 12, {}, {}};
    node.vertices = {{"gpu0", VertexKind::device, -1, {}, "gpu"},
                     {"gpu1", VertexKind::device, -1, {}, "gpu"},
                     {"nic0", VertexKind::nic, -1}};
    node.links = {{0, 1, {Bandwidth{1e9}, "t"}, {Seconds{1e-6}, "t"}},
                  {0, 2, {Bandwidth{1e9}, "t"}, {Seconds{1e-6}, "t"}},
                  {1, 2, {Bandwidth{1e9}, "t"}, {Seconds{1e-6}, "t"}}};
    Machine machine;
    machine.name = "m";
    machine.nodes = {node};
    machine.fabric.topology = FatTree{{4, 3}, {1, 1}};
    machine.fabric.link = {Bandwidth{1e9}, "t"};
    return machine;
}

std::vector<std::string> titles(const LinkShares& use) {
    std::vector<std::string> found;
    for (const Mark& mark : topology_picture(machine(), use, 1200, Theme::light).marks)
        if (mark.title.find("each direction") != std::string::npos ||
            mark.title.find("into the fabric") != std::string::npos)
            found.push_back(mark.title);
    return found;
}

auto count_of(const std::vector<std::string>& all, std::string_view words) {
    return std::ranges::count_if(all, [&](const std::string& each) { return each.find(words) != std::string::npos; });
}

// Two of three links inside a node idle, and eleven of twelve nodes.
TEST(Topology, LinksThatAnExactPredictionDoesNotListAreIdle) {
    const LinkShares use{{{"node0:link0:gpu0>gpu1", 0.5}, {"node1:nic0:up", 0.25}, {"switch0.1:up", 0.75}},
                         {{"gpu>gpu", {0.5, 1, true}}, {"nic:up", {0.25, 1, true}}, {"switch0:up", {0.75, 1, true}}}};
    const auto all = titles(use);
    EXPECT_EQ(count_of(all, "node0:link0:gpu0>gpu1: 50.0 % used"), 1);
    EXPECT_EQ(count_of(all, "gpu1>nic0: idle"), 1);
    EXPECT_EQ(count_of(all, "node1:nic0:up: 25.0 % used"), 1);
    EXPECT_EQ(count_of(all, "switch0.1:up: 75.0 % used"), 1);
    EXPECT_EQ(count_of(all, "% used"), 3);
}

TEST(Topology, OfAFoldedPredictionLinksSayOfHowManyTheirLoadIsTheMean) {
    const LinkShares use{{}, {{"nic:up", {0.25, 4, false}}}};
    const auto all = titles(use);
    EXPECT_EQ(count_of(all, "nic:up: 25.0 % used, the mean of 4 that carry anything"), 12 + 1);
    EXPECT_EQ(count_of(all, "gpu0>gpu1: idle"), 1);
}

}  // namespace
}  // namespace rehearse::picture
