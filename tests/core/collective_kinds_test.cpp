// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter, all-gather, broadcast and all-to-all, executed on whole numbers and held to what MPI says they are.
#include <gmock/gmock.h>

#include <array>
#include <set>
#include <span>

#include "core/error.hpp"
#include "tests/core/collective_run.hpp"

namespace rehearse {
namespace {

using test::executed;
using test::given;
using test::initial;
using test::Memory;
using test::nothing;

constexpr std::array sizes{0, 1, 2, 5, 16, 48, 101};

// Every algorithm of a kind on 1 to 17 ranks; what has brackets stands in collective_test.cpp.
template <typename Check>
void for_all(CollectiveKind kind, const Check& check) {
    for (const AlgorithmName& algorithm : algorithms(kind)) {
        if (algorithm.name.find('(') != std::string_view::npos) continue;
        for (std::int64_t n = 1; n <= 17; ++n) {
            for (const std::int64_t elements : sizes) {
                SCOPED_TRACE(std::string{to_string(kind)} + " " + std::string{algorithm.name} + " on " +
                             std::to_string(n) + ", " + std::to_string(elements));
                check(parse_algorithm(algorithm.name, kind), n, elements);
            }
        }
    }
}

void expect_reduce_scatter(const Algorithm& algorithm, const Group& group, std::int64_t elements) {
    const std::int64_t n = group.size;
    const Collective sum{CollectiveKind::reduce_scatter, algorithm, group, elements};
    const Memory after = executed(sum, given(sum));
    for (std::int64_t r = 0; r < n; ++r) {
        for (std::int64_t i = sum.chunk(r).begin; i < sum.chunk(r).end; ++i) {
            // Sum over ranks of (rank + 1) * 1000 + i^2.
            ASSERT_EQ(after[std::size_t(r)][std::size_t(i)], 1000 * n * (n + 1) / 2 + n * i * i);
        }
    }
}

TEST(ReduceScatter, LeavesEachRankTheSumOfItsChunk) {
    for_all(CollectiveKind::reduce_scatter, [](const Algorithm& algorithm, std::int64_t n, std::int64_t elements) {
        expect_reduce_scatter(algorithm, {n, n}, elements);
    });
}

void expect_all_gather(const Algorithm& algorithm, const Group& group, std::int64_t elements) {
    const std::int64_t n = group.size;
    const Collective gather{CollectiveKind::all_gather, algorithm, group, elements};
    Memory before(std::size_t(n), std::vector<std::int64_t>(std::size_t(elements), nothing));
    std::vector<std::int64_t> all;
    for (std::int64_t r = 0; r < n; ++r) {
        for (std::int64_t i = gather.chunk(r).begin; i < gather.chunk(r).end; ++i) {
            before[std::size_t(r)][std::size_t(i)] = initial(r, i);
            all.push_back(initial(r, i));
        }
    }
    for (const auto& buffer : executed(gather, before)) ASSERT_EQ(buffer, all);
}

TEST(AllGather, GivesEveryRankTheChunksOfAll) {
    for_all(CollectiveKind::all_gather, [](const Algorithm& algorithm, std::int64_t n, std::int64_t elements) {
        expect_all_gather(algorithm, {n, n}, elements);
    });
}

// In one node by all three rings, on three along the first of them.
TEST(RingsOfANode, DoWhatARingDoes) {
    for (const std::int64_t size : {4, 12}) {
        for (const std::int64_t elements : sizes) {
            SCOPED_TRACE(std::to_string(size) + ", " + std::to_string(elements));
            const Group group{size, 4, test::unequal_rings()};
            expect_reduce_scatter({}, group, elements);
            expect_all_gather({}, group, elements);
        }
    }
}

// On whole nodes, with fewer ranks on the last one, and over links that do not join all pairs.
TEST(RingsOfAllNodes, ScatterAndGather) {
    for (const Group& group : {Group{8, 4}, Group{12, 3}, Group{10, 4}, Group{17, 8}, Group{6, 1}, Group{5, 5},
                               Group{12, 4, test::unequal_rings()}, Group{11, 4, test::unequal_rings()}}) {
        for (const std::int64_t elements : sizes) {
            SCOPED_TRACE(std::to_string(group.size) + " by " + std::to_string(group.per_node));
            expect_reduce_scatter(parse_algorithm("rings", CollectiveKind::reduce_scatter), group, elements);
            expect_all_gather(parse_algorithm("rings", CollectiveKind::all_gather), group, elements);
        }
    }
}

// Of 7 ranks, four and three: three rings, each of which crosses from node to node by cards of its own.
TEST(RingsOfAllNodes, LeaveByAsManyCardsAsTheSmallestNodeHas) {
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather}) {
        for (const auto& [size, cards] : {std::pair{8, 4U}, std::pair{7, 3U}, std::pair{5, 1U}}) {
            const Collective rings{kind, parse_algorithm("rings", kind), {size, 4}, 5600};
            for (std::int64_t round = 0; round < rings.rounds(); ++round) {
                std::set<std::int64_t> leave, arrive;
                for (const Message& message : rings.messages(round)) {
                    if (message.from / 4 == message.to / 4) continue;
                    EXPECT_TRUE(leave.insert(message.from).second);
                    EXPECT_TRUE(arrive.insert(message.to).second);
                }
                EXPECT_EQ(leave.size(), 2 * cards) << to_string(kind) << " on " << size;
                EXPECT_EQ(arrive.size(), 2 * cards);
            }
        }
    }
}

