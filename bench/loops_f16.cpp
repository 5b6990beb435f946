// SPDX-License-Identifier: Apache-2.0
// Compiled for AVX512_FP16; called only where CPUID has it. 32 multiply-adds of halves an instruction.
#include <immintrin.h>

#include "bench/loops_half.hpp"

namespace rehearse::bench {

double fma_f16(std::int64_t rounds) {
    volatile float source = 0.5F;  // read anew for each chain: the compiler must not know that all are the same
    const __m512h half = _mm512_set1_ph(static_cast<_Float16>(source));
    __m512h sums[half_chains];
#pragma GCC unroll 16
    for (__m512h& sum : sums) sum = _mm512_set1_ph(static_cast<_Float16>(source));
    for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
        for (__m512h& sum : sums) sum = _mm512_fmadd_ph(sum, half, half);  // towards 1
    }
    double all = 0;
    for (const __m512h& sum : sums) {
        for (int lane = 0; lane < 32; ++lane) all += static_cast<double>(sum[lane]);
    }
    return all;
}

}  // namespace rehearse::bench
