// SPDX-License-Identifier: Apache-2.0
// Intel's manual, volume 2, CPUID: leaf 1, ECX bit 29 is F16C; leaf 7, EDX bit 23 of subleaf 0 AVX512-FP16, EAX bit 5
// of subleaf 1 AVX512-BF16. That the system saves the wide registers is asked by __builtin_cpu_supports.
#include "kernels/instructions.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rehearse::kernels {

#if defined(__x86_64__)
namespace {

struct Leaf {
    unsigned a = 0, b = 0, c = 0, d = 0;
};

Leaf cpuid(unsigned leaf, unsigned subleaf) {
    Leaf read;
    if (__get_cpuid_count(leaf, subleaf, &read.a, &read.b, &read.c, &read.d) == 0) return {};
    return read;
}

bool has(unsigned bits, int bit) { return (bits >> bit & 1) != 0; }

bool has_avx512() { return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"); }

}  // namespace

bool has_avx2_f16c() { return __builtin_cpu_supports("avx2") && has(cpuid(1, 0).c, 29); }
bool has_avx512_fp16() { return has_avx512() && has(cpuid(7, 0).d, 23); }
bool has_avx512_bf16() { return has_avx512() && has(cpuid(7, 1).a, 5); }
#else
bool has_avx2_f16c() { return false; }
bool has_avx512_fp16() { return false; }
bool has_avx512_bf16() { return false; }
#endif

}  // namespace rehearse::kernels
