// SPDX-License-Identifier: Apache-2.0
// Numbers of 16 bits: storage with conversions, no arithmetic. Every float conversion rounds to the nearest, ties to
// even, as the instructions do; infinities, signed zeros and subnormals are kept, a NaN stays one (made quiet).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/op.hpp"

namespace rehearse {

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits; largest 65504, smallest normal 2^-14, subnormal 2^-24.
struct Float16 {
    std::uint16_t bits = 0;
    Float16() = default;
    constexpr explicit Float16(float value);
    constexpr explicit operator float() const;
    static constexpr Float16 of_bits(std::uint16_t bits) {
        Float16 made;
        made.bits = bits;
        return made;
    }
};

/// bfloat16, the upper half of a float: 1 sign, 8 exponent, 7 fraction bits.
struct BFloat16 {
    std::uint16_t bits = 0;
    BFloat16() = default;
    constexpr explicit BFloat16(float value);
    constexpr explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
    static constexpr BFloat16 of_bits(std::uint16_t bits) {
        BFloat16 made;
        made.bits = bits;
        return made;
    }
};

/// The type of a buffer's elements as a C++ type.
template <typename Element>
inline constexpr bool is_element = false;
template <>
inline constexpr bool is_element<float> = true;
template <>
inline constexpr bool is_element<Float16> = true;
template <>
inline constexpr bool is_element<BFloat16> = true;

template <typename Element>
requires is_element<Element>
constexpr DataType data_type() {
    if (sizeof(Element) == sizeof(float)) return DataType::f32;
    return std::is_same_v<Element, Float16> ? DataType::f16 : DataType::bf16;
}

/// Half the distance from 1 to the next number: rounding to the nearest errs by at most this share of a normal result.
constexpr double unit_roundoff(DataType type) {
    switch (type) {
        case DataType::f32:
            return 0x1p-24;
        case DataType::f16:
        case DataType::tf32:
            return 0x1p-11;
        case DataType::bf16:
            return 0x1p-8;
        case DataType::fp8:  // E4M3
            return 0x1p-4;
    }
    return 1;
}

namespace half {

// `value` without its lowest `count` bits, rounded to the nearest, ties to even.
constexpr std::uint32_t shift_rounded(std::uint32_t value, int count) {
    const std::uint32_t odd = (value >> count) & 1;
    return (value + (std::uint32_t{1} << (count - 1)) - 1 + odd) >> count;
}

}  // namespace half

constexpr Float16::Float16(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((all >> 16) & 0x8000);
    const std::uint32_t magnitude = all & 0x7FFFFFFF;
    if (magnitude > 0x7F800000) {  // NaN keeps the upper bits of its payload
        bits = static_cast<std::uint16_t>(sign | 0x7E00 | ((magnitude >> 13) & 0x1FF));
    } else if (magnitude >= 0x47800000) {  // 2^16 and more, infinity
        bits = sign | 0x7C00;
    } else if (magnitude >= 0x38800000) {  // 2^-14: a carry out of the fraction is the next exponent, or infinity
        bits = static_cast<std::uint16_t>(sign | half::shift_rounded(magnitude - (112U << 23), 13));
    } else if (magnitude >= 0x33000000) {  // 2^-25: a multiple of 2^-24 or half of the smallest one
        const int exponent = static_cast<int>(magnitude >> 23);  // value = fraction * 2^(exponent - 150)
        const std::uint32_t fraction = (magnitude & 0x7FFFFF) | 0x800000;
        bits = static_cast<std::uint16_t>(sign | half::shift_rounded(fraction, 126 - exponent));
    } else {
        bits = sign;
    }
}

constexpr Float16::operator float() const {
    const std::uint32_t sign = std::uint32_t{bits} << 16 & 0x80000000;
    const std::uint32_t exponent = bits >> 10 & 31;
    const std::uint32_t fraction = bits & 0x3FF;
    if (exponent == 31) {
        const std::uint32_t quiet = fraction == 0 ? 0 : 0x400000;
        return std::bit_cast<float>(sign | 0x7F800000 | quiet | fraction << 13);
    }
    if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
}

constexpr BFloat16::BFloat16(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = all & 0x7FFFFFFF;
    const std::uint32_t rounded = magnitude > 0x7F800000 ? magnitude >> 16 | 0x40 : half::shift_rounded(magnitude, 16);
    bits = static_cast<std::uint16_t>((all >> 16 & 0x8000) | rounded);
}

}  // namespace rehearse
