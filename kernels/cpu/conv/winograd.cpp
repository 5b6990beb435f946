// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv/winograd.hpp"

#include <fmt/format.h>

#include <array>

#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/conv/convolution.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/winograd.cpp"  // NOLINT: Highway compiles this file once a target
#include <hwy/foreach_target.h>                             // must come before highway.h

#include "kernels/cpu/conv/tiles_kernels_inl.hpp"
#include "kernels/cpu/conv/winograd_transforms_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu {
namespace HWY_NAMESPACE {

// Everything the kernel calls is of this target, whichever one is chosen while it runs.
std::unique_ptr<Kernel> make_winograd(const Problem& problem, int out) {
    if (out == 2) return tiled_kernel(problem, winograd_transforms<Winograd2>());
    if (out == 4) return tiled_kernel(problem, winograd_transforms<Winograd4>());
    return tiled_kernel(problem, winograd_transforms<Winograd6>());
}

}  // namespace HWY_NAMESPACE
}  // namespace rehearse::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace rehearse::kernels::cpu {
namespace {

HWY_EXPORT(make_winograd);

class Winograd final : public Algorithm {
public:
    Winograd(std::string_view algorithm, int out) : algorithm_(algorithm), out_(out) {}
    std::string_view algorithm() const override { return algorithm_; }

private:
    std::string refusal(const Problem& problem) const override {
        if (std::string reason = refuse_all_but_conv2d(problem, algorithm()); !reason.empty()) return reason;
        const Conv* op = as_conv2d(problem.op);
        const Window& w = op->window;
        if (w.kernel_h != 3 || w.kernel_w != 3) {
            return fmt::format("Winograd needs a 3 x 3 kernel, not {} x {}", w.kernel_h, w.kernel_w);
        }
        if (w.stride_h != 1 || w.stride_w != 1) {
            return fmt::format("Winograd needs stride 1, not {} x {}", w.stride_h, w.stride_w);
        }
        if (w.dilation_h != 1 || w.dilation_w != 1) {
            return fmt::format("Winograd needs dilation 1, not {} x {}", w.dilation_h, w.dilation_w);
        }
        if (op->groups != 1) return fmt::format("Winograd needs one group, not {}", op->groups);
        return {};
    }

    std::unique_ptr<Kernel> make(const Problem& problem) const override {
        return HWY_DYNAMIC_DISPATCH(make_winograd)(problem, out_);
    }

    std::string_view algorithm_;
    int out_;
};

}  // namespace

std::span<const Backend* const> winograd() {
    static const Winograd two("winograd2", 2), four("winograd4", 4), six("winograd6", 6);
    static const std::array<const Backend*, 3> all{&four, &six, &two};
    return all;
}

}  // namespace rehearse::kernels::cpu

#endif
