// SPDX-License-Identifier: Apache-2.0
// bf16 by VDPBF16PS: in each of 16 lanes two products are added to an f32 sum. This file alone is compiled for
// AVX512-BF16; who calls it has asked the CPU.
#include <immintrin.h>

#include "kernels/cpu/half/half_native.hpp"
#include "kernels/cpu/half/half_tile_inl.hpp"
#include "kernels/cpu/half/half_zip_inl.hpp"

namespace rehearse::kernels::cpu {
namespace {

struct Bf16 {
    static constexpr std::int64_t pair = 2, lanes = 16;
    static constexpr bool carries = true;
    using Sum = __m512;
    using Vector = __m512bh;

    static Sum zero() { return _mm512_setzero_ps(); }
    static Vector load(const std::uint16_t* from) { return reinterpret_cast<Vector>(_mm512_loadu_si512(from)); }
    static Vector broadcast(std::uint32_t unit) {
        return reinterpret_cast<Vector>(_mm512_set1_epi32(static_cast<int>(unit)));
    }
    static Sum multiply_add(Vector a, Vector b, Sum sum) { return _mm512_dpbf16_ps(sum, a, b); }
    static Sum load_sum(const float* c) { return _mm512_loadu_ps(c); }
    static void store_sum(Sum sum, float* c, bool /*add*/) { _mm512_storeu_ps(c, sum); }
    static void zip(const std::uint16_t* a, const std::uint16_t* b, std::int64_t count, std::uint16_t* out) {
        zip_by_words(a, b, count, out);
    }
    static void zip_rows(const std::uint16_t* a, std::int64_t rows, std::int64_t count, std::uint16_t* out) {
        zip_rows_by_words(a, rows, count, out);
    }
};

}  // namespace

constinit const HalfSimd avx512_bf16 = half_simd<Bf16>();

}  // namespace rehearse::kernels::cpu
