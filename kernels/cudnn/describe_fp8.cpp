// SPDX-License-Identifier: Apache-2.0
#include "kernels/cudnn/describe_fp8.hpp"

#include <fmt/format.h>

namespace rehearse::kernels::cudnn {
namespace {

constexpr std::int64_t whole_vectors = 16;  // bytes

// `together`: what is summed over lies together in memory already.
Fp8Factor factor_of(Factor which, bool together, std::int64_t rows, std::int64_t k) {
    Fp8Factor made{which, which == Factor::diff_dst ? cuda::Fp8::e5m2 : cuda::Fp8::e4m3, !together};
    made.lines = together ? rows : k, made.length = together ? k : rows;
    made.pitch = cuda::divide_up(k, whole_vectors) * whole_vectors;
    return made;
}

}  // namespace

Fp8Product fp8_product(const MatMul& op, Pass pass, std::int64_t batch) {
    const Product of = product(op, pass, batch);
    Fp8Product made{factor_of(of.a, of.transpose_a, of.m, of.k), factor_of(of.b, !of.transpose_b, of.n, of.k)};
    made.m = of.m, made.n = of.n, made.k = made.a.pitch;
    made.bias = of.bias;
    return made;
}

std::string fp8_refusal(const Problem& problem) {
    if (problem.type == DataType::f32) return "8-bit factors are rounded from 16 bits, not from f32";
    if (problem.pass == Pass::update) return {};
    const std::int64_t m = product(std::get<MatMul>(problem.op), problem.pass, problem.batch).m;
    if (m * 2 % whole_vectors == 0) return {};
    return fmt::format("8-bit products have rows of whole 16 bytes: {} numbers are none", m);
}

}  // namespace rehearse::kernels::cudnn
