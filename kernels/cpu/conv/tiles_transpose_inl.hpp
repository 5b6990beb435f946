// SPDX-License-Identifier: Apache-2.0
// Between rows of pixels, one row a channel (NCHW), and pixels of one vector of channels each.
#if defined(REHEARSE_CPU_TILES_TRANSPOSE_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_TILES_TRANSPOSE_INL
#undef REHEARSE_CPU_TILES_TRANSPOSE_INL
#else
#define REHEARSE_CPU_TILES_TRANSPOSE_INL
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;
inline constexpr std::int64_t lanes = hn::MaxLanes(Floats());

/// What happens to pixels on their way out: a vector is added, then negative ones become 0 where there is a ReLU.
struct Finish {
    Vec add;
    bool relu;

    HWY_INLINE Vec of(Vec v) const {
        const Vec sum = hn::Add(v, add);
        return relu ? hn::Max(hn::Zero(Floats()), sum) : sum;
    }
};

#if HWY_TARGET != HWY_SCALAR

// Four pixels of each of 4, 8 or 16 channels that lie `stride` apart: 128-bit block b holds channel 4 b.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* from, std::int64_t stride) {
    if constexpr (hn::MaxLanes(D()) == 4) {
        return hn::LoadU(d, from);
    } else {
        const hn::Half<D> half;
        const auto lower = load_blocks(half, from, stride);
        const auto upper = load_blocks(half, from + hn::MaxLanes(half) * stride, stride);
        return hn::Combine(d, upper, lower);
    }
}

template <class D>
HWY_INLINE void store_blocks(D d, hn::Vec<D> v, float* to, std::int64_t stride) {
    if constexpr (hn::MaxLanes(D()) == 4) {
        hn::StoreU(v, d, to);
    } else {
        const hn::Half<D> half;
        store_blocks(half, hn::LowerHalf(half, v), to, stride);
        store_blocks(half, hn::UpperHalf(half, v), to + hn::MaxLanes(half) * stride, stride);
    }
}

// Transposes each 4 x 4 floats of the same 128-bit blocks.
HWY_INLINE void transpose_blocks(Vec (&v)[4]) {
    const Floats d;
    const hn::Repartition<double, Floats> wide;
    const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, v[0], v[1]));
    const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, v[2], v[3]));
    const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, v[0], v[1]));
    const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, v[2], v[3]));
    v[0] = hn::BitCast(d, hn::InterleaveLower(wide, low01, low23));
    v[1] = hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23));
    v[2] = hn::BitCast(d, hn::InterleaveLower(wide, high01, high23));
    v[3] = hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23));
}

// Pixels up to the returned one, four at a time, if the channels fill a vector.
HWY_INLINE std::int64_t gather_fours(const float* HWY_RESTRICT from, std::int64_t stride, std::int64_t count,
                                     float* HWY_RESTRICT to) {
    const Floats d;
    std::int64_t x = 0;
    for (; x + 4 <= count; x += 4) {
        Vec v[4];
        for (std::int64_t r = 0; r < 4; ++r) v[r] = load_blocks(d, from + x + r * stride, stride);
        transpose_blocks(v);
        for (std::int64_t r = 0; r < 4; ++r) hn::Store(v[r], d, to + (x + r) * lanes);
    }
    return x;
}

HWY_INLINE std::int64_t scatter_fours(const float* HWY_RESTRICT from, const Finish& finish, std::int64_t count,
                                      float* HWY_RESTRICT to, std::int64_t stride) {
    const Floats d;
    std::int64_t x = 0;
    for (; x + 4 <= count; x += 4) {
        Vec v[4];
        for (std::int64_t r = 0; r < 4; ++r) v[r] = finish.of(hn::Load(d, from + (x + r) * lanes));
        transpose_blocks(v);
        for (std::int64_t r = 0; r < 4; ++r) store_blocks(d, v[r], to + x + r * stride, stride);
    }
    return x;
}

#else  // one lane: what is left over is all

inline std::int64_t gather_fours(const float*, std::int64_t, std::int64_t, float*) { return 0; }
inline std::int64_t scatter_fours(const float*, const Finish&, std::int64_t, float*, std::int64_t) { return 0; }

#endif

