// SPDX-License-Identifier: Apache-2.0
// Numbers of 8 bits for products on tensor cores (Micikevicius et al. 2022, "FP8 formats for deep learning"): a tensor
// is scaled so that its largest number just fits, rounded, and laid so that the numbers a product sums lie together.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/cuda/packed_tile.hpp"
#include "kernels/cuda/values.hpp"

namespace rehearse::kernels::cuda {

/// e4m3 has 3 bits of fraction and reaches 448, without infinities; e5m2 has 2 and reaches 57344.
enum class Fp8 : std::uint8_t { e4m3, e5m2 };
REHEARSE_BOTH constexpr float largest(Fp8 format) { return format == Fp8::e4m3 ? 448.0F : 57344.0F; }

/// Rounded to the nearest, ties to even; beyond the largest number, to it. Infinite or no number: none, 0x7F.
REHEARSE_BOTH inline std::uint8_t to_fp8(float value, Fp8 format) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 24 & 0x80U, magnitude = bits & 0x7FFFFFFFU;
    if (magnitude >= 0x7F800000U) return static_cast<std::uint8_t>(sign | 0x7FU);
    const bool narrow = format == Fp8::e4m3;
    const int fraction = narrow ? 3 : 2, least = narrow ? -6 : -14;
    const std::uint32_t most = narrow ? 0x7EU : 0x7BU;
    const int exponent = static_cast<int>(magnitude >> 23) - 127;
    const int above = exponent > least ? exponent - least : 0;
    // In units of the last place there, which are 2^(max(exponent, least) - fraction): exact but for what is below.
    const int drop = 23 - fraction + (exponent < least ? least - exponent : 0);
    if (drop > 24) return static_cast<std::uint8_t>(sign);  // less than half of the least number
    const std::uint32_t whole = (magnitude & 0x7FFFFFU) | (magnitude >> 23 != 0 ? 0x800000U : 0U);
    const std::uint32_t half = 1U << (drop - 1);
    std::uint32_t units = whole >> drop;
    const std::uint32_t rest = whole & (2 * half - 1);
    if (rest > half || (rest == half && (units & 1U) != 0)) ++units;
    const std::uint32_t code = (static_cast<std::uint32_t>(above) << fraction) + units;
    return static_cast<std::uint8_t>(sign | (code < most ? code : most));
}

/// Sixteen of them, as memory takes them at once.
REHEARSE_BOTH inline Words<4> to_fp8(const float (&values)[16], Fp8 format) {
    Words<4> made;
    REHEARSE_UNROLL
    for (int w = 0; w < 4; ++w) {
        made.of[w] = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
        // Two at once (PTX ISA, cvt: .rn.satfinite; the second operand is the lower byte). Infinities become the
        // largest number there, and have to stay seen.
        REHEARSE_UNROLL
        for (int e = 0; e < 4; e += 2) {
            const float low = values[4 * w + e], high = values[4 * w + e + 1];
            std::uint16_t pair;
            if (format == Fp8::e4m3) {
                asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
            } else {
                asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
            }
            std::uint32_t both = pair;
            if (!std::isfinite(low)) both |= 0x7FU;
            if (!std::isfinite(high)) both |= 0x7F00U;
            made.of[w] |= both << (8 * e);
        }
#else
        REHEARSE_UNROLL
        for (int e = 0; e < 4; ++e) made.of[w] |= std::uint32_t{to_fp8(values[4 * w + e], format)} << (8 * e);
#endif
    }
    return made;
}

/// The power of two by which a tensor is multiplied whose largest magnitude this is, so that scaling rounds nothing.
/// 1 for a tensor of zeros, or with a number that is none.
REHEARSE_BOTH inline float fp8_scale(float magnitude, Fp8 format) {
    if (!(magnitude > 0) || !std::isfinite(magnitude)) return 1;
    // 448 is 1.75 x 2^8, 57344 is 1.75 x 2^15: 2^e times a fraction of at most 1.75 fits with that power, else with
    // half.
    const auto bits = std::bit_cast<std::uint32_t>(magnitude);
    const int exponent = static_cast<int>(bits >> 23) - 127;
    int power = (format == Fp8::e4m3 ? 8 : 15) - (exponent < -126 ? -126 : exponent);
    if ((bits & 0x7FFFFFU) > 0x600000U) --power;
    power = power > 126 ? 126 : power;  // its inverse is a normal number, too
    return std::bit_cast<float>(static_cast<std::uint32_t>(power + 127) << 23);
}

/// found[row] = the largest magnitude of every rows-th run of `threads` values; infinite where one is no number.
struct LargestMagnitude : RowWise<1> {
    Values values;
    std::int64_t count = 0;
    float* found = nullptr;
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        const int at_once = numbers_at_once(values);
        team.each([&](int thread, auto&) {
            float most = 0;
            std::int64_t next = 0;
            if (at_once == 8) next = runs<8>(block, thread, most);
            if (at_once == 4) next = runs<4>(block, thread, most);
            for (std::int64_t i = next + block.x * threads + thread; i < count; i += rows * threads)
                most = larger(most, values.at(i));
            team.shared().of[0][thread] = most;
        });
        this->combine(team, 0, [](float a, float b) { return a > b ? a : b; });
        team.alone([&](int thread, auto&) {
            if (thread == 0) found[block.x] = team.shared().of[0][0];
        });
    }

