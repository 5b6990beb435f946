// SPDX-License-Identifier: Apache-2.0
// Direct convolution where a lane meets only its own lane: groups of one channel and one filter.
#if defined(REHEARSE_CPU_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_LANES_INL
#undef REHEARSE_CPU_LANES_INL
#else
#define REHEARSE_CPU_LANES_INL
#endif

#include <algorithm>
#include <array>
#include <utility>

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

/// Pixels, and taps, of a block of sums: enough to hide the latency of a multiply-add. An image 7 or 14 wide is blocks
/// of one size with 32 registers.
constexpr int most_by_lane = HWY_TARGET == HWY_AVX3 ? 14 : 9;

/// The fewest pieces of at most `most_by_lane`, as equal as can be.
HWY_INLINE std::int64_t even_by_lane(std::int64_t size) {
    const std::int64_t pieces = (size + most_by_lane - 1) / most_by_lane;
    return (size + pieces - 1) / pieces;
}

template <int... less_one>
constexpr auto taps_blocks_by_lane(std::integer_sequence<int, less_one...> /*pixels*/) {
    return std::array{&taps_by_lane<less_one + 1>...};
}

HWY_INLINE void sum_over_taps_by_lane(const SumOverTaps& s) {
    static constexpr auto of_pixels = taps_blocks_by_lane(std::make_integer_sequence<int, most_by_lane>{});
    const std::int64_t piece = even_by_lane(s.columns);
    for (std::int64_t y = 0; y < s.rows; ++y) {
        const float* const src = s.src + y * s.src_row;
        float* const out = s.out + y * s.columns * lanes;
        for (std::int64_t x = 0; x < s.columns; x += piece)
            of_pixels[static_cast<std::size_t>(std::min(piece, s.columns - x) - 1)](s, src + x * lanes,
                                                                                    out + x * lanes);
    }
}

/// The sums of some taps, so that what is read of diff_dst meets them all.
template <int taps>
void pixels_by_lane(const SumOverPixels& s, const TapAt* at) {
    Vector sum[taps];
    const float* src[taps];
#pragma GCC unroll 16
    for (int i = 0; i < taps; ++i) {
        sum[i] = hn::LoadU(f32, s.out + at[i].weights);
        src[i] = s.src + at[i].src;
    }
    const float* HWY_RESTRICT b = s.diff_dst;
    for (std::int64_t y = 0; y < s.rows; ++y, b += s.columns * lanes) {
        for (std::int64_t x = 0; x < s.columns; ++x) {
            const Vector diff = hn::LoadU(f32, b + x * lanes);
            const std::int64_t pixel = y * s.src_row + x * lanes;
#pragma GCC unroll 16
            for (int i = 0; i < taps; ++i) sum[i] = hn::MulAdd(hn::LoadU(f32, src[i] + pixel), diff, sum[i]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < taps; ++i) hn::StoreU(sum[i], f32, s.out + at[i].weights);
}

template <int... less_one>
constexpr auto pixels_blocks_by_lane(std::integer_sequence<int, less_one...> /*taps*/) {
    return std::array{&pixels_by_lane<less_one + 1>...};
}

HWY_INLINE void sum_over_pixels_by_lane(const SumOverPixels& s, const TapAt* taps, std::int64_t count) {
    static constexpr auto of_taps = pixels_blocks_by_lane(std::make_integer_sequence<int, most_by_lane>{});
    const std::int64_t piece = count == 0 ? 1 : even_by_lane(count);
    for (std::int64_t i = 0; i < count; i += piece)
        of_taps[static_cast<std::size_t>(std::min(piece, count - i) - 1)](s, taps + i);
}

}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
