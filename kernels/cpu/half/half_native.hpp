// SPDX-License-Identifier: Apache-2.0
// Tables of the files that are compiled for one instruction set each: to be used only where the CPU has it.
#pragma once

#include "kernels/cpu/half/half_simd.hpp"

namespace rehearse::kernels::cpu {

extern const HalfSimd avx512_bf16;
extern const HalfSimd avx512_fp16_chunked, avx512_fp16;

}  // namespace rehearse::kernels::cpu
