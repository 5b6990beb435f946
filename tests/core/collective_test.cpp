// SPDX-License-Identifier: Apache-2.0
// The rounds are executed on small whole numbers: afterwards every rank must hold the sum.
#include "core/collectives/collective.hpp"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "core/error.hpp"
#include "tests/core/collective_run.hpp"

namespace rehearse {
namespace {

using test::executed;
using test::given;

struct Case {
    std::string algorithm;
    Group group;
};

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const char* name : {"ring", "doubling", "halving", "tree", "doubletree", "direct", "torus"}) {
        for (std::int64_t n = 1; n <= 17; ++n) all.push_back({name, {n, n}});
    }
    for (const char* name : {"torus(3x4)", "torus(4x3)", "torus(1x12)", "torus(12x1)"}) all.push_back({name, {12, 12}});
    for (const Group& group :
         {Group{1, 1}, Group{6, 6}, Group{4, 1}, Group{8, 2}, Group{12, 3}, Group{18, 6}, Group{20, 4}, Group{10, 4}}) {
        all.push_back({"rings", group});
    }
    for (const char* name : {"ring", "rings", "hierarchical(ring,halving)"}) {
        for (const std::int64_t nodes : {1, 3}) {
            all.push_back({name, {4 * nodes, 4, test::unequal_rings()}});
        }
    }
    for (const char* inside : {"ring", "halving", "tree"}) {
        for (const char* across : {"ring", "doubling", "halving", "tree", "direct"}) {
            for (const Group& group :
                 {Group{1, 1}, Group{6, 6}, Group{4, 1}, Group{12, 6}, Group{18, 6}, Group{20, 4}}) {
                all.push_back({std::string{"hierarchical("} + inside + "," + across + ")", group});
            }
        }
    }
    return all;
}

TEST(AllReduce, LeavesTheSumOnEveryRank) {
    for (const Case& c : cases()) {
        for (const std::int64_t elements : {0, 1, 5, 48, 101}) {
            SCOPED_TRACE(c.algorithm + " on " + std::to_string(c.group.size) + ", " + std::to_string(elements));
            const Collective sum = all_reduce(parse_algorithm(c.algorithm), c.group, elements);
            const std::int64_t n = c.group.size;
            for (const auto& buffer : executed(sum, given(sum))) {
                for (std::int64_t i = 0; i < elements; ++i) {
                    // Sum over ranks of (rank + 1) * 1000 + i^2.
                    ASSERT_EQ(buffer[static_cast<std::size_t>(i)], 1000 * n * (n + 1) / 2 + n * i * i);
                }
            }
        }
    }
}

// On two nodes of eight whose links make one ring: messages inside a node go along it, and in every round each rank
// sends one message to the other node and gets one from it, so that all network cards are busy.
TEST(AllReduce, RingsKeepToTheLinksOfANode) {
    const std::vector<std::int64_t> order{0, 1, 2, 3, 7, 6, 5, 4};
    const auto links = std::make_shared<const std::vector<NodeRing>>(1, NodeRing{order, 1});
    const Collective sum = all_reduce(parse_algorithm("rings"), {16, 8, links}, 1600);
    std::set<std::pair<std::int64_t, std::int64_t>> joined;
    for (std::size_t i = 0; i < order.size(); ++i) {
        joined.emplace(order[i], order[(i + 1) % 8]);
        joined.emplace(order[(i + 1) % 8], order[i]);
    }
    std::map<std::int64_t, int> out, in;
    for (const Message& message : sum.messages(0)) {
        if (message.from / 8 != message.to / 8) {
            ++out[message.from];
            ++in[message.to];
        } else {
            EXPECT_TRUE(joined.contains({message.from % 8, message.to % 8})) << message.from << " to " << message.to;
        }
    }
    for (std::int64_t rank = 0; rank < 16; ++rank) {
        EXPECT_EQ(out[rank], 1) << rank;
        EXPECT_EQ(in[rank], 1) << rank;
    }
}

