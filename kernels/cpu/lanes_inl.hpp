// SPDX-License-Identifier: Apache-2.0
// Direct convolution where a lane meets only its own lane: groups of one channel and one filter.
#if defined(REHEARSE_CPU_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_LANES_INL
#undef REHEARSE_CPU_LANES_INL
#else
#define REHEARSE_CPU_LANES_INL
#endif

#include "hwy/highway.h"
#include "kernels/cpu/conv/direct_simd.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> f32;
using Vector = hn::Vec<hn::ScalableTag<float>>;
constexpr std::int64_t lanes = hn::MaxLanes(f32);

template <int pixels>
void taps_by_lane(const SumOverTaps& s, const float* HWY_RESTRICT src, float* HWY_RESTRICT out) {
    Vector sum[pixels];
#pragma GCC unroll 16
    for (int i = 0; i < pixels; ++i) sum[i] = s.accumulate ? hn::LoadU(f32, out + i * lanes) : hn::Zero(f32);
    for (const TapAt* tap = s.taps; tap != s.taps + s.tap_count; ++tap) {
        const Vector factor = hn::LoadU(f32, s.weights + tap->weights);
#pragma GCC unroll 16
        for (int i = 0; i < pixels; ++i) {
            sum[i] = hn::MulAdd(hn::LoadU(f32, src + tap->src + i * lanes), factor, sum[i]);
        }
    }
    if (s.relu) {
#pragma GCC unroll 16
        for (int i = 0; i < pixels; ++i) sum[i] = hn::Max(hn::Zero(f32), sum[i]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < pixels; ++i) hn::StoreU(sum[i], f32, out + i * lanes);
}

HWY_INLINE void sum_over_taps_by_lane(const SumOverTaps& s) {
    constexpr std::int64_t most = 8;  // sums: enough to hide the latency of a multiply-add
    for (std::int64_t y = 0; y < s.rows; ++y) {
        const float* const src = s.src + y * s.src_row;
        float* const out = s.out + y * s.columns * lanes;
        std::int64_t x = 0;
        for (; x + most <= s.columns; x += most) taps_by_lane<most>(s, src + x * lanes, out + x * lanes);
        for (; x < s.columns; ++x) taps_by_lane<1>(s, src + x * lanes, out + x * lanes);
    }
}

HWY_INLINE void sum_over_pixels_by_lane(const SumOverPixels& s) {
    Vector sum[4] = {hn::LoadU(f32, s.out), hn::Zero(f32), hn::Zero(f32), hn::Zero(f32)};
    const float* HWY_RESTRICT b = s.diff_dst;
    for (std::int64_t y = 0; y < s.rows; ++y, b += s.columns * lanes) {
        const float* HWY_RESTRICT a = s.src + y * s.src_row;
        std::int64_t x = 0;
        for (; x + 4 <= s.columns; x += 4) {
            for (std::int64_t i = 0; i < 4; ++i) {
                sum[i] = hn::MulAdd(hn::LoadU(f32, a + (x + i) * lanes), hn::LoadU(f32, b + (x + i) * lanes), sum[i]);
            }
        }
        for (; x < s.columns; ++x) {
            sum[0] = hn::MulAdd(hn::LoadU(f32, a + x * lanes), hn::LoadU(f32, b + x * lanes), sum[0]);
        }
    }
    hn::StoreU(hn::Add(hn::Add(sum[0], sum[1]), hn::Add(sum[2], sum[3])), f32, s.out);
}

}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
