// SPDX-License-Identifier: Apache-2.0
#include "run/placement.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace rehearse::run {
namespace {

const Algorithm hierarchical{"hierarchical", "ring", "halving"};
const Algorithm ring{"ring", {}, {}};

std::vector<RankIndex> ranks(std::initializer_list<int> numbers) { return {numbers.begin(), numbers.end()}; }

TEST(Placement, CountsTheRanksOfAGroupOnEachHost) {
    const Placement placement{std::vector<std::int64_t>{0, 0, 0, 0, 4, 4, 4, 4}};
    const Group all = placement.group(ranks({0, 1, 2, 3, 4, 5, 6, 7}), hierarchical);
    EXPECT_EQ(all.size, 8);
    EXPECT_EQ(all.per_node, 4);
    EXPECT_EQ(placement.group(ranks({1, 3, 5, 7}), hierarchical).per_node, 2);
    EXPECT_EQ(placement.group(ranks({2, 6}), hierarchical).per_node, 1);
}

TEST(Placement, RefusesAHierarchyOverUnequalHosts) {
    const Placement placement{std::vector<std::int64_t>{0, 0, 0, 3, 3}};
    EXPECT_THROW(placement.group(ranks({0, 1, 2, 3, 4}), hierarchical), InputError);
    EXPECT_EQ(placement.group(ranks({0, 1, 2, 3, 4}), ring).size, 5);
}

TEST(Placement, RefusesAHierarchyOverRanksDealtOutInTurn) {
    const Placement placement{std::vector<std::int64_t>{0, 1, 0, 1}};
    EXPECT_THROW(placement.group(ranks({0, 1, 2, 3}), hierarchical), InputError);
    EXPECT_EQ(placement.group(ranks({0, 2, 1, 3}), hierarchical).per_node, 2);
}

}  // namespace
}  // namespace rehearse::run
