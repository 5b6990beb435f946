// SPDX-License-Identifier: Apache-2.0
// The kernel of any pass.
#if defined(REHEARSE_CPU_TILES_KERNELS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_TILES_KERNELS_INL
#undef REHEARSE_CPU_TILES_KERNELS_INL
#else
#define REHEARSE_CPU_TILES_KERNELS_INL
#endif

#include <memory>

#include "kernels/cpu/conv/tiles_correlation_inl.hpp"
#include "kernels/cpu/conv/tiles_gradient_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu {
namespace HWY_NAMESPACE {

inline std::unique_ptr<Kernel> tiled_kernel(const Problem& problem, const Transforms& t) {
    if (problem.pass == Pass::backward_weights) return std::make_unique<TiledFilterGradient>(problem, t);
    return std::make_unique<TiledCorrelation>(problem, t);
}

}  // namespace HWY_NAMESPACE
}  // namespace rehearse::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
