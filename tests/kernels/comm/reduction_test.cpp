// SPDX-License-Identifier: Apache-2.0
// Vectors against one number after the other, in the arithmetic of core/half.hpp.
#include "kernels/comm/reduction.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <random>
#include <vector>

#include "core/half.hpp"

namespace rehearse::kernels {
namespace {

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
    const auto expect = [&]<typename Element>(Element) {
        std::vector<std::uint16_t> sum = a;
        add(data_type<Element>(), reinterpret_cast<std::byte*>(sum.data()),
            reinterpret_cast<const std::byte*>(b.data()), count);
        for (std::size_t i = 0; i < count; ++i) {
            const auto number = [](std::uint16_t bits) { return static_cast<float>(Element::of_bits(bits)); };
            const float right = number(a[i]) + number(b[i]);
            if (std::isnan(right)) {
                ASSERT_TRUE(std::isnan(number(sum[i])));
            } else {
                ASSERT_EQ(sum[i], Element{right}.bits) << number(a[i]) << " + " << number(b[i]);
            }
        }
    };
    expect(Float16{});
    expect(BFloat16{});
}

}  // namespace
}  // namespace rehearse::kernels
