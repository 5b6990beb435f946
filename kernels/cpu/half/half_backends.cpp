// SPDX-License-Identifier: Apache-2.0
// f16 arithmetic as algorithms of their own: what it costs in accuracy is the user's choice. Sums of bf16 are in f32
// whatever the instruction, so `direct` and `gemm` take it without being asked.
#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/direct_passes.hpp"
#include "kernels/cpu/half/half.hpp"

namespace rehearse::kernels::cpu {
namespace {

class InF16 final : public Algorithm {
public:
    InF16(std::string_view name, bool convolves, HalfSums sums) : name_(name), convolves_(convolves), sums_(sums) {}

    std::string_view algorithm() const override { return name_; }

    Accumulation accumulation() const override {
        return sums_ == HalfSums::f16 ? Accumulation::f16 : Accumulation::chunked;
    }

private:
    std::string refusal(const Problem& problem) const override {
        const Conv* conv = as_conv2d(problem.op);
        if (convolves_ ? conv == nullptr : !std::holds_alternative<MatMul>(problem.op)) {
            return fmt::format("{} runs {}, not {}", name_, convolves_ ? "conv2d" : "matmul", kind_of(problem.op));
        }
        if (problem.type != DataType::f16) return fmt::format("{} runs f16", name_);
        if (conv != nullptr && is_depthwise(Convolution(problem)))
            return fmt::format("{} runs no depthwise convolution", name_);
        const auto* dense = std::get_if<MatMul>(&problem.op);
        if ((conv != nullptr && conv->relu) || (dense != nullptr && dense->activation)) {
            return fmt::format("{} runs nothing fused", name_);
        }
        if (native_f16(sums_) == nullptr) return "this CPU has no AVX512-FP16";
        return {};
    }

    std::unique_ptr<Kernel> make(const Problem& /*problem*/) const override {
        require(false, "f32 is refused");
        return nullptr;
    }

    std::unique_ptr<Kernel> make_half(const Problem& problem) const override {
        const HalfSimd& simd = *native_f16(sums_);
        return convolves_ ? half_convolution(problem, simd) : half_product(problem, simd);
    }

    std::string_view name_;
    bool convolves_;
    HalfSums sums_;
};

}  // namespace

std::span<const Backend* const> half_sums(HalfSums sums) {
    static const InF16 direct_chunked("direct-chunked", true, HalfSums::chunked);
    static const InF16 gemm_chunked("gemm-chunked", false, HalfSums::chunked);
    static const InF16 direct_f16("direct-f16", true, HalfSums::f16);
    static const InF16 gemm_f16("gemm-f16", false, HalfSums::f16);
    static const std::array<const Backend*, 2> chunked{&direct_chunked, &gemm_chunked};
    static const std::array<const Backend*, 2> all{&direct_f16, &gemm_f16};
    return sums == HalfSums::f16 ? all : chunked;
}

}  // namespace rehearse::kernels::cpu
