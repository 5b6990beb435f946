// SPDX-License-Identifier: Apache-2.0
#include "picture/ticks.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"

namespace rehearse::picture {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::Pointwise;

// Ticks are products of a count and a step, or powers: right to a few units of the last place.
MATCHER(AreEqual, "") {
    const auto& [a, b] = arg;
    return std::abs(a - b) <= 1e-12 * std::abs(b);
}

struct Case {
    Scale scale;
    Range range;
    int most;
    std::vector<double> ticks;
};

TEST(Ticks, OfRangesChosenByHand) {
    const std::vector<Case> cases{
        {Scale::linear, {0, 10}, 6, {0, 2, 4, 6, 8, 10}},
        {Scale::linear, {0, 10}, 5, {0, 5, 10}},
        {Scale::linear, {0, 10}, 11, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
        {Scale::linear, {-3, 3}, 7, {-3, -2, -1, 0, 1, 2, 3}},
        {Scale::linear, {0.13, 0.29}, 4, {0.2}},
        {Scale::linear, {0.13, 0.29}, 5, {0.15, 0.2, 0.25}},
        {Scale::linear, {2.7e9, 11e9}, 6, {4e9, 6e9, 8e9, 10e9}},
        {Scale::log, {1, 1000}, 6, {1, 10, 100, 1000}},
        {Scale::log, {0.3, 40}, 6, {1, 10}},
        {Scale::log, {1, 10}, 6, {1, 2, 5, 10}},
        {Scale::log, {3, 60}, 6, {5, 10, 20, 50}},
        {Scale::log, {1, 1e9}, 5, {1, 100, 1e4, 1e6, 1e8}},
        {Scale::log, {1e-7, 1e-3}, 5, {1e-7, 1e-6, 1e-5, 1e-4, 1e-3}},
        {Scale::log, {3, 4}, 6, {3, 3.2, 3.4, 3.6, 3.8, 4}},
    };
    for (const Case& c : cases) {
        SCOPED_TRACE(testing::Message() << c.range.low << " to " << c.range.high << ", at most " << c.most);
        EXPECT_THAT(ticks(c.scale, c.range, c.most).major, Pointwise(AreEqual(), c.ticks));
    }
}

TEST(Ticks, BetweenTheDecadesAreMinor) {
    EXPECT_THAT(log_ticks({1, 100}, 6).minor, Pointwise(AreEqual(), {2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 20.0, 30.0,
                                                                     40.0, 50.0, 60.0, 70.0, 80.0, 90.0}));
    EXPECT_THAT(log_ticks({1, 1e9}, 5).minor, Pointwise(AreEqual(), {10.0, 1e3, 1e5, 1e7, 1e9}));
}

TEST(NiceRange, BeginsAndEndsAtATick) {
    EXPECT_EQ(nice_range(Scale::linear, {0.3, 9.1}, 6), (Range{0, 10}));
    EXPECT_EQ(nice_range(Scale::linear, {0, 10}, 6), (Range{0, 10}));
    EXPECT_EQ(nice_range(Scale::linear, {-7, 33}, 6), (Range{-10, 40}));
    EXPECT_EQ(nice_range(Scale::linear, {4, 4}, 6), (Range{2, 6}));
    EXPECT_EQ(nice_range(Scale::linear, {0, 0}, 3), (Range{-1, 1}));
    EXPECT_EQ(nice_range(Scale::log, {3, 40}, 6), (Range{2, 50}));
    EXPECT_EQ(nice_range(Scale::log, {1, 1000}, 6), (Range{1, 1000}));
    EXPECT_EQ(nice_range(Scale::log, {7, 51}, 6), (Range{5, 100}));
    EXPECT_EQ(nice_range(Scale::log, {10, 10}, 6), (Range{5, 20}));
    EXPECT_THROW(nice_range(Scale::log, {0, 1}, 6), std::logic_error);
}

// Neighbours differ, whatever is zoomed to.
TEST(TextOfTime, HasTheDigitsOfItsStep) {
    EXPECT_EQ(text_of_time(1.2345678, 1e-7), "1.2345678 s");
    EXPECT_EQ(text_of_time(1.2345679, 1e-7), "1.2345679 s");
    EXPECT_EQ(text_of_time(0.0015, 5e-4), "1.5 ms");
    EXPECT_EQ(text_of_time(0.05, 0.05), "50 ms");
    EXPECT_EQ(text_of_time(2e-6, 1e-9), "2.000 us");
    EXPECT_EQ(text_of_time(3e-9, 1e-9), "3 ns");
    EXPECT_EQ(text_of_time(0, 1e-9), "0 s");
    EXPECT_EQ(text_of_time(-0.25, 0.25), "-250 ms");
}

TEST(TextOf, CarriesTheUnit) {
    EXPECT_EQ(text_of(1e9, Unit::flop_rate), "1 GFLOP/s");
    EXPECT_EQ(text_of(1e7, Unit::bytes), "10 MB");
    EXPECT_EQ(text_of(2.5e11, Unit::bandwidth), "250 GB/s");
    EXPECT_EQ(text_of(2e-5, Unit::seconds), "20 us");
    EXPECT_EQ(text_of(3e12, Unit::flops), "3 TFLOP");
    EXPECT_EQ(text_of(0.25, Unit::intensity), "0.25 FLOP/B");
    EXPECT_EQ(text_of(0.5, Unit::share), "50 %");
    EXPECT_EQ(text_of(27648, Unit::none), "27648");
}

}  // namespace
}  // namespace rehearse::picture