TEST(AllReduce, NobodyReadsWhatItReceivesInTheSameRound) {
    for (const Case& c : cases()) {
        const Collective sum = all_reduce(parse_algorithm(c.algorithm), c.group, 101);
        for (std::int64_t round = 0; round < sum.rounds(); ++round) {
            std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> sent;
            const auto transfers = sum.round(round);
            for (const Transfer& t : transfers) sent[t.from] = {t.begin, t.end};
            for (const Transfer& t : transfers) {
                const bool overlaps = sent.contains(t.to) && t.begin < sent[t.to].second && sent[t.to].first < t.end;
                EXPECT_FALSE(overlaps && t.combine == Combine::copy) << c.algorithm << " round " << round;
            }
        }
    }
}

TEST(AllReduce, PhasesCoverAllRoundsAndAreAlike) {
    for (const Case& c : cases()) {
        SCOPED_TRACE(c.algorithm + " on " + std::to_string(c.group.size));
        const Collective sum = all_reduce(parse_algorithm(c.algorithm), c.group, 720720);  // divisible by 1 .. 16
        std::int64_t next = 0;
        for (const Phase& phase : sum.phases()) {
            EXPECT_EQ(phase.first_round, next);
            next += phase.repeats;
            const auto shape = [&](std::int64_t round) {
                std::multiset<std::tuple<std::int64_t, std::int64_t, std::int64_t, Combine>> flows;
                for (const Transfer& t : sum.round(round)) flows.insert({t.from, t.to, 0, t.combine});
                return flows;
            };
            for (std::int64_t r = phase.first_round; r < next; ++r) {
                EXPECT_EQ(shape(r), shape(phase.first_round));
                const std::vector<Transfer> transfers = sum.round(r), first = sum.round(phase.first_round);
                for (std::size_t i = 0; i < transfers.size(); ++i) {
                    EXPECT_NEAR(static_cast<double>(transfers[i].end - transfers[i].begin),
                                static_cast<double>(first[i].end - first[i].begin), 1);
                }
            }
        }
        EXPECT_EQ(next, sum.rounds());
    }
}

// Bytes on the wire, written out: ring and halving send 2 (n-1)/n of the data a rank, doubling log2 n of it, and the
// tree 2 (n-1) data in all.
TEST(AllReduce, SendsWhatTheLiteratureSays) {
    const auto sent = [](const char* algorithm, std::int64_t n, std::int64_t elements) {
        const Collective sum_of_all = all_reduce(parse_algorithm(algorithm), {n, n}, elements);
        std::int64_t sum = 0;
        for (std::int64_t r = 0; r < sum_of_all.rounds(); ++r) {
            for (const Transfer& t : sum_of_all.round(r)) sum += t.end - t.begin;
        }
        return sum;
    };
    EXPECT_EQ(sent("ring", 8, 800), 2 * 7 * 800);
    EXPECT_EQ(sent("halving", 8, 800), 2 * 7 * 800);
    EXPECT_EQ(sent("doubling", 8, 800), 8 * 3 * 800);
    EXPECT_EQ(sent("tree", 8, 800), 2 * 7 * 800);
    EXPECT_EQ(sent("ring", 6, 600), 2 * 5 * 600);
    EXPECT_EQ(sent("doubletree", 8, 800), 2 * 7 * 800);
    EXPECT_EQ(sent("torus(2x4)", 8, 800), 2 * 7 * 800);
    EXPECT_EQ(sent("direct", 8, 800), 2 * 7 * 800);
    // Two of six fold in and out (2 x 2 x 600), the other four halve: 2 x 3 x 600.
    EXPECT_EQ(sent("halving", 6, 600), 2 * 2 * 600 + 2 * 3 * 600);
}

