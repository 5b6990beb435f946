// SPDX-License-Identifier: Apache-2.0
// A loop over a row by vectors, compiled once a SIMD target.
#if defined(REHEARSE_CPU_OVER_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_OVER_INL
#undef REHEARSE_CPU_OVER_INL
#else
#define REHEARSE_CPU_OVER_INL
#endif

#include <cstdint>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> f32;
using Vector = hn::Vec<hn::ScalableTag<float>>;
constexpr std::int64_t lanes = hn::MaxLanes(f32);

/// visit(i) at every whole vector, tail(i) at what is left.
template <typename Visit, typename Tail>
HWY_INLINE void over(std::int64_t count, Visit visit, Tail tail) {
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) visit(i);
    for (; i < count; ++i) tail(i);
}

HWY_INLINE float total(Vector v) { return hn::GetLane(hn::SumOfLanes(f32, v)); }

}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
