// SPDX-License-Identifier: Apache-2.0
#include "core/quorum.hpp"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

TEST(Quorum, OfAWholeShareIsThatShare) {
    EXPECT_GT(0.28 * 25, 7) << "in floating point";
    EXPECT_EQ(waited_for(0.28, 25), 7);
    for (std::int64_t of = 1; of <= 1000; ++of) {
        for (std::int64_t of_them = 1; of_them <= of; ++of_them) {
            const double share = static_cast<double>(of_them) / static_cast<double>(of);
            ASSERT_EQ(waited_for(share, of), of_them) << of_them << " of " << of;
        }
    }
}

TEST(Quorum, RoundsPartsUpAndWaitsForOneAtLeast) {
    EXPECT_EQ(waited_for(0.3, 3), 1);
    EXPECT_EQ(waited_for(0.34, 3), 2);
    EXPECT_EQ(waited_for(1e-20, 1000), 1);
    EXPECT_EQ(waited_for(1, 3), 3);
}

}  // namespace
}  // namespace rehearse
