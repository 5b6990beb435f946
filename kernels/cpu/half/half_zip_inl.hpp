// SPDX-License-Identifier: Apache-2.0
// Two rows into one of pairs by AVX512-BW, which every CPU with 16-bit arithmetic has.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace rehearse::kernels::cpu {
namespace {

inline __m512i zip_order(int first) {
    alignas(64) std::uint16_t order[32];
    for (int i = 0; i < 16; ++i) {
        order[2 * i] = static_cast<std::uint16_t>(first + i);
        order[2 * i + 1] = static_cast<std::uint16_t>(32 + first + i);
    }
    return _mm512_load_si512(order);
}

inline void zip_by_words(const std::uint16_t* a, const std::uint16_t* b, std::int64_t count, std::uint16_t* out) {
    const __m512i lower = zip_order(0);
    const __m512i upper = zip_order(16);
    for (; count > 0; count -= 32, a += 32, b += 32, out += 64) {
        const __mmask32 some = count >= 32 ? 0xFFFFFFFFU : (1U << count) - 1;
        const std::int64_t pairs = count < 32 ? count : 32;
        const __m512i left = _mm512_maskz_loadu_epi16(some, a);
        const __m512i right = _mm512_maskz_loadu_epi16(some, b);
        const __mmask16 first = pairs >= 16 ? 0xFFFF : static_cast<__mmask16>((1U << pairs) - 1);
        _mm512_mask_storeu_epi32(out, first, _mm512_permutex2var_epi16(left, lower, right));
        if (pairs <= 16) continue;
        const auto second = static_cast<__mmask16>((1U << (pairs - 16)) - 1);
        _mm512_mask_storeu_epi32(out + 32, second, _mm512_permutex2var_epi16(left, upper, right));
    }
}

inline void zip_rows_by_words(const std::uint16_t* a, std::int64_t rows, std::int64_t count, std::uint16_t* out) {
    if (count > 16) {
        for (; rows > 0; --rows, a += 2 * count, out += 2 * count) zip_by_words(a, a + count, count, out);
        return;
    }
    alignas(64) std::uint16_t order[32] = {};
    for (std::int64_t i = 0; i < count; ++i) {
        order[2 * i] = static_cast<std::uint16_t>(i);
        order[2 * i + 1] = static_cast<std::uint16_t>(count + i);
    }
    const __m512i both = _mm512_load_si512(order);
    const __mmask32 words = count == 16 ? 0xFFFFFFFFU : (1U << (2 * count)) - 1;
    for (; rows > 0; --rows, a += 2 * count, out += 2 * count) {
        _mm512_mask_storeu_epi16(out, words, _mm512_permutexvar_epi16(both, _mm512_maskz_loadu_epi16(words, a)));
    }
}

}  // namespace
}  // namespace rehearse::kernels::cpu
