// SPDX-License-Identifier: Apache-2.0
// The loops behind a roofline, at the widest SIMD that this CPU has and the build knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace rehearse::bench {

/// Independent chains of multiply-adds that stay in registers: nothing but arithmetic.
struct FmaLoop {
    std::string_view type;  // f32, f64, bf16, f16
    std::string how;        // "AVX-512 FMA"
    /// n rounds; the sum over all chains, so that nothing is left out. Null where it cannot run. Every sum begins at
    /// 1/2 and becomes sum / 2 + 1/2; of bf16, it grows by two products of 1/4.
    double (*run)(std::int64_t n) = nullptr;
    Flops flops;         // of one round: 2 a multiply-add
    std::string absent;  // why it cannot run
};
/// f32, f64, bf16 and f16, in this order; what this CPU or build lacks says so.
std::vector<FmaLoop> fma_loops();

/// Of McCalpin's STREAM (1995), in f64: dst = x, s x, x + y, x + s y with s = 3.
enum class StreamKernel { copy, scale, add, triad };
std::span<const StreamKernel> stream_kernels();
std::string_view to_string(StreamKernel kernel);
/// Arrays that it touches, each once: STREAM counts 8 bytes an element of each, without the read of `dst` that a store
/// may cause.
int arrays_of(StreamKernel kernel);

inline constexpr double stream_scale = 3;
void run(StreamKernel kernel, double* dst, const double* x, const double* y, std::size_t count);

}  // namespace rehearse::bench
