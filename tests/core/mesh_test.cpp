// SPDX-License-Identifier: Apache-2.0
#include "core/mesh.hpp"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

const Mesh mesh{{{"pipe", 2}, {"data", 3}, {"tensor", 4}}};

TEST(Mesh, VariesTheLastAxisFastest) {
    EXPECT_EQ(ranks(mesh), 24);
    EXPECT_EQ(coordinates(mesh, 17), (std::vector<std::int64_t>{1, 1, 1}));
    EXPECT_EQ(stride(mesh, 0), 12);
    EXPECT_EQ(stride(mesh, 2), 1);
    EXPECT_EQ(axis_index(mesh, "data"), 1);
    EXPECT_EQ(axis_index(mesh, "expert"), -1);
}

TEST(Mesh, NumbersEveryRankOnce) {
    for (std::int64_t rank = 0; rank < ranks(mesh); ++rank) EXPECT_EQ(rank_at(mesh, coordinates(mesh, rank)), rank);
}

TEST(GroupOf, GathersTheRanksAlongAnAxis) {
    EXPECT_EQ(group_of(mesh, 2, 17), (std::vector<std::int64_t>{16, 17, 18, 19}));
    EXPECT_EQ(group_of(mesh, 1, 17), (std::vector<std::int64_t>{13, 17, 21}));
    EXPECT_EQ(group_of(mesh, 0, 17), (std::vector<std::int64_t>{5, 17}));
}

}  // namespace
}  // namespace rehearse
