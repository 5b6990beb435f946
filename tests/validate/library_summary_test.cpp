// SPDX-License-Identifier: Apache-2.0
#include "validate/library_summary.hpp"

#include <gtest/gtest.h>

namespace rehearse::validate {
namespace {

// Measured in one millisecond.
LibraryAnswer of(Bytes bytes, double predicted) {
    LibraryAnswer it;
    it.row.bytes = bytes;
    it.row.time = Seconds{1e-3};
    it.predicted.time = Seconds{predicted * 1e-3};
    it.band = {Seconds{0.8e-3 * predicted}, Seconds{1.25e-3 * predicted}};
    return it;
}

// By hand: 10, 15, 30, 40 and 100 % off. The bus bandwidth of the one long row is half of the measured one, and only
// two rows have an answer by other machines' figures.
TEST(LibrarySummaries, AreErrorsAtTheNearestRank) {
    LibraryErrors errors;
    EXPECT_TRUE(errors.empty());
    errors.add(of(Bytes{1e3}, 1.1), of(Bytes{1e3}, 1.5));
    errors.add(of(Bytes{1e3}, 0.85), std::nullopt);
    errors.add(of(Bytes{1e6}, 1.3), of(Bytes{1e6}, 0.75));
    errors.add(of(Bytes{1e6}, 0.6), std::nullopt);
    errors.add(of(Bytes{512e6}, 2), of(Bytes{512e6}, 1.25));
    const LibrarySummary summary = errors.summary();
    EXPECT_EQ(summary.rows, 5U);
    EXPECT_NEAR(summary.errors.median, 0.3, 1e-12);
    EXPECT_NEAR(summary.errors.p90, 1, 1e-12);
    EXPECT_NEAR(summary.left_out.value().median, 0.25, 1e-12);
    EXPECT_NEAR(summary.asymptotic.value(), 0.5, 1e-12);
    EXPECT_NEAR(summary.asymptotic_left_out.value(), 0.2, 1e-12);
    EXPECT_DOUBLE_EQ(summary.in_band, 0.4);  // of 1.1 and 0.85
}

}  // namespace
}  // namespace rehearse::validate
