// SPDX-License-Identifier: Apache-2.0
#include "validate/language_summary.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rehearse::validate {
namespace {

// Predicted in `predicted` seconds, measured in one.
BandedAnswer predicted(double seconds, std::optional<double> with_pilot = std::nullopt) {
    BandedAnswer it;
    it.answer.row.measured = Seconds{1};
    it.answer.row.devices = 8;
    it.answer.time.compute = Seconds{seconds};
    it.answer.with_pilot = with_pilot;
    return it;
}

// By hand: errors 20, 10 and 40 %; the middle one of 20, 5 and 40 % where a pilot is better than none.
TEST(LanguageSummaries, AreMeansOfErrorsAndTheMiddleOfTheBest) {
    const std::vector<BandedAnswer> rows = {predicted(1.2), predicted(0.9, 0.05), predicted(1.4)};
    const LanguageSummary summary = summarize(rows);
    EXPECT_EQ(summary.rows, 3U);
    EXPECT_NEAR(summary.cold, 0.7 / 3, 1e-12);
    EXPECT_NEAR(summary.pilot.value(), 0.05, 1e-12);
    EXPECT_NEAR(summary.middle, 0.2, 1e-12);
    EXPECT_FALSE(summary.memory);
    EXPECT_FALSE(summary.cold_bands);
}

// Of three rows two have a memory, one 10 % too much and one 30 % too little, and two a band, of which one holds.
TEST(LanguageSummaries, CountWhatHasAMemoryAndABand) {
    std::vector<BandedAnswer> rows(3, predicted(1));
    rows[0].answer.memory.weights = Bytes{110};
    rows[0].answer.row.memory = Bytes{100};
    rows[2].answer.memory.weights = Bytes{70};
    rows[2].answer.row.memory = Bytes{100};
    rows[0].cold = LanguageBand{{Seconds{0.5}, Seconds{1.5}}, 1.5, true};
    rows[1].cold = LanguageBand{{Seconds{1.1}, Seconds{1.2}}, 1.2, false};
    const LanguageSummary summary = summarize(rows);
    ASSERT_TRUE(summary.memory);
    EXPECT_EQ(summary.memory->rows, 2U);
    EXPECT_NEAR(summary.memory->mean, 0.2, 1e-12);
    EXPECT_NEAR(summary.memory->most, 0.3, 1e-12);
    ASSERT_TRUE(summary.cold_bands);
    EXPECT_DOUBLE_EQ(summary.cold_bands->held, 0.5);
    EXPECT_NEAR(summary.cold_bands->reach, 0.5, 1e-12);
    EXPECT_FALSE(summary.pilot_bands);
}

}  // namespace
}  // namespace rehearse::validate
