// SPDX-License-Identifier: Apache-2.0
// A dense layer's product of 8-bit factors, as cuBLASLt takes it, in plain values.
#pragma once

#include <cstdint>
#include <string>

#include "core/op.hpp"
#include "kernels/cuda/fp8.hpp"
#include "kernels/cudnn/describe.hpp"

namespace rehearse::kernels::cudnn {

/// How a factor comes to 8 bits: in memory it has `lines` of `length` numbers; turned, its columns become rows. Its
/// rows hold what is summed over, and zeros up to `pitch`.
struct Fp8Factor {
    Factor which = Factor::src;
    cuda::Fp8 format = cuda::Fp8::e4m3;
    bool turned = false;
    std::int64_t lines = 1, length = 1, pitch = 16;
    std::int64_t rows() const { return turned ? length : lines; }
    std::int64_t bytes() const { return rows() * pitch; }
};

/// C {m, n} = A {k, m}^T B {k, n}, column after column: the one order of 8-bit factors that cuBLASLt has on every GPU
/// ("TN", cuBLAS 13 documentation of cublasLtMatmul). C and the bias are as a Product of 16 bits has them.
struct Fp8Product {
    Fp8Factor a, b;
    std::int64_t m = 1, n = 1, k = 16;
    BiasPart bias = BiasPart::none;
};
/// Gradients have e5m2, all else e4m3 (Micikevicius et al. 2022, section 4).
Fp8Product fp8_product(const MatMul& op, Pass pass, std::int64_t batch);

/// Empty, or why no GPU multiplies this in 8 bits.
std::string fp8_refusal(const Problem& problem);

}  // namespace rehearse::kernels::cudnn
