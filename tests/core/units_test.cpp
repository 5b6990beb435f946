// SPDX-License-Identifier: Apache-2.0
#include "core/units.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <concepts>

#include "core/error.hpp"

namespace rehearse {
namespace {

using namespace literals;

template <typename A, typename B>
concept Addable = requires(A a, B b) {
    a + b;
};

static_assert(100_GB / 25_GBps == 4_s);
static_assert(25_GBps * 4_s == 100_GB);
static_assert(std::same_as<decltype(Flops{} / Seconds{}), FlopRate>);
static_assert(std::same_as<decltype(3_MB / 2_MB), double>);
static_assert(!Addable<Bytes, Seconds>, "adding bytes to seconds must not compile");
static_assert(!Addable<Bytes, double>, "a bare number has no unit");

TEST(ParseQuantity, KnowsDecimalAndBinaryPrefixes) {
    EXPECT_EQ(parse_quantity<Bytes>("25MB"), Bytes{25e6});
    EXPECT_EQ(parse_quantity<Bytes>("32MiB"), Bytes{32.0 * 1024 * 1024});
    EXPECT_EQ(parse_quantity<Bytes>("512 B"), Bytes{512});
    EXPECT_EQ(parse_quantity<Flops>("2.5GFLOP"), Flops{2.5e9});
    EXPECT_EQ(parse_quantity<FlopRate>("15.7TFLOPS"), FlopRate{15.7e12});
    EXPECT_EQ(parse_quantity<Seconds>("1.5us"), Seconds{1.5e-6});
    EXPECT_EQ(parse_quantity<Seconds>("2min"), Seconds{120});
}

TEST(ParseQuantity, TellsBitsFromBytes) {
    EXPECT_EQ(parse_quantity<Bandwidth>("100Gbps"), 12.5_GBps);
    EXPECT_EQ(parse_quantity<Bandwidth>("100Gbit/s"), 12.5_GBps);
    EXPECT_EQ(parse_quantity<Bandwidth>("12.5GBps"), 12.5_GBps);
    EXPECT_EQ(parse_quantity<Bandwidth>("12.5GB/s"), 12.5_GBps);
}

TEST(ParseQuantity, RefusesWhatHasNoOrAWrongUnit) {
    for (const char* text : {"", "25", "MB", "25 parsecs", "25GBps", "25MBx", "25 MB 3", "nanMB", "infMB", "1e999MB"}) {
        SCOPED_TRACE(text);
        EXPECT_THROW(parse_quantity<Bytes>(text), InputError);
    }
    EXPECT_THROW(parse_quantity<Seconds>("3kms"), InputError);
    try {
        parse_quantity<Bandwidth>("25Gps");
        FAIL() << "accepted";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(),
                    testing::AllOf(testing::HasSubstr("'25Gps'"), testing::HasSubstr("unknown unit 'Gps'"),
                                   testing::HasSubstr("12.5GBps")));
    }
}

TEST(ToString, ShowsFourDigitsAndAPrefix) {
    EXPECT_EQ(to_string(Bytes{25e6}), "25 MB");
    EXPECT_EQ(to_string(Bytes{0}), "0 B");
    EXPECT_EQ(to_string(12.5_GBps), "12.5 GB/s");
    EXPECT_EQ(to_string(Flops{4.09e9}), "4.09 GFLOP");
    EXPECT_EQ(to_string(Seconds{1.5e-6}), "1.5 us");
    EXPECT_EQ(to_string(Seconds{0.12345}), "123.5 ms");
    EXPECT_EQ(to_string(Seconds{999.96e-6}), "1 ms");
    EXPECT_EQ(to_string(Seconds{3e-10}), "0.3 ns");
    EXPECT_EQ(to_string(Bytes{999.96e3}), "1 MB");
}

TEST(ToExactString, IsReadBackToTheSameBits) {
    double value = 1.0 / 3;
    for (int i = 0; i < 60; ++i, value *= 3.7) {
        EXPECT_EQ(parse_quantity<Bytes>(to_exact_string(Bytes{value})), Bytes{value});
        EXPECT_EQ(parse_quantity<Bandwidth>(to_exact_string(Bandwidth{value})), Bandwidth{value});
        EXPECT_EQ(parse_quantity<FlopRate>(to_exact_string(FlopRate{value})), FlopRate{value});
        EXPECT_EQ(parse_quantity<Seconds>(to_exact_string(Seconds{value * 1e-12})), Seconds{value * 1e-12});
    }
    EXPECT_EQ(to_exact_string(12.5_GBps), "12.5GBps");
    EXPECT_EQ(to_exact_string(Seconds{1.5e-6}), "1.5us");
}

}  // namespace
}  // namespace rehearse
