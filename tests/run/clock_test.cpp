// SPDX-License-Identifier: Apache-2.0
#include "run/clock.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rehearse::run {
namespace {

TEST(Clock, AheadIsTakenFromTheFastestAnswer) {
    // The other clock is 100 ahead. The slow answers were held up on one way only, the fast one on neither.
    const std::vector<Probing> probings{{0, 101, 11}, {20, 121, 22}, {30, 139, 40}};
    EXPECT_EQ(ahead_by(probings), 100);
}

TEST(Clock, AlignmentFollowsADrift) {
    // Ahead by 4 at time 100 and by 6 at time 200: 2 % fast.
    const Alignment alignment{100, 4, 200, 6};
    EXPECT_DOUBLE_EQ(alignment.at_rank_zero(100), 96);
    EXPECT_DOUBLE_EQ(alignment.at_rank_zero(150), 145);
    EXPECT_DOUBLE_EQ(alignment.at_rank_zero(200), 194);
}

TEST(Clock, AlignmentByOneMomentIsAShift) { EXPECT_DOUBLE_EQ((Alignment{100, 4, 100, 9}.at_rank_zero(150)), 146); }

}  // namespace
}  // namespace rehearse::run
