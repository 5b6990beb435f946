// SPDX-License-Identifier: Apache-2.0
#include "sim/sharing.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rehearse::sim {
namespace {

TEST(SharedLink, LetsFlowsThatStartTogetherGoTogether) {
    // Three flows of 2 s each on one link: a third each, so all end after 6 s.
    const std::array<std::int32_t, 3> members{0, 1, 2};
    const std::array<double, 3> start{1, 1, 1};
    std::array<double, 3> end{};
    double drained = 0;
    SharedLink{}.pass(members, start, 2, drained, end);
    EXPECT_EQ(end, (std::array<double, 3>{7, 7, 7}));
    EXPECT_EQ(drained, 7);
}

TEST(SharedLink, SharesFromEachFlowsOwnStartOn) {
    // 2 s each; b starts first at 0, a at 1. Until 1, b has half. From then both at half speed: b's other second takes
    // two, so b leaves at 3, when a has 1 of its 2 s; alone it needs one more: 4.
    const std::array<std::int32_t, 2> members{0, 1};
    const std::array<double, 2> start{1, 0};
    std::array<double, 2> end{};
    double drained = 0;
    SharedLink{}.pass(members, start, 2, drained, end);
    EXPECT_EQ(end, (std::array<double, 2>{4, 3}));
    EXPECT_EQ(drained, 4);
}

TEST(SharedLink, RestsBetweenFlowsThatDoNotMeet) {
    const std::array<std::int32_t, 2> members{0, 1};
    const std::array<double, 2> start{0, 5};
    std::array<double, 2> end{};
    double drained = 0;
    SharedLink{}.pass(members, start, 2, drained, end);
    EXPECT_EQ(end, (std::array<double, 2>{2, 7}));
}

TEST(SharedLink, StartsNothingBeforeItIsDrained) {
    const std::array<std::int32_t, 1> members{0};
    const std::array<double, 1> start{0};
    std::array<double, 1> end{};
    double drained = 3;
    SharedLink{}.pass(members, start, 2, drained, end);
    EXPECT_EQ(end[0], 5);
    EXPECT_EQ(drained, 5);
}

TEST(SharedLink, NeverLowersAnEnd) {
    const std::array<std::int32_t, 1> members{0};
    const std::array<double, 1> start{0};
    std::array<double, 1> end{9};
    double drained = 0;
    SharedLink{}.pass(members, start, 2, drained, end);
    EXPECT_EQ(end[0], 9);
    EXPECT_EQ(drained, 2);
}

}  // namespace
}  // namespace rehearse::sim
