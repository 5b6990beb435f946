// SPDX-License-Identifier: Apache-2.0
// f16 by AVX512-FP16: 32 multiply-adds an instruction, each rounded once to f16. This file alone is compiled for
// AVX512-FP16; who calls it has asked the CPU.
#include <immintrin.h>

#include "kernels/cpu/half/half_native.hpp"
#include "kernels/cpu/half/half_tile_inl.hpp"
#include "kernels/cpu/half/half_zip_inl.hpp"

namespace rehearse::kernels::cpu {
namespace {

template <bool in_f16>
struct F16 {
    static constexpr std::int64_t pair = 1, lanes = 32;
    static constexpr bool carries = in_f16;
    using Sum = __m512h;
    using Vector = __m512h;

    static Sum zero() { return _mm512_setzero_ph(); }
    static Vector load(const std::uint16_t* from) { return _mm512_loadu_ph(from); }
    static Vector broadcast(std::uint32_t unit) {
        return _mm512_castsi512_ph(_mm512_set1_epi32(static_cast<int>(unit)));
    }
    static Sum multiply_add(Vector a, Vector b, Sum sum) { return _mm512_fmadd_ph(a, b, sum); }
    static Sum load_sum(const float* c) {
        const __m256i lower = _mm256_castph_si256(_mm512_cvtxps_ph(_mm512_loadu_ps(c)));
        const __m256i upper = _mm256_castph_si256(_mm512_cvtxps_ph(_mm512_loadu_ps(c + 16)));
        return _mm512_castsi512_ph(_mm512_inserti64x4(_mm512_castsi256_si512(lower), upper, 1));
    }
    static void store_sum(Sum sum, float* c, bool add) {
        const __m512i bits = _mm512_castph_si512(sum);
        __m512 lower = _mm512_cvtxph_ps(_mm256_castsi256_ph(_mm512_castsi512_si256(bits)));
        __m512 upper = _mm512_cvtxph_ps(_mm256_castsi256_ph(_mm512_extracti64x4_epi64(bits, 1)));
        if (add) {
            lower = _mm512_add_ps(lower, _mm512_loadu_ps(c));
            upper = _mm512_add_ps(upper, _mm512_loadu_ps(c + 16));
        }
        _mm512_storeu_ps(c, lower);
        _mm512_storeu_ps(c + 16, upper);
    }
    static void zip(const std::uint16_t* a, const std::uint16_t* b, std::int64_t count, std::uint16_t* out) {
        zip_by_words(a, b, count, out);
    }
    static void zip_rows(const std::uint16_t* a, std::int64_t rows, std::int64_t count, std::uint16_t* out) {
        zip_rows_by_words(a, rows, count, out);
    }
};

}  // namespace

constinit const HalfSimd avx512_fp16_chunked = half_simd<F16<false>>();
constinit const HalfSimd avx512_fp16 = half_simd<F16<true>>();

}  // namespace rehearse::kernels::cpu
