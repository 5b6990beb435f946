// SPDX-License-Identifier: Apache-2.0
// The oracle of half precision is the list of all its numbers, in order: IEEE 754 orders them as integers.
#include "kernels/comm/reduction.hpp"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace rehearse::kernels {
namespace {

TEST(Half, HasTheValuesOfTheStandard) {
    EXPECT_EQ(float_of_half(0x3C00), 1);
    EXPECT_EQ(float_of_half(0xC000), -2);
    EXPECT_EQ(float_of_half(0x7BFF), 65504);
    EXPECT_EQ(float_of_half(0x0400), std::ldexp(1.0F, -14));
    EXPECT_EQ(float_of_half(0x0001), std::ldexp(1.0F, -24));
    EXPECT_EQ(float_of_half(0x03FF), std::ldexp(1023.0F, -24));
    EXPECT_EQ(float_of_half(0xFC00), -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(std::isnan(float_of_half(0x7C01)));
    EXPECT_TRUE(std::signbit(float_of_half(0x8000)));
}

TEST(Half, ComesBackFromFloatAsItWas) {
    for (std::uint32_t h = 0; h < 0x10000; ++h) {
        const auto half = static_cast<std::uint16_t>(h);
        if (std::isnan(float_of_half(half))) continue;
        ASSERT_EQ(half_of_float(float_of_half(half)), half);
        ASSERT_EQ(bfloat_of_float(float_of_bfloat(half)), half) << "a bfloat";
    }
    EXPECT_TRUE(std::isnan(float_of_half(half_of_float(std::numeric_limits<float>::quiet_NaN()))));
    EXPECT_TRUE(std::isnan(float_of_bfloat(bfloat_of_float(std::numeric_limits<float>::signaling_NaN()))));
}

// Between any two neighbours: what is nearer wins, and the even one of the two in the middle.
TEST(Half, IsRoundedToTheNearestAndToEven) {
    const auto expect_rounding = [](std::uint16_t low, auto to_float, auto from_float) {
        const auto high = static_cast<std::uint16_t>(low + 1);
        const float a = to_float(low), b = to_float(high);
        if (!std::isfinite(a) || !std::isfinite(b)) return;
        const float middle = a + (b - a) / 2;  // exact: f32 has more digits
        ASSERT_EQ(from_float(middle), low % 2 == 0 ? low : high);
        ASSERT_EQ(from_float(std::nextafter(middle, a)), low);
        ASSERT_EQ(from_float(std::nextafter(middle, b)), high);
    };
    for (std::uint32_t h = 0; h < 0x10000; ++h) {
        expect_rounding(static_cast<std::uint16_t>(h), float_of_half, half_of_float);
        expect_rounding(static_cast<std::uint16_t>(h), float_of_bfloat, bfloat_of_float);
    }
    EXPECT_EQ(half_of_float(65519.0F), 0x7BFF);
    EXPECT_EQ(half_of_float(65520.0F), 0x7C00);
}

// Every length up to some vectors and every misalignment by an element; what lies behind is left alone.
TEST(Add, SumsEveryLengthAndTouchesNothingElse) {
    for (std::size_t count = 0; count < 200; ++count) {
        for (std::size_t offset = 0; offset < 3; ++offset) {
            std::vector<float> sum(count + 8, 5), arrived(count + 8, 7);
            for (std::size_t i = 0; i < count; ++i) arrived[offset + i] = static_cast<float>(i);
            add(DataType::f32, reinterpret_cast<std::byte*>(sum.data() + offset),
                reinterpret_cast<const std::byte*>(arrived.data() + offset), static_cast<std::int64_t>(count));
            for (std::size_t i = 0; i < sum.size(); ++i) {
                const bool inside = i >= offset && i < offset + count;
                ASSERT_EQ(sum[i], inside ? 5.0F + static_cast<float>(i - offset) : 5.0F) << count;
            }
        }
    }
}

// All pairs of 65,536 random numbers, NaN and infinities among them: as added and rounded one by one.
TEST(Add, RoundsHalvesAsTheStandardSays) {
    constexpr std::size_t count = 65536 + 5;
    std::mt19937 random{1};
    std::vector<std::uint16_t> a(count), b(count);
    for (auto& each : a) each = static_cast<std::uint16_t>(random());
    for (auto& each : b) each = static_cast<std::uint16_t>(random());
    const auto expect = [&](DataType type, auto to_float, auto from_float) {
        std::vector<std::uint16_t> sum = a;
        add(type, reinterpret_cast<std::byte*>(sum.data()), reinterpret_cast<const std::byte*>(b.data()), count);
        for (std::size_t i = 0; i < count; ++i) {
            const float right = to_float(a[i]) + to_float(b[i]);
            if (std::isnan(right)) {
                ASSERT_TRUE(std::isnan(to_float(sum[i])));
            } else {
                ASSERT_EQ(sum[i], from_float(right)) << to_float(a[i]) << " + " << to_float(b[i]);
            }
        }
    };
    expect(DataType::f16, float_of_half, half_of_float);
    expect(DataType::bf16, float_of_bfloat, bfloat_of_float);
}

}  // namespace
}  // namespace rehearse::kernels
