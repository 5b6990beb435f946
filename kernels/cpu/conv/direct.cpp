// SPDX-License-Identifier: Apache-2.0
// Direct convolution over channel-blocked images (the layout nChw16c of Georganas et al. 2018, with as many channels
// as a vector has lanes). Images are packed a few at a time, so that they are still in the cache when they are read;
// a strip of output rows is summed in a panel of channels and transposed to NCHW from there.
#include "kernels/cpu/conv/direct.hpp"

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/convolution.hpp"
#include "kernels/cpu/conv/direct_passes.hpp"
#include "kernels/cpu/half/half.hpp"

namespace rehearse::kernels::cpu {
namespace {

class Direct final : public Algorithm {
public:
    std::string_view algorithm() const override { return "direct"; }

private:
    std::string refusal(const Problem& problem) const override {
        return refuse_all_but_convolutions(problem, "direct");
    }

    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        if (is_depthwise(Convolution(problem))) return depthwise(problem);
        return problem.pass == Pass::backward_weights ? direct_weight_gradient(problem) : direct_convolution(problem);
    }

    std::unique_ptr<Kernel> make_half(const Problem& problem) const override {
        const HalfSimd* const simd = problem.type == DataType::bf16 ? native_bf16() : nullptr;
        const Conv* conv = as_conv2d(problem.op);
        const bool fits = conv != nullptr && !conv->relu && !is_depthwise(Convolution(problem));
        return simd != nullptr && fits ? half_convolution(problem, *simd) : nullptr;
    }
};

}  // namespace

const Backend& direct() {
    static const Direct backend;
    return backend;
}

}  // namespace rehearse::kernels::cpu