TEST(Broadcast, GivesEveryRankWhatTheRootHas) {
    const auto kind = CollectiveKind::broadcast;
    for_all(kind, [&](const Algorithm& algorithm, std::int64_t n, std::int64_t elements) {
        for (const std::int64_t root : std::set<std::int64_t>{0, n / 2, n - 1}) {
            const Collective broadcast{kind, algorithm, {n, n}, elements, root};
            const Memory before = given(broadcast);
            for (const auto& buffer : executed(broadcast, before)) ASSERT_EQ(buffer, before[std::size_t(root)]);
        }
    });
}

TEST(AllToAll, GivesRankDTheChunkDOfEveryRank) {
    const auto kind = CollectiveKind::all_to_all;
    for_all(kind, [&](const Algorithm& algorithm, std::int64_t n, std::int64_t elements) {
        const Collective exchange{kind, algorithm, {n, n}, elements};
        const Memory before = given(exchange);
        const Memory after = executed(exchange, before);
        for (std::int64_t d = 0; d < n; ++d) {
            const auto mine = std::span{after[std::size_t(d)]};
            ASSERT_TRUE(std::ranges::equal(mine.first(std::size_t(elements)), before[std::size_t(d)]));
            for (std::int64_t s = 0; s < n; ++s) {
                const Range part = exchange.chunk(d);
                for (std::int64_t i = part.begin; i < part.end; ++i) {
                    const std::int64_t at = elements + s * exchange.slot() + i - part.begin;
                    ASSERT_EQ(mine[std::size_t(at)], initial(s, i));
                }
            }
        }
    });
}

/// Rows of `row` elements: a window of three with padding, one of three in every second row, one that reaches two ranks
/// further, one that moves on by less than a rank's rows.
constexpr std::array halos{Halo{4, 6, 4, 1}, Halo{4, 5, 4, 1}, Halo{1, 5, 1, 2}, Halo{5, 6, 4, 0}, Halo{4, 4, 4, 0}};

TEST(HaloExchange, GivesEachRankTheRowsThatItNeeds) {
    constexpr std::int64_t n = 4, row = 3;
    for (const Halo& halo : halos) {
        const std::int64_t elements = (halo.own + halo.size) * row;
        const Collective lend{CollectiveKind::halo, {.name = "lend", .halo = halo}, {n, n}, elements};
        SCOPED_TRACE(to_string(lend.algorithm()));
        Memory before(std::size_t(n), std::vector<std::int64_t>(std::size_t(elements), nothing));
        const auto of_all = [&](std::int64_t i) { return 7 * i + 1; };  // the i-th element of the whole
        for (std::int64_t r = 0; r < n; ++r) {
            for (std::int64_t i = 0; i < halo.own * row; ++i) {
                before[std::size_t(r)][std::size_t(i)] = of_all(r * halo.own * row + i);
            }
        }
        const Memory after = executed(lend, before);
        for (std::int64_t r = 0; r < n; ++r) {
            for (std::int64_t i = 0; i < halo.size * row; ++i) {
                const std::int64_t place = halo.first(r) * row + i, owner = place / (halo.own * row);
                const bool others = place >= 0 && owner < n && owner != r;
                EXPECT_EQ(after[std::size_t(r)][std::size_t(halo.own * row + i)], others ? of_all(place) : nothing);
            }
        }
    }
}

