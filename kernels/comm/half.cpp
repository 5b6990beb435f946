// SPDX-License-Identifier: Apache-2.0
// Half precision without the help of the CPU: for tails, other CPUs and tests.
#include <bit>
#include <cmath>

#include "kernels/comm/reduction.hpp"

namespace rehearse::kernels {

namespace {

constexpr std::uint32_t sign_bit = 0x80000000U, infinity = 0x7F800000U;

// Drops `bits` bits, to nearest, ties to even.
constexpr std::uint32_t rounded(std::uint32_t value, unsigned bits) {
    return (value + (1U << (bits - 1)) - 1 + (value >> bits & 1)) >> bits;
}

}  // namespace

// f16: 1 sign, 5 exponent (bias 15), 10 fraction; f32 has bias 127 and 23.
float float_of_half(std::uint16_t half) {
    const std::uint32_t sign = (half & 0x8000U) << 16;
    const std::uint32_t rest = half & 0x7FFFU;
    if (rest >= 0x7C00U) {
        return std::bit_cast<float>(sign | infinity | (rest & 0x3FFU) << 13 | (rest > 0x7C00U ? 0x400000U : 0));
    }
    if (rest >= 0x400U) return std::bit_cast<float>(sign | ((rest << 13) + (112U << 23)));
    const float small = std::ldexp(static_cast<float>(rest), -24);  // below 2^-14 a step is 2^-24
    return sign != 0 ? -small : small;
}

std::uint16_t half_of_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits & sign_bit) >> 16;
    const std::uint32_t rest = bits & ~sign_bit;
    std::uint32_t half = 0;
    if (rest > infinity) {
        half = 0x7E00U;
    } else if (rest >= 0x477FF000U) {  // 65520 and more round to infinity
        half = 0x7C00U;
    } else if (rest >= 0x38800000U) {  // 2^-14
        half = rounded(rest - (112U << 23), 13);
    } else {
        half = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::bit_cast<float>(rest), 24)));
    }
    return static_cast<std::uint16_t>(sign | half);
}

// bf16: the upper half of an f32.
float float_of_bfloat(std::uint16_t bfloat) { return std::bit_cast<float>(static_cast<std::uint32_t>(bfloat) << 16); }

std::uint16_t bfloat_of_float(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & ~sign_bit) > infinity) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
    return static_cast<std::uint16_t>(rounded(bits, 16));
}

}  // namespace rehearse::kernels