private:
    REHEARSE_BOTH static float larger(float most, float value) {
        const float magnitude = std::isfinite(value) ? std::fabs(value) : INFINITY;
        return magnitude > most ? magnitude : most;
    }
    template <int n>
    REHEARSE_BOTH std::int64_t runs(const Block& block, int thread, float& most) const {
        const std::int64_t whole = count / n;
        for (std::int64_t i = block.x * threads + thread; i < whole; i += rows * threads) {
            const Floats<n> some = values.load<n>(i * n);
            REHEARSE_UNROLL
            for (int e = 0; e < n; ++e) most = larger(most, some.of[e]);
        }
        return whole * n;
    }
};

/// A matrix of `lines` lines of `length` numbers, as `to` {lines, pitch} or, turned, {length, pitch}: of each number
/// its 8 bits after scaling; beyond the last of a row up to `pitch`, a multiple of 16, are zeros. magnitudes: what
/// LargestMagnitude has found, by `parts`; inverse: what the product is to be multiplied by.
struct ToFp8 : RowWise<1> {
    static constexpr int side = 64;        // a block's numbers, each way
    static constexpr int step = side + 4;  // bytes of a row in shared memory: words of a column apart
    struct Shared {
        float of[1][threads];
        alignas(4) std::uint8_t tile[side][step];
    };
    Values from;
    std::uint8_t* to = nullptr;
    const float* magnitudes = nullptr;
    float* inverse = nullptr;
    std::int64_t lines = 1, length = 1, pitch = 16, parts = 1;
    Fp8 format = Fp8::e4m3;
    bool turned = false;

    REHEARSE_BOTH Blocks blocks() const {
        return {divide_up(turned ? pitch : lines, side), divide_up(turned ? length : pitch, side)};
    }
    template <typename Team>
    REHEARSE_BOTH void run(Team& team, const Block& block) const {
        team.each([&](int thread, auto&) { team.shared().of[0][thread] = thread < parts ? magnitudes[thread] : 0; });
        this->combine(team, 0, [](float a, float b) { return a > b ? a : b; });
        const float scale = fp8_scale(team.shared().of[0][0], format);
        team.alone([&](int thread, auto&) {
            if (thread == 0 && block.x == 0 && block.y == 0) *inverse = 1 / scale;
        });
        if (turned) return turn(team, block, scale);
        team.alone([&](int thread, auto&) {
            const std::int64_t line = block.x * side + thread / 4, first = block.y * side + thread % 4 * 16;
            if (line < lines && first < pitch) put(line, first, scale, to + line * pitch + first);
        });
    }

private:
    // Sixteen numbers of a line, which are a row of `to`.
    REHEARSE_BOTH void put(std::int64_t line, std::int64_t first, float scale, std::uint8_t* where) const {
        float some[16];
        gather(line, first, scale, some);
        put_words(where, to_fp8(some, format));
    }
    REHEARSE_BOTH void gather(std::int64_t line, std::int64_t first, float scale, float (&some)[16]) const {
        const std::int64_t begin = line * length + first;
        const bool whole = line < lines && first + 16 <= length;
        if (whole && from.type != DataType::f32 && numbers_at_once(from) == 8 && begin % 8 == 0) {
            REHEARSE_UNROLL
            for (int half = 0; half < 2; ++half) {
                const Floats<8> eight = from.load<8>(begin + 8 * half);
                REHEARSE_UNROLL
                for (int e = 0; e < 8; ++e) some[8 * half + e] = eight.of[e] * scale;
            }
            return;
        }
        REHEARSE_UNROLL
        for (int e = 0; e < 16; ++e) some[e] = line < lines && first + e < length ? from.at(begin + e) * scale : 0.0F;
    }
    // Lines become columns: 64 of them through shared memory.
    template <typename Team>
    REHEARSE_BOTH void turn(Team& team, const Block& block, float scale) const {
        const std::int64_t first_line = block.x * side, first = block.y * side;
        team.each([&](int thread, auto&) {
            const int line = thread % side, column = thread / side * 16;
            float some[16];
            gather(first_line + line, first + column, scale, some);
            const Words<4> codes = to_fp8(some, format);
            REHEARSE_UNROLL
            for (int e = 0; e < 16; ++e)
                team.shared().tile[column + e][line] = static_cast<std::uint8_t>(codes.of[e / 4] >> e % 4 * 8);
        });
        team.alone([&](int thread, auto&) {
            const std::int64_t row = first + thread / 4, at = first_line + thread % 4 * 16;
            if (row >= length || at >= pitch) return;
            Words<4> words;
            REHEARSE_UNROLL
            for (int w = 0; w < 4; ++w)
                words.of[w] = words_at<1>(&team.shared().tile[thread / 4][thread % 4 * 16 + 4 * w]).of[0];
            put_words(to + row * pitch + at, words);
        });
    }
};

}  // namespace rehearse::kernels::cuda