TEST(HaloExchange, AddsUpWhatComesBackOfEachRow) {
    constexpr std::int64_t n = 4, row = 3;
    for (const Halo& halo : halos) {
        const std::int64_t elements = (halo.size + 2 * halo.own) * row;
        const Collective back{CollectiveKind::halo, {.name = "return", .halo = halo}, {n, n}, elements};
        SCOPED_TRACE(to_string(back.algorithm()));
        Memory before(std::size_t(n), std::vector<std::int64_t>(std::size_t(elements), 0));
        std::vector<std::int64_t> expected(std::size_t(n * halo.own * row));
        for (std::int64_t r = 0; r < n; ++r) {
            for (std::int64_t i = 0; i < halo.size * row; ++i) {
                before[std::size_t(r)][std::size_t(i)] = initial(r, i);
                const std::int64_t place = halo.first(r) * row + i;
                const bool others = place >= 0 && place < n * halo.own * row && place / (halo.own * row) != r;
                if (others) expected[std::size_t(place)] += initial(r, i);
            }
        }
        const Memory after = executed(back, before);
        for (std::int64_t i = 0; i < std::ssize(expected); ++i) {
            const auto& of_owner = after[std::size_t(i / (halo.own * row))];
            const std::int64_t place = halo.size * row + i % (halo.own * row);
            EXPECT_EQ(of_owner[std::size_t(place)] + of_owner[std::size_t(place + halo.own * row)],
                      expected[std::size_t(i)]);
        }
    }
}

TEST(EveryCollective, HasPhasesThatCoverItsRoundsAndAreAlike) {
    for (const CollectiveKind kind : collective_kinds()) {
        for_all(kind, [&](const Algorithm& algorithm, std::int64_t n, std::int64_t) {
            // Divisible by 1 .. 16, and long enough for eleven pieces of a pipeline.
            const Collective collective{kind, algorithm, {n, algorithm.inside.empty() ? n : 1}, 720720};
            std::int64_t next = 0;
            for (const Phase& phase : collective.phases()) {
                ASSERT_EQ(phase.first_round, next);
                next += phase.repeats;
                const std::vector<Message> first = collective.messages(phase.first_round);
                for (std::int64_t r = phase.first_round; r < next; ++r) {
                    const std::vector<Message> messages = collective.messages(r);
                    ASSERT_EQ(messages.size(), first.size());
                    for (std::size_t i = 0; i < messages.size(); ++i) {
                        EXPECT_EQ(messages[i].combine, first[0].combine) << "a round sums or copies, not both";
                        ASSERT_EQ(std::pair(messages[i].from, messages[i].to), std::pair(first[i].from, first[i].to));
                        ASSERT_NEAR(double(messages[i].elements), double(first[i].elements), 1);
                    }
                }
            }
            ASSERT_EQ(next, collective.rounds());
        });
    }
}

TEST(EveryCollective, SendsOneMessageFromARankToAnotherInARound) {
    for (const CollectiveKind kind : collective_kinds()) {
        for_all(kind, [&](const Algorithm& algorithm, std::int64_t n, std::int64_t elements) {
            const Collective collective{kind, algorithm, {n, n}, elements};
            for (std::int64_t round = 0; round < collective.rounds(); ++round) {
                std::set<std::pair<std::int64_t, std::int64_t>> pairs;
                std::int64_t sum = 0;
                for (const Message& message : collective.messages(round)) {
                    EXPECT_NE(message.from, message.to);
                    EXPECT_TRUE(pairs.insert({message.from, message.to}).second);
                    sum += message.elements;
                }
                for (const Transfer& t : collective.round(round)) sum -= t.from == t.to ? 0 : t.end - t.begin;
                EXPECT_EQ(sum, 0);
            }
        });
    }
}

