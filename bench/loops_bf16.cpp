// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX512_BF16; called only where CPUID has it. VDPBF16PS multiplies 32 pairs and adds them to 16 sums.
#include <immintrin.h>

#include "bench/loops_half.hpp"

namespace rehearse::bench {

double fma_bf16(std::int64_t rounds) {
    volatile float source = 0.5F;  // read anew for each chain: the compiler must not know that all are the same
    const __m512 half = _mm512_set1_ps(source);
    const __m512bh factor = _mm512_cvtne2ps_pbh(half, half);
    __m512 sums[half_chains];
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_set1_ps(source);
    for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
        for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, factor, factor);
    }
    double all = 0;
    for (const __m512& sum : sums) {
        for (int lane = 0; lane < 16; ++lane) all += static_cast<double>(sum[lane]);
    }
    return all;
}

}  // namespace rehearse::bench