/// to[x][channel] = from[channel * stride + x]; channels that are missing to a whole vector become 0.
inline void gather_pixels(const float* HWY_RESTRICT from, std::int64_t stride, std::int64_t channels,
                          std::int64_t count, float* HWY_RESTRICT to) {
    std::int64_t x = channels == lanes ? gather_fours(from, stride, count, to) : 0;
    for (; x < count; ++x) {
        for (std::int64_t c = 0; c < lanes; ++c) to[x * lanes + c] = c < channels ? from[c * stride + x] : 0.0F;
    }
}

/// to[channel * stride + x] = what `finish` makes of from[x][channel].
inline void scatter_pixels(const float* HWY_RESTRICT from, const Finish& finish, std::int64_t count,
                           std::int64_t channels, float* HWY_RESTRICT to, std::int64_t stride) {
    const Floats d;
    std::int64_t x = channels == lanes ? scatter_fours(from, finish, count, to, stride) : 0;
    HWY_ALIGN float pixel[lanes];
    for (; x < count; ++x) {
        hn::Store(finish.of(hn::Load(d, from + x * lanes)), d, pixel);
        for (std::int64_t c = 0; c < channels; ++c) to[c * stride + x] = pixel[c];
    }
}

/// A rectangle of the image `plane`, which starts at (top, left) and may stick out of it; outside there are zeros.
struct Rectangle {
    std::int64_t top, left, rows, cols;
};

inline void load_band(const float* plane, std::int64_t channels, std::int64_t height, std::int64_t width,
                      const Rectangle& r, float* band) {
    const std::int64_t first = std::clamp<std::int64_t>(-r.left, 0, r.cols);
    const std::int64_t last = std::clamp<std::int64_t>(width - r.left, first, r.cols);
    for (std::int64_t y = 0; y < r.rows; ++y) {
        float* row = band + y * r.cols * lanes;
        const std::int64_t image_y = r.top + y;
        if (image_y < 0 || image_y >= height) {
            std::fill_n(row, r.cols * lanes, 0.0F);
            continue;
        }
        std::fill_n(row, first * lanes, 0.0F);
        std::fill_n(row + last * lanes, (r.cols - last) * lanes, 0.0F);
        gather_pixels(plane + image_y * width + r.left + first, height * width, channels, last - first,
                      row + first * lanes);
    }
}

/// load_band of what ReLU passes on of `plane`: its values where `sign` is positive. The part inside the image is
/// masked into `room`, as large as the band, first: that is cheaper than to transpose the signs, too.
inline void load_masked_band(const float* plane, const float* sign, std::int64_t channels, std::int64_t height,
                             std::int64_t width, const Rectangle& r, float* HWY_RESTRICT room, float* band) {
    const Floats d;
    const std::int64_t top = std::clamp<std::int64_t>(r.top, 0, height),
                       left = std::clamp<std::int64_t>(r.left, 0, width);
    const std::int64_t rows = std::clamp(r.top + r.rows, top, height) - top;
    const std::int64_t cols = std::clamp(r.left + r.cols, left, width) - left;
    float* to = room;
    for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t y = 0; y < rows; ++y, to += cols) {
            const std::int64_t at = (c * height + top + y) * width + left;
            std::int64_t x = 0;
            for (; x + lanes <= cols; x += lanes) {
                const auto positive = hn::Gt(hn::LoadU(d, sign + at + x), hn::Zero(d));
                hn::StoreU(hn::IfThenElseZero(positive, hn::LoadU(d, plane + at + x)), d, to + x);
            }
            for (; x < cols; ++x) to[x] = sign[at + x] > 0 ? plane[at + x] : 0.0F;
        }
    }
    load_band(room, channels, rows, cols, {r.top - top, r.left - left, r.rows, r.cols}, band);
}

inline void store_band(const float* band, const Finish& finish, const Rectangle& r, std::int64_t channels,
                       std::int64_t height, std::int64_t width, float* plane) {
    const std::int64_t rows = std::min(r.rows, height - r.top), cols = std::min(r.cols, width - r.left);
    for (std::int64_t y = 0; y < rows; ++y) {
        scatter_pixels(band + y * r.cols * lanes, finish, cols, channels, plane + (r.top + y) * width + r.left,
                       height * width);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace rehearse::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
