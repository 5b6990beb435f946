// SPDX-License-Identifier: Apache-2.0
// What goes around links that have failed, compared with lists of links read off a drawing of each machine.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <random>
#include <set>

#include "core/error.hpp"
#include "fixture.hpp"
#include "meshes.hpp"
#include "route_names.hpp"

namespace rehearse::sim {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(FailedLinks, OfANodeAreLeftToItsOthers) {
    const Machine machine = summit_like(4);
    const std::vector<Degraded> failed{{"node1:nic0:up", 0}, {"node0:link1:gpu0>gpu1", 0}};
    const Wiring wiring{machine, nominal, failed};
    EXPECT_THAT(names(wiring, 0, 1), ElementsAre("node0:link0:gpu0>cpu0", "node0:link2:cpu0>gpu1"));
    EXPECT_THAT(names(wiring, 1, 0), ElementsAre("node0:link2:gpu1>cpu0", "node0:link0:cpu0>gpu0"));
    std::vector<std::string> way = names(wiring, 6, 12);
    way.resize(4);
    EXPECT_THAT(
        way, ElementsAre("node1:link0:gpu0>cpu0", "node1:link14:cpu0>cpu1", "node1:link13:cpu1>nic1", "node1:nic1:up"));
    EXPECT_THAT(names(wiring, 12, 6), testing::Contains("node1:nic1:down"));
}

// Nodes (x, y) of a torus of 4 x 5, x = node / 5: where a link named so leads.
std::int64_t torus_step(std::int64_t node, const std::string& link) {
    EXPECT_EQ(link.substr(0, link.find(':')), "node" + std::to_string(node));
    std::int64_t x = node / 5, y = node % 5;
    const std::string way = link.substr(link.find(':') + 1);
    if (way == "dim0+") x = (x + 1) % 4;
    if (way == "dim0-") x = (x + 3) % 4;
    if (way == "dim1+") y = (y + 1) % 5;
    if (way == "dim1-") y = (y + 4) % 5;
    return 5 * x + y;
}

// Against a search, breadth first, of the torus without the two links.
TEST(FailedLinks, OfATorusAreGoneAroundByTheShortestWay) {
    const Machine machine = one_device_nodes(20, Torus{{4, 5}, {10.0_GBps, "test"}});
    const std::set<std::string> lost{"node0:dim0+", "node7:dim1-"};
    const std::vector<Degraded> failed{{"node0:dim0+", 0}, {"node7:dim1-", 0}};
    const Wiring wiring{machine, nominal, failed};
    for (std::int64_t from = 0; from < 20; ++from) {
        std::vector<int> distance(20, -1);
        std::vector<std::int64_t> reached{from};
        distance[static_cast<std::size_t>(from)] = 0;
        for (std::size_t next = 0; next < reached.size(); ++next) {
            for (const char* way : {"dim0+", "dim0-", "dim1+", "dim1-"}) {
                const std::string link = fmt::format("node{}:{}", reached[next], way);
                const std::int64_t there = torus_step(reached[next], link);
                if (lost.contains(link) || distance[static_cast<std::size_t>(there)] >= 0) continue;
                distance[static_cast<std::size_t>(there)] = distance[static_cast<std::size_t>(reached[next])] + 1;
                reached.push_back(there);
            }
        }
        for (std::int64_t to = 0; to < 20; ++to) {
            if (to == from) continue;
            SCOPED_TRACE(fmt::format("{} to {}", from, to));
            std::int64_t here = from;
            const std::vector<std::string> way = between_nics(wiring, from, to);
            for (const std::string& link : way) {
                EXPECT_FALSE(lost.contains(link)) << link;
                here = torus_step(here, link);
            }
            EXPECT_EQ(here, to);
            EXPECT_EQ(std::ssize(way), distance[static_cast<std::size_t>(to)]);
        }
    }
}

TEST(FailedLinks, OfADragonflyAreGoneAroundByAnotherGroup) {
    const Machine machine = one_device_nodes(9, dragonfly(3, 3, 1));
    const std::vector<Degraded> failed{{"group0>group1", 0}, {"group2:router0>router1", 0}};
    const Wiring wiring{machine, nominal, failed};
    const std::vector<std::string> way = between_nics(wiring, 0, 4);
    EXPECT_THAT(way, testing::IsSupersetOf({"group0>group2", "group2>group1"}));
    EXPECT_THAT(between_nics(wiring, 4, 0), testing::Contains("group1>group0"));
    EXPECT_THAT(between_nics(wiring, 6, 7), ElementsAre("group2:router0>router2", "group2:router2>router1"));
}

TEST(FailedLinks, ThatCutAFatTreeAreRefused) {
    const Machine machine = one_device_nodes(8, FatTree{{2, 2, 2}, {}});
    const std::vector<Degraded> failed{{"switch0.1:up", 0}};
    const Wiring wiring{machine, nominal, failed};
    EXPECT_THAT(between_nics(wiring, 2, 3), ElementsAre());
    EXPECT_THAT([&] { names(wiring, 2, 4); },
                testing::ThrowsMessage<InputError>(HasSubstr("'switch0.1:up' has failed and no way leads around it")));
}

}  // namespace
}  // namespace rehearse::sim
