// SPDX-License-Identifier: Apache-2.0
#include "core/mesh.hpp"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

std::vector<RankIndex> ranks_of(const std::vector<int>& numbers) { return {numbers.begin(), numbers.end()}; }

const Mesh mesh{{{"pipe", 2}, {"data", 3}, {"tensor", 4}}};

TEST(Mesh, VariesTheLastAxisFastest) {
    EXPECT_EQ(ranks(mesh), 24);
    EXPECT_EQ(coordinates(mesh, RankIndex{17}), (std::vector<std::int64_t>{1, 1, 1}));
    EXPECT_EQ(stride(mesh, 0), 12);
    EXPECT_EQ(stride(mesh, 2), 1);
    EXPECT_EQ(axis_index(mesh, "data"), 1);
    EXPECT_EQ(axis_index(mesh, "expert"), -1);
}

TEST(Mesh, NumbersEveryRankOnce) {
    for (RankIndex rank{0}; rank < ranks(mesh); ++rank) EXPECT_EQ(rank_at(mesh, coordinates(mesh, rank)), rank);
}

TEST(GroupOf, GathersTheRanksAlongAnAxis) {
    EXPECT_EQ(group_of(mesh, 2, RankIndex{17}), ranks_of({16, 17, 18, 19}));
    EXPECT_EQ(group_of(mesh, 1, RankIndex{17}), ranks_of({13, 17, 21}));
    EXPECT_EQ(group_of(mesh, 0, RankIndex{17}), ranks_of({5, 17}));
    EXPECT_EQ(neighbour(mesh, 1, RankIndex{17}, 1), RankIndex{21});
    EXPECT_EQ(neighbour(mesh, 0, RankIndex{17}, -1), RankIndex{5});
    EXPECT_THROW(neighbour(mesh, 1, RankIndex{17}, 2), std::logic_error) << "beyond its axis";
}

TEST(JoinedAxes, AreAnAxisLikeAnyOther) {
    Mesh joined = mesh;
    EXPECT_EQ(join(joined, 1, 1), 1);
    const int both = join(joined, 1, 2), first = join(joined, 0, 1);
    EXPECT_EQ(both, 3);
    EXPECT_EQ(first, 4);
    EXPECT_EQ(join(joined, 1, 2), both) << "asked for twice, made once";
    EXPECT_FALSE(is_axis(joined, 5));
    EXPECT_EQ(name_of(joined, both), "data+tensor");
    EXPECT_EQ(size_of(joined, both), 12);
    EXPECT_EQ(stride(joined, first), 4);
    EXPECT_EQ(group_of(joined, first, RankIndex{17}), ranks_of({1, 5, 9, 13, 17, 21}));
    EXPECT_EQ(place_on(joined, first, RankIndex{17}), 4);
    EXPECT_EQ(place_on(joined, both, RankIndex{17}), 5);
    EXPECT_EQ(place_on(joined, 2, RankIndex{17}), 1);
}

// Places 0 and 3 of four stages, of two ranks each in three copies: ranks 0-5 and 18-23 have partners, the others none.
TEST(Pair, IsAnAxisOfTwoPlaces) {
    Mesh four{{{"pipe", 4}, {"data", 3}, {"tensor", 2}}};
    const int joined = join(four, 1, 2), pair = pair_of(four, 0, 0, 3);
    EXPECT_EQ(pair_of(four, 0, 0, 3), pair) << "asked for twice, made once";
    EXPECT_NE(pair_of(four, 0, 1, 3), pair);
    EXPECT_EQ(name_of(four, pair), "pipe(0,3)");
    EXPECT_EQ(axis_index(four, "pipe(0,3)"), pair);
    EXPECT_EQ(size_of(four, pair), 2);
    EXPECT_EQ(stride(four, pair), 18);
    EXPECT_EQ(group_of(four, pair, RankIndex{4}), ranks_of({4, 22}));
    EXPECT_EQ(group_of(four, pair, RankIndex{22}), ranks_of({4, 22}));
    EXPECT_EQ(group_of(four, pair, RankIndex{8}), ranks_of({8}));
    EXPECT_EQ(place_on(four, pair, RankIndex{4}), 0);
    EXPECT_EQ(place_on(four, pair, RankIndex{22}), 1);
    EXPECT_TRUE(is_partial(four, pair) && !is_partial(four, joined) && !is_partial(four, 0));
}

// Places 1 to 3 of five, of two ranks each: ranks 2-7 are in groups of three, the others alone.
TEST(Places, AreAnAxisOfThoseBetweenTwo) {
    Mesh five{{{"pipe", 5}, {"tensor", 2}}};
    const int places = places_of(five, 0, 0, 1, 3), pair = pair_of(five, 0, 1, 3);
    EXPECT_NE(places, pair);
    EXPECT_EQ(places_of(five, 0, 0, 1, 3), places) << "asked for twice, made once";
    EXPECT_EQ(name_of(five, places), "pipe(1..3)");
    EXPECT_EQ(axis_index(five, "pipe(1..3)"), places);
    EXPECT_EQ(size_of(five, places), 3);
    EXPECT_EQ(stride(five, places), 2);
    for (const int rank : {3, 5, 7}) {
        EXPECT_EQ(group_of(five, places, RankIndex{rank}), ranks_of({3, 5, 7}));
        EXPECT_EQ(place_on(five, places, RankIndex{rank}), (rank - 3) / 2);
    }
    for (const int rank : {1, 9}) EXPECT_EQ(group_of(five, places, RankIndex{rank}), ranks_of({rank}));
    EXPECT_TRUE(is_partial(five, places) && runs_along(five, places, 0) && !runs_along(five, places, 1));
}

// Places 1 and 2 of three, of three ranks each along data and two along tensor, twice: groups of six.
TEST(Places, AreJoinedWithTheAxesBehindThem) {
    Mesh both{{{"expert", 2}, {"pipe", 3}, {"data", 3}, {"tensor", 2}}};
    const int places = places_of(both, 1, 2, 1, 2);
    EXPECT_EQ(name_of(both, places), "pipe(1..2)+data");
    EXPECT_EQ(size_of(both, places), 6);
    EXPECT_EQ(stride(both, places), 2);
    EXPECT_EQ(group_of(both, places, RankIndex{9}), ranks_of({7, 9, 11, 13, 15, 17}));
    EXPECT_EQ(group_of(both, places, RankIndex{34}), ranks_of({24, 26, 28, 30, 32, 34}));
    EXPECT_EQ(group_of(both, places, RankIndex{5}), ranks_of({5}));
    EXPECT_EQ(place_on(both, places, RankIndex{9}), 1);
    EXPECT_EQ(place_on(both, places, RankIndex{34}), 5);
    EXPECT_TRUE(runs_along(both, places, 1) && runs_along(both, places, 2) && !runs_along(both, places, 3));
}

}  // namespace
}  // namespace rehearse
