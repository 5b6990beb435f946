// SPDX-License-Identifier: Apache-2.0
// Kernels that multiply 16-bit numbers as they are, by the instructions of `simd`: the caller sees to it that the
// problem's type is theirs.
#pragma once

#include <memory>
#include <span>

#include "kernels/backend.hpp"
#include "kernels/cpu/half/half_simd.hpp"

namespace rehearse::kernels::cpu {

/// Of a MatMul, all passes.
std::unique_ptr<Kernel> half_product(const Problem& problem, const HalfSimd& simd);

/// Of a convolution of images, all passes: forward and backward_data; backward_weights.
std::unique_ptr<Kernel> half_convolution(const Problem& problem, const HalfSimd& simd);
std::unique_ptr<Kernel> half_direct_convolution(const Problem& problem, const HalfSimd& simd);
std::unique_ptr<Kernel> half_weight_gradient(const Problem& problem, const HalfSimd& simd);

/// Algorithms "direct-chunked" and "gemm-chunked", or "direct-f16" and "gemm-f16": f16 problems by AVX512-FP16, for
/// CPUs that have it.
std::span<const Backend* const> half_sums(HalfSums sums);

/// Float sums into 16 bits of `type`.
void round_half(DataType type, const float* from, std::uint16_t* to, std::int64_t count);

/// The 16-bit numbers of a view.
const std::uint16_t* half_words(ConstView view);
std::uint16_t* half_words(View view);

/// Scratch memory as what is packed into it.
inline std::uint16_t* words(float* scratch) { return reinterpret_cast<std::uint16_t*>(scratch); }
inline std::uint32_t* units(float* scratch) { return reinterpret_cast<std::uint32_t*>(scratch); }

/// Sum in double of numbers `step` apart.
double sum_halves(DataType type, const std::uint16_t* from, std::int64_t count, std::int64_t step);

}  // namespace rehearse::kernels::cpu
