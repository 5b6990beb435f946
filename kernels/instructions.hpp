// SPDX-License-Identifier: Apache-2.0
// Instructions that this CPU has, of which not every compiler's __builtin_cpu_supports knows the names (clang 16 knows
// neither f16c nor avx512fp16). false on other processors than x86-64.
#pragma once

namespace rehearse::kernels {

/// AVX2, and conversions between f16 and f32.
bool has_avx2_f16c();
/// AVX-512 with its BW and VL, and arithmetic on f16; and dot products of bf16.
bool has_avx512_fp16();
bool has_avx512_bf16();

}  // namespace rehearse::kernels
