// SPDX-License-Identifier: Apache-2.0
// Eight elements at a time by F16C and AVX2, asked for at run time; what is left over, and other CPUs, by
// core/half.hpp. Wider vectors would wait for memory all the same.
#include "kernels/convert.hpp"

#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "kernels/instructions.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace rehearse::kernels {
namespace {

template <typename From, typename To>
void convert_rest(const From* from, To* to, std::int64_t first, std::int64_t count) {
    for (std::int64_t i = first; i < count; ++i) to[i] = To(static_cast<float>(from[i]));
}

#if defined(__x86_64__)
bool has_vectors() {
    static const bool both = has_avx2_f16c();
    return both;
}

// Each returns how many elements it has converted.
[[gnu::target("avx2,f16c")]] std::int64_t convert_eights(const Float16* from, float* to, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    }
    return i;
}

[[gnu::target("avx2,f16c")]] std::int64_t convert_eights(const float* from, Float16* to, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m128i rounded = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), rounded);
    }
    return i;
}

[[gnu::target("avx2,f16c")]] std::int64_t convert_eights(const BFloat16* from, float* to, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
        _mm256_storeu_ps(to + i, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16)));
    }
    return i;
}

// The upper 16 bits of bits + 0x7FFF + (the lowest bit that stays); of a NaN, quieted, without adding.
[[gnu::target("avx2,f16c")]] std::int64_t convert_eights(const float* from, BFloat16* to, std::int64_t count) {
    std::int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256 value = _mm256_loadu_ps(from + i);
        const __m256i bits = _mm256_castps_si256(value);
        const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
        const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
        const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
        const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
        const __m256i upper = _mm256_srli_epi32(_mm256_blendv_epi8(sum, quiet, is_nan), 16);
        const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), packed);
    }
    return i;
}
#else
bool has_vectors() { return false; }
template <typename From, typename To>
std::int64_t convert_eights(const From* /*from*/, To* /*to*/, std::int64_t /*count*/) {
    return 0;
}
#endif

template <typename From, typename To>
void convert_stretch(const From* from, To* to, std::int64_t count) {
    convert_rest(from, to, has_vectors() ? convert_eights(from, to, count) : 0, count);
}

template <typename From, typename To>
void convert_shared(const From* from, To* to, std::int64_t count) {
    constexpr std::int64_t piece = 32 * 1024;
#pragma omp parallel for schedule(static) if (count > 4 * piece)
    for (std::int64_t first = 0; first < count; first += piece) {
        convert_stretch(from + first, to + first, std::min(piece, count - first));
    }
}

template <typename Half>
void convert_half(ConstView from, View to) {
    const auto count = static_cast<std::int64_t>(from.size());
    if (to.type() == DataType::f32) return convert_shared(from.as<Half>().data(), to.data(), count);
    convert_shared(from.data(), to.as<Half>().data(), count);
}

}  // namespace

void convert(const Float16* from, float* to, std::int64_t count) { convert_stretch(from, to, count); }
void convert(const BFloat16* from, float* to, std::int64_t count) { convert_stretch(from, to, count); }
void convert(const float* from, Float16* to, std::int64_t count) { convert_stretch(from, to, count); }
void convert(const float* from, BFloat16* to, std::int64_t count) { convert_stretch(from, to, count); }

void convert(ConstView from, View to) {
    require(from.size() == to.size(), "a conversion keeps the number of elements");
    if (from.empty()) return;
    if (from.type() == to.type()) {
        std::memcpy(to.bytes(), from.bytes(), from.size_bytes());
    } else if (from.type() == DataType::f16 || to.type() == DataType::f16) {
        convert_half<Float16>(from, to);
    } else {
        convert_half<BFloat16>(from, to);
    }
}

}  // namespace rehearse::kernels