// In elements, over all ranks, of n ranks and data of 800.
TEST(EveryCollective, SendsWhatTheLiteratureSays) {
    using enum CollectiveKind;
    const auto sent = [](CollectiveKind kind, const char* algorithm, std::int64_t n) {
        const Collective collective{kind, parse_algorithm(algorithm, kind), {n, n}, 800};
        std::int64_t sum = 0;
        for (std::int64_t r = 0; r < collective.rounds(); ++r) {
            for (const Message& p : collective.messages(r)) sum += p.elements;
        }
        return sum;
    };
    for (const char* name : {"ring", "halving", "pairwise"}) EXPECT_EQ(sent(reduce_scatter, name, 8), 7 * 800) << name;
    for (const char* name : {"ring", "doubling", "pairwise"}) EXPECT_EQ(sent(all_gather, name, 8), 7 * 800) << name;
    for (const char* name : {"tree", "chain", "doubletree"}) EXPECT_EQ(sent(broadcast, name, 8), 7 * 800) << name;
    // Scatter: 4/8 + 2 x 2/8 + 4 x 1/8 of the data; then a ring.
    EXPECT_EQ(sent(broadcast, "scatter", 8), 3 * 400 + 7 * 800);
    for (const char* name : {"pairwise", "turns", "grouped"}) EXPECT_EQ(sent(all_to_all, name, 8), 7 * 800) << name;
    // Bruck: log2 n rounds of half the blocks.
    EXPECT_EQ(sent(all_to_all, "bruck", 8), 8 * 3 * 400);
}

// Sanders, Speck, Träff 2009: while the pipeline is full, a rank sends no more than two pieces, each of a half.
TEST(DoubleTree, LetsNoRankSendOrReceiveMoreThanItsShare) {
    for (std::int64_t n = 2; n <= 40; ++n) {
        const Collective sum = all_reduce(parse_algorithm("doubletree"), {n, n}, 1 << 20);
        const std::int64_t piece = (1 << 19) / pipeline_pieces(sum.algorithm(), 1 << 20);
        for (std::int64_t round = 0; round < sum.rounds(); ++round) {
            std::vector<std::int64_t> in(std::size_t(n), 0), out(std::size_t(n), 0);
            for (const Message& p : sum.messages(round)) {
                out[std::size_t(p.from)] += p.elements;
                in[std::size_t(p.to)] += p.elements;
            }
            // Up: two children in one tree, none in the other; its own part once in each. Down: the other way round.
            EXPECT_LE(std::ranges::max(in), 2 * piece) << n;
            EXPECT_LE(std::ranges::max(out), 2 * piece) << n;
        }
    }
}

TEST(TorusSides, AreAsSquareAsTheNumberOfRanksAllows) {
    const Algorithm open = parse_algorithm("torus");
    using Sides = std::pair<std::int64_t, std::int64_t>;
    EXPECT_EQ(torus_sides(open, 36), (Sides{6, 6}));
    EXPECT_EQ(torus_sides(open, 24), (Sides{4, 6}));
    EXPECT_EQ(torus_sides(open, 7), (Sides{1, 7}));
    EXPECT_EQ(torus_sides(parse_algorithm("torus(8x3)"), 24), (Sides{8, 3}));
}

TEST(ParseCollectiveKind, KnowsWhichCollectiveItIsFor) {
    for (const CollectiveKind kind : collective_kinds()) {
        SCOPED_TRACE(to_string(kind));
        try {
            parse_algorithm("bruk", kind);
            FAIL() << "accepted";
        } catch (const InputError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr(std::string{to_string(kind)}));
            const bool known = kind == CollectiveKind::all_to_all;
            EXPECT_EQ(std::string_view{error.what()}.find("did you mean 'bruck'") != std::string_view::npos, known);
        }
    }
}

