// SPDX-License-Identifier: Apache-2.0
#include "prices/family_vote.hpp"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

const Covariance model{Smoothness::gaussian, {CovarianceTerm{1, 1, {1.0}}, CovarianceTerm{0.5, 1, {0.3}}}, 0.1};

// ran: 4 4 4 | 2 2 2, one unlike its neighbours among the latter.
TEST(FamilyVote, GoesWithTheKernelsThatRanNearBy) {
    std::vector<RanFamily> ran;
    for (const double x : {-3.0, -2.0, -1.0}) ran.push_back({{{x}, 0}, 4});
    for (const double x : {1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 3.0}) ran.push_back({{{x}, 0}, x == 1.6 ? 4U : 2U});
    const FamilyVote vote{model, ran};
    EXPECT_EQ(vote.at({{-1.5}, 0}), 4U);
    EXPECT_EQ(vote.at({{2.5}, 0}), 2U);
    EXPECT_EQ(vote.at({{1.1}, 0}), 2U);
    EXPECT_EQ(vote.at({{1.6}, 0}), 2U) << "one among six others is an accident";
}

TEST(FamilyVote, OfOneKernelIsItsFamily) {
    const FamilyVote vote{model, std::vector<RanFamily>{{{{0.0}, 0}, 3}}};
    EXPECT_EQ(vote.at({{0.5}, 0}), 3U);
    EXPECT_EQ(vote.at({{100.0}, 0}), 3U);
}

}  // namespace
}  // namespace rehearse
