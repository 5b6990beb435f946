// SPDX-License-Identifier: Apache-2.0
#include "prices/interval.hpp"

#include <gmock/gmock.h>

#include "core/units.hpp"

namespace rehearse::prices {
namespace {

// The middle nine in ten of a normal distribution lie between its 5 % and 95 % quantiles: Phi(z) = 0.95.
TEST(Interval, HoldsNineInTenOfANormal) { EXPECT_NEAR(0.5 * std::erfc(-ninety_percent / std::sqrt(2.0)), 0.95, 1e-4); }

TEST(Interval, ReachesAsFarBelowAsAbove) {
    // An error of 10 %: 1 + 0.1645 either side, by division below.
    const Interval<Seconds> band = around(Seconds{2}, reach(0.1));
    EXPECT_NEAR(band.high.value, 2.329, 1e-12);
    EXPECT_NEAR(band.low.value, 2 / 1.1645, 1e-12);
    EXPECT_NEAR(log_reach(1 / ninety_percent), 2.718281828, 1e-8);
    EXPECT_TRUE(band.contains(Seconds{2.3}));
    EXPECT_FALSE(band.contains(Seconds{1.7}));
}

TEST(Interval, IndependentErrorsCombineBySquares) {
    EXPECT_NEAR(independent_factors({std::exp(0.3), std::exp(0.4)}), std::exp(0.5), 1e-12);
    EXPECT_DOUBLE_EQ(independent_factors({1.1}), 1.1);
    // e^3 and e^-4 (a factor below 1 is as far from it as its inverse) are 5 logarithms together.
    EXPECT_NEAR(independent_factors({std::exp(3), std::exp(-4)}), std::exp(5), 1e-9);
}

}  // namespace
}  // namespace rehearse::prices
