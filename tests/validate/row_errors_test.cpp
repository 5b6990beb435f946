// SPDX-License-Identifier: Apache-2.0
#include "validate/row_errors.hpp"

#include <gmock/gmock.h>

namespace rehearse::validate {
namespace {

TEST(RowErrors, AreRelativeToWhatWasPublished) {
    RowErrors errors;
    errors.add(110, 100, {100, 121});  // 10 %, at the band's lower end
    errors.add(50, 100, {40, 60});     // 50 %, outside
    errors.add(100, 100, {50, 200});   // right
    const ErrorSummary summary = errors.summary();
    EXPECT_EQ(summary.rows, 3U);
    EXPECT_DOUBLE_EQ(summary.mean, 0.2);
    EXPECT_DOUBLE_EQ(summary.median, 0.1);
    EXPECT_DOUBLE_EQ(summary.p90, 0.1 + 0.8 * 0.4);  // rank 0.9 x 2 = 1.8
    EXPECT_DOUBLE_EQ(summary.in_band, 2.0 / 3);
    EXPECT_DOUBLE_EQ(summary.width, 1.5);  // of 1.21, 1.5 and 4
}

TEST(RowErrors, HaveNoWidthWithoutBands) {
    RowErrors errors;
    errors.add(0.25);
    EXPECT_EQ(errors.summary().width, 0);
    EXPECT_EQ(errors.summary().in_band, 0);
}

TEST(Residual, IsOneAtTheBandsEnd) {
    EXPECT_DOUBLE_EQ(residual_of("s", 100, 200, {50, 200}).score, 1);
    EXPECT_DOUBLE_EQ(residual_of("s", 100, 50, {50, 400}).score, 1);
    EXPECT_NEAR(residual_of("s", 100, 200, {50, 400}).score, 0.5, 1e-12);  // a factor of 2 of one of 4
    EXPECT_DOUBLE_EQ(residual_of("s", 100, 100, {50, 400}).width, 8);
}

TEST(Coverage, OfASystemIsByTheBandsOfTheOthers) {
    // Without a: nine in ten of 1 and 2 lie below 1.9, and so does a's. Without b: all others lie below 0.5, b's do
    // not.
    const Coverage coverage = coverage_without_system({{"a", 0.5, 4}, {"b", 1, 4}, {"b", 2, 4}});
    EXPECT_DOUBLE_EQ(coverage.in_band, 1.0 / 3);
    EXPECT_DOUBLE_EQ(coverage.width, 2);  // of 4 to the 1.9, and twice 4 to the 0.5
}

}  // namespace
}  // namespace rehearse::validate
