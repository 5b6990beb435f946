// SPDX-License-Identifier: Apache-2.0
#include "bench/loops.hpp"

#include <array>

#include "bench/loops_half.hpp"
#include "bench/loops_simd.hpp"
#include "kernels/instructions.hpp"

namespace rehearse::bench {

namespace {

constexpr std::array all_kernels{StreamKernel::copy, StreamKernel::scale, StreamKernel::add, StreamKernel::triad};

FmaLoop absent(std::string_view type, std::string why) { return {type, "", nullptr, {}, std::move(why)}; }

[[maybe_unused]] FmaLoop half(std::string_view type, std::string how, double (*run)(std::int64_t)) {
    return {type, std::move(how), run, Flops{half_chains * half_operations}, ""};
}

FmaLoop bf16_loop() {
#if REHEARSE_HAS_AVX512_BF16
    if (kernels::has_avx512_bf16()) return half("bf16", "AVX-512 VDPBF16PS", fma_bf16);
    return absent("bf16", "this CPU has no AVX512_BF16");
#else
    return absent("bf16", "the compiler of this build knows no AVX512_BF16");
#endif
}

FmaLoop f16_loop() {
#if REHEARSE_HAS_AVX512_FP16
    if (kernels::has_avx512_fp16()) return half("f16", "AVX-512 VFMADDPH", fma_f16);
    return absent("f16", "this CPU has no AVX512_FP16");
#else
    return absent("f16", "the compiler of this build knows no AVX512_FP16");
#endif
}

}  // namespace

std::vector<FmaLoop> fma_loops() { return {fma_loop_f32(), fma_loop_f64(), bf16_loop(), f16_loop()}; }

std::span<const StreamKernel> stream_kernels() { return all_kernels; }

std::string_view to_string(StreamKernel kernel) {
    constexpr std::array<std::string_view, 4> names{"copy", "scale", "add", "triad"};
    return names.at(static_cast<std::size_t>(kernel));
}

int arrays_of(StreamKernel kernel) { return kernel == StreamKernel::copy || kernel == StreamKernel::scale ? 2 : 3; }

}  // namespace rehearse::bench