TEST(AllReduce, HalvingSendsTheLargestMessagesToTheNearestRank) {
    const Collective sum = all_reduce(parse_algorithm("halving"), {8, 8}, 800);
    const std::vector<std::int64_t> sizes{400, 200, 100, 100, 200, 400};
    const std::vector<std::int64_t> distances{1, 2, 4, 4, 2, 1};
    ASSERT_EQ(sum.rounds(), 6);
    for (std::size_t r = 0; r < sizes.size(); ++r) {
        for (const Transfer& t : sum.round(static_cast<std::int64_t>(r))) {
            EXPECT_EQ(t.end - t.begin, sizes[r]);
            EXPECT_EQ(std::abs(t.from - t.to), distances[r]);
        }
    }
}

// Two nodes of four: in each round every rank sends to each of the other three of its node at most once, and one
// message leaves each node by each of its ranks' network cards. All messages have an eighth of a quarter of the data.
TEST(AllReduce, RingsLeaveNodesByEveryRank) {
    const Collective sum = all_reduce(parse_algorithm("rings"), {8, 4}, 3200);
    ASSERT_EQ(sum.rounds(), 14);
    for (std::int64_t round = 0; round < sum.rounds(); ++round) {
        std::set<std::pair<std::int64_t, std::int64_t>> pairs;
        std::set<std::int64_t> leave, arrive;
        const std::vector<Message> messages = sum.messages(round);
        EXPECT_EQ(messages.size(), 32U);
        for (const Message& p : messages) {
            EXPECT_EQ(p.elements, 100);
            EXPECT_TRUE(pairs.insert({p.from, p.to}).second) << p.from << " to " << p.to;
            if (p.from / 4 == p.to / 4) continue;
            EXPECT_TRUE(leave.insert(p.from).second);
            EXPECT_TRUE(arrive.insert(p.to).second);
        }
        EXPECT_EQ(leave.size(), 8U);
        EXPECT_EQ(arrive.size(), 8U);
    }
    EXPECT_EQ(all_reduce(parse_algorithm("rings"), {8, 8}, 3200).round(0),
              all_reduce(parse_algorithm("ring"), {8, 8}, 3200).round(0))
        << "on one node they are one";
}

TEST(ParseAlgorithm, ReadsWhatItPrints) {
    for (const char* text : {"ring", "doubling", "halving", "tree", "hierarchical(ring,halving)", "doubletree", "rings",
                             "direct", "torus", "torus(4x6)"}) {
        EXPECT_EQ(to_string(parse_algorithm(text)), text);
    }
}

TEST(ParseAlgorithm, SaysWhatWouldBeRight) {
    const std::vector<std::pair<const char*, const char*>> wrong{
        {"rnig", "did you mean 'ring'"},
        {"", "there are ring, doubling, halving, tree, hierarchical"},
        {"hierarchical", "write it like hierarchical(ring,halving)"},
        {"hierarchical(ring)", "write it like"},
        {"hierarchical(ring,halving", "write it like"},
        {"hierarchical(ring,halfing)", "did you mean 'halving'"},
        {"hierarchical(doubling,ring)", "doubling has no reduce half"},
        {"hierarchical(torus,ring)", "torus cannot be a part of it"},
        {"hierarchical(direct,ring)", "direct has no reduce half"},
        {"torus(4)", "write it like torus(4x6)"},
        {"torus(0x4)", "1 or more"},
        {"torus(axb)", "rows of torus(axb)"},
        {"ring(3)", "nothing in brackets"},
        {"hierarchical(hierarchical(ring,ring),ring)", "unknown algorithm"},
    };
    for (const auto& [text, why] : wrong) {
        SCOPED_TRACE(text);
        try {
            parse_algorithm(text);
            FAIL() << "accepted";
        } catch (const InputError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr(why));
        }
    }
    EXPECT_THROW(all_reduce(parse_algorithm("hierarchical(ring,ring)"), {7, 6}, 10), InputError);
    EXPECT_THROW(all_reduce(parse_algorithm("torus(2x3)"), {7, 7}, 10), InputError);
}

}  // namespace
}  // namespace rehearse
