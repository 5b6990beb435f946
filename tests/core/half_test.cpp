// SPDX-License-Identifier: Apache-2.0
// All 65,536 numbers of both types against the definition of their fields, and rounding against the nearest of two
// neighbours, worked out in double where a float's distance to either is exact.
#include "core/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace rehearse {
namespace {

struct Format {
    int exponent_bits, fraction_bits;
};

template <typename Half>
constexpr Format format = {8, 7};
template <>
constexpr Format format<Float16> = {5, 10};

// What IEEE 754 says that the bits mean; NaN for NaN.
double meaning(Format f, unsigned bits) {
    const unsigned fraction = bits & ((1U << f.fraction_bits) - 1);
    const unsigned exponent = bits >> f.fraction_bits & ((1U << f.exponent_bits) - 1);
    const double sign = (bits >> 15) != 0 ? -1 : 1;
    const int bias = (1 << (f.exponent_bits - 1)) - 1;
    if (exponent == (1U << f.exponent_bits) - 1) {
        return fraction == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
    }
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - f.fraction_bits);
    const double significand = static_cast<double>(fraction) + std::ldexp(1, f.fraction_bits);
    return sign * std::ldexp(significand, static_cast<int>(exponent) - bias - f.fraction_bits);
}

template <typename Half>
class HalfTypes : public testing::Test {};
using Types = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(HalfTypes, Types, );

TYPED_TEST(HalfTypes, MeanWhatTheirFieldsSayAndComeBackAsTheyWere) {
    for (unsigned bits = 0; bits < 65536; ++bits) {
        const auto number = TypeParam::of_bits(static_cast<std::uint16_t>(bits));
        const double expected = meaning(format<TypeParam>, bits);
        const auto value = static_cast<float>(number);
        if (std::isnan(expected)) {
            ASSERT_TRUE(std::isnan(value)) << bits;
            ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(value)))) << bits;
            ASSERT_EQ(TypeParam(value).bits >> 15, bits >> 15);
            continue;
        }
        ASSERT_EQ(value, expected) << bits;
        ASSERT_EQ(std::signbit(value), bits >= 0x8000) << bits;
        ASSERT_EQ(TypeParam(value).bits, bits);
    }
}

// Between each two neighbours: the middle goes to the even one, a float beside the middle to the nearer one. The number
// above the largest is taken to be what the next exponent would give: IEEE 754 rounds to infinity from there on.
TYPED_TEST(HalfTypes, RoundToTheNearestAndTiesToEven) {
    const Format f = format<TypeParam>;
    const unsigned infinity = ((1U << f.exponent_bits) - 1) << f.fraction_bits;
    for (unsigned bits = 0; bits < infinity; ++bits) {
        const double low = meaning(f, bits);
        const int bias = (1 << (f.exponent_bits - 1)) - 1;
        const double high = bits + 1 == infinity ? std::ldexp(1, bias + 1) : meaning(f, bits + 1);
        const auto middle = static_cast<float>((low + high) / 2);
        ASSERT_EQ(static_cast<double>(middle), (low + high) / 2) << "the middle is a float";
        const unsigned even = bits % 2 == 0 ? bits : bits + 1;
        const float below = std::nextafter(middle, 0.0F);
        const float above = std::nextafter(middle, HUGE_VALF);
        ASSERT_EQ(TypeParam(middle).bits, even) << middle;
        ASSERT_EQ(TypeParam(below).bits, bits) << below;
        ASSERT_EQ(TypeParam(above).bits, bits + 1) << above;
        ASSERT_EQ(TypeParam(-middle).bits, even | 0x8000) << middle;
        ASSERT_EQ(TypeParam(-below).bits, bits | 0x8000) << below;
        ASSERT_EQ(TypeParam(-above).bits, (bits + 1) | 0x8000) << above;
    }
}

TYPED_TEST(HalfTypes, KeepInfinitiesZerosAndWhatIsNoNumber) {
    const float infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(static_cast<float>(TypeParam(infinity)), infinity);
    EXPECT_EQ(static_cast<float>(TypeParam(-infinity)), -infinity);
    EXPECT_EQ(static_cast<float>(TypeParam(std::numeric_limits<float>::max())), infinity);
    EXPECT_EQ(TypeParam(-0.0F).bits, 0x8000);
    EXPECT_EQ(TypeParam(std::numeric_limits<float>::denorm_min()).bits, 0);
    // NaNs whose payload lies in the lowest bits, which are cut off, and signalling ones.
    for (const std::uint32_t bits : {0x7F800001U, 0xFF800001U, 0x7FC00000U, 0x7FFFFFFFU, 0x7F802000U}) {
        EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(std::bit_cast<float>(bits))))) << bits;
    }
}

TEST(UnitRoundoff, IsHalfTheDistanceFromOneToTheNextNumber) {
    EXPECT_EQ(unit_roundoff(DataType::f16), (static_cast<float>(Float16::of_bits(0x3C01)) - 1) / 2);
    EXPECT_EQ(unit_roundoff(DataType::bf16), (static_cast<float>(BFloat16::of_bits(0x3F81)) - 1) / 2);
    EXPECT_EQ(unit_roundoff(DataType::f32), (std::nextafter(1.0F, 2.0F) - 1) / 2);
}

}  // namespace
}  // namespace rehearse