// Adasum's rounds in plain loops on real numbers.
std::vector<std::vector<double>> adasum_executed(const Collective& c, std::vector<std::vector<double>> memory) {
    for (auto& buffer : memory) buffer.resize(std::size_t(c.extent()), 1e9);
    for (std::int64_t round = 0; round < c.rounds(); ++round) {
        const auto before = memory;
        for (const Transfer& t : c.round(round)) {
            const std::vector<double>& from = before[std::size_t(t.from)];
            std::vector<double>& to = memory[std::size_t(t.to)];
            const std::size_t products = to.size() - 3;
            std::array<double, 3> dots{};
            for (std::int64_t i = t.begin; i < t.end; ++i) {
                const double a = from[std::size_t(i)], b = from[std::size_t(i + t.shift)];
                dots = {dots[0] + a * b, dots[1] + a * a, dots[2] + b * b};
                if (t.combine == Combine::reduce) to[std::size_t(i + t.shift)] += a;
                if (t.combine == Combine::copy || t.combine == Combine::beside) to[std::size_t(i + t.shift)] = a;
                if (t.combine != Combine::blend) continue;
                const double ab = from[products], aa = from[products + 1], bb = from[products + 2];
                to[std::size_t(i)] = to[std::size_t(i + t.shift)] =
                    (aa > 0 ? 1 - ab / (2 * aa) : 1) * a + (bb > 0 ? 1 - ab / (2 * bb) : 1) * b;
            }
            if (t.combine == Combine::dots) std::ranges::copy(dots, to.begin() + std::ptrdiff_t(products));
        }
    }
    return memory;
}

std::vector<std::vector<double>> adasum_on(std::int64_t n, std::int64_t elements,
                                           double (*value)(std::int64_t rank, std::int64_t i)) {
    std::vector<std::vector<double>> given(static_cast<std::size_t>(n));
    for (std::int64_t r = 0; r < n; ++r) {
        for (std::int64_t i = 0; i < elements; ++i) given[std::size_t(r)].push_back(value(r, i));
    }
    return adasum_executed(all_reduce(parse_algorithm("adasum"), {n, n}, elements), given);
}

TEST(Adasum, AddsOrthogonalVectorsAndAveragesEqualOnes) {
    for (const std::int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 12, 16}) {
        for (const std::int64_t elements : {1, 16, 37}) {
            // Rank r has element r alone.
            const auto added = adasum_on(n, elements, [](std::int64_t r, std::int64_t i) { return r == i ? 4.0 : 0; });
            const auto averaged = adasum_on(n, elements, [](std::int64_t, std::int64_t i) { return 1.0 + double(i); });
            for (std::int64_t r = 0; r < n; ++r) {
                for (std::int64_t i = 0; i < elements; ++i) {
                    ASSERT_EQ(added[std::size_t(r)][std::size_t(i)], i < n ? 4 : 0) << n;
                    ASSERT_NEAR(averaged[std::size_t(r)][std::size_t(i)], 1.0 + double(i), 1e-9) << n;
                }
            }
        }
    }
}

TEST(Adasum, CombinesPairsOfPairs) {
    // a = (1, 0), b = (1, 1): a.b = 1, |a|^2 = 1, |b|^2 = 2: a / 2 + 3 b / 4 = (1.25, 0.75). The other pair c = (0, 2),
    // d = (2, 0) is orthogonal: (2, 2). Of both: 4, 2.125, 8: (1 - 4 / 4.25) (1.25, 0.75) + 0.75 (2, 2).
    static constexpr std::array<std::array<double, 2>, 4> vectors{{{1, 0}, {1, 1}, {0, 2}, {2, 0}}};
    const auto value = [](std::int64_t r, std::int64_t i) { return vectors[std::size_t(r)][std::size_t(i)]; };
    const auto two = adasum_on(2, 2, value), four = adasum_on(4, 2, value);
    for (const auto& memory : two) {
        EXPECT_DOUBLE_EQ(memory[0], 1.25);
        EXPECT_DOUBLE_EQ(memory[1], 0.75);
    }
    const double share = 1 - 4 / 4.25;
    for (const auto& memory : four) {
        EXPECT_NEAR(memory[0], share * 1.25 + 1.5, 1e-14);
        EXPECT_NEAR(memory[1], share * 0.75 + 1.5, 1e-14);
    }
}

TEST(Adasum, IsNoSumToChooseFromAndNoPartOfAHierarchy) {
    for (const AlgorithmName& each : algorithms(CollectiveKind::all_reduce)) EXPECT_NE(each.name, "adasum");
    EXPECT_THROW(parse_algorithm("hierarchical(ring,adasum)"), InputError);
    EXPECT_THROW(parse_algorithm("adasum", CollectiveKind::broadcast), InputError);
}

}  // namespace
}  // namespace rehearse
