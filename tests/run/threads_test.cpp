// SPDX-License-Identifier: Apache-2.0
#include "run/threads.hpp"

#include <gtest/gtest.h>

namespace rehearse::run {
namespace {

TEST(FairShare, OfRanksBoundToTheirOwnCoresIsAllOfThem) {
    const std::vector<CoreMask> masks{{0b0011}, {0b1100}};
    EXPECT_EQ(fair_share(masks, 0), 2);
    EXPECT_EQ(fair_share(masks, 1), 2);
}

TEST(FairShare, OfRanksOnTheSameCoresIsDivided) {
    const std::vector<CoreMask> masks(3, CoreMask{0xFF, 0b1});
    EXPECT_EQ(fair_share(masks, 1), 3);
}

TEST(FairShare, IsAtLeastOne) {
    const std::vector<CoreMask> masks(4, CoreMask{0b11});
    EXPECT_EQ(fair_share(masks, 3), 1);
}

}  // namespace
}  // namespace rehearse::run
