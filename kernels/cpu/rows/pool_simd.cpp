// SPDX-License-Identifier: Apache-2.0
// A row of the image is split into phases of the stride, so that outputs side by side read pixels side by side. Pixels
// are compared as the reference does, in the order of taps: what is not a number stays if it comes first.
#include "kernels/cpu/rows/pool_simd.hpp"

#include <algorithm>

#include "kernels/cpu/algorithm.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rows/pool_simd.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                              // must come before highway.h

#include "hwy/highway.h"
#include "kernels/cpu/over_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

void split_row(const PoolColumns& columns, const float* HWY_RESTRICT src, float* HWY_RESTRICT room) {
    float* const first = room + columns.before;
    if (columns.stride == 1) {
        std::copy_n(src, columns.width, first);
        return;
    }
    std::int64_t pixel = 0;
    if (columns.stride == 2) {
        for (; pixel + 2 * lanes <= columns.width; pixel += 2 * lanes) {
            Vector even, odd;
            hn::LoadInterleaved2(f32, src + pixel, even, odd);
            hn::StoreU(even, f32, first + pixel / 2);
            hn::StoreU(odd, f32, first + columns.phase + pixel / 2);
        }
    }
    std::int64_t phase = 0;
    for (std::int64_t place = pixel / columns.stride; pixel < columns.width; ++pixel) {
        first[phase * columns.phase + place] = src[pixel];
        if (++phase == columns.stride) phase = 0, ++place;
    }
}

// dst += the row that is split in `room`.
void add_joined(const PoolColumns& columns, const float* HWY_RESTRICT room, float* HWY_RESTRICT dst) {
    const float* const first = room + columns.before;
    std::int64_t pixel = 0;
    if (columns.stride == 1) {
        for (; pixel + lanes <= columns.width; pixel += lanes)
            hn::StoreU(hn::Add(hn::LoadU(f32, dst + pixel), hn::LoadU(f32, first + pixel)), f32, dst + pixel);
    }
    if (columns.stride == 2) {
        for (; pixel + 2 * lanes <= columns.width; pixel += 2 * lanes) {
            Vector even, odd;
            hn::LoadInterleaved2(f32, dst + pixel, even, odd);
            even = hn::Add(even, hn::LoadU(f32, first + pixel / 2));
            odd = hn::Add(odd, hn::LoadU(f32, first + columns.phase + pixel / 2));
            hn::StoreInterleaved2(even, odd, f32, dst + pixel);
        }
    }
    std::int64_t phase = 0;
    for (std::int64_t place = pixel / columns.stride; pixel < columns.width; ++pixel) {
        dst[pixel] += first[phase * columns.phase + place];
        if (++phase == columns.stride) phase = 0, ++place;
    }
}

// The largest pixels of a vector's windows and the number of its tap, below 0 where a window holds no pixel.
struct Largest {
    Vector value, tap;
};

template <bool inner>
HWY_INLINE Largest largest(const PoolColumns& columns, std::int64_t rows, const float* HWY_RESTRICT room,
                           std::int64_t x) {
    Largest found{hn::Zero(f32), hn::Set(f32, -1.0F)};
    const Vector at = hn::Iota(f32, static_cast<float>(x));
    float number = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* const phases = room + row * columns.stride * columns.phase + columns.before + x;
        for (const ColumnTap& tap : columns.taps) {
            const Vector pixel = hn::LoadU(f32, phases + tap.phase * columns.phase + tap.shift);
            auto taken = hn::Or(hn::Lt(found.value, pixel), hn::Lt(found.tap, hn::Zero(f32)));
            if constexpr (!inner) {
                const auto inside = hn::And(hn::Ge(at, hn::Set(f32, static_cast<float>(tap.begin))),
                                            hn::Lt(at, hn::Set(f32, static_cast<float>(tap.end))));
                taken = hn::And(taken, inside);
            }
            found.value = hn::IfThenElse(taken, pixel, found.value);
            found.tap = hn::IfThenElse(taken, hn::Set(f32, number), found.tap);
            number += 1;
        }
    }
    return found;
}

HWY_INLINE Largest largest_at(const PoolColumns& columns, std::int64_t rows, const float* room, std::int64_t x) {
    const bool inner = x >= columns.inner_begin && x + lanes <= columns.inner_end;
    return inner ? largest<true>(columns, rows, room, x) : largest<false>(columns, rows, room, x);
}

void split_rows(const PoolColumns& columns, PoolRows rows, const float* src, float* room) {
    for (std::int64_t row = 0; row < rows.count; ++row)
        split_row(columns, src + rows.at[row], room + columns.room(row));
}

void pool_row(const PoolColumns& columns, PoolRows rows, const float* src, float* room, float* HWY_RESTRICT dst) {
    split_rows(columns, rows, src, room);
    std::int64_t x = 0;
    for (; x + lanes <= columns.out_width; x += lanes)
        hn::StoreU(largest_at(columns, rows.count, room, x).value, f32, dst + x);
    if (x == columns.out_width) return;
    float rest[static_cast<std::size_t>(lanes)];
    hn::StoreU(largest_at(columns, rows.count, room, x).value, f32, rest);
    std::copy_n(rest, columns.out_width - x, dst + x);
}

void pool_row_gradient(const PoolColumns& columns, PoolRows rows, const float* src, const float* HWY_RESTRICT diff_dst,
                       float* room, float* diff_src) {
    split_rows(columns, rows, src, room);
    float* const diff = room + columns.room(rows.count);
    // By vectors, as it is read: a vector that meets single numbers on their way to the cache waits for them.
    for (std::int64_t i = 0; i < columns.room(rows.count); i += lanes) hn::StoreU(hn::Zero(f32), f32, diff + i);
    for (std::int64_t x = 0; x < columns.out_width; x += lanes) {
        const Vector tap = largest_at(columns, rows.count, room, x).tap;
        float rest[static_cast<std::size_t>(lanes)] = {};
        const bool whole = x + lanes <= columns.out_width;
        if (!whole) std::copy_n(diff_dst + x, columns.out_width - x, rest);
        const Vector gradient = hn::LoadU(f32, whole ? diff_dst + x : rest);
        float number = 0;
        for (std::int64_t row = 0; row < rows.count; ++row) {
            for (const ColumnTap& column : columns.taps) {
                float* const to =
                    diff + columns.room(row) + column.phase * columns.phase + columns.before + x + column.shift;
                const auto own = hn::Eq(tap, hn::Set(f32, number));
                hn::StoreU(hn::Add(hn::LoadU(f32, to), hn::IfThenElseZero(own, gradient)), f32, to);
                number += 1;
            }
        }
    }
    for (std::int64_t row = 0; row < rows.count; ++row)
        add_joined(columns, diff + columns.room(row), diff_src + rows.at[row]);
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(pool_row);
HWY_EXPORT(pool_row_gradient);

PoolColumns pool_columns(std::int64_t width, std::int64_t out_width, std::int64_t kernel, std::int64_t stride,
                         std::int64_t dilation, std::int64_t pad) {
    PoolColumns columns;
    columns.width = width, columns.out_width = columns.inner_end = out_width, columns.stride = stride;
    std::int64_t behind = divide_up(width, stride);
    for (std::int64_t tap = 0; tap < kernel; ++tap) {
        const std::int64_t offset = tap * dilation - pad;
        const std::int64_t shift = offset >= 0 ? offset / stride : -divide_up(-offset, stride);
        const std::int64_t begin = std::clamp<std::int64_t>(-shift, 0, out_width);
        const std::int64_t end =
            std::clamp(width > offset ? divide_up(width - offset, stride) : std::int64_t{0}, begin, out_width);
        columns.taps.push_back({offset - shift * stride, shift, begin, end});
        columns.inner_begin = std::max(columns.inner_begin, begin);
        columns.inner_end = std::min(columns.inner_end, end);
        columns.before = std::max(columns.before, -shift);
        behind = std::max(behind, shift + whole_lines(out_width));  // of whole vectors, at most a line
    }
    columns.phase = whole_lines(columns.before + behind);
    return columns;
}

void max_pool_row(const PoolColumns& columns, PoolRows rows, const float* src, float* room, float* dst) {
    HWY_DYNAMIC_DISPATCH(pool_row)(columns, rows, src, room, dst);
}
void max_pool_row_gradient(const PoolColumns& columns, PoolRows rows, const float* src, const float* diff_dst,
                           float* room, float* diff_src) {
    HWY_DYNAMIC_DISPATCH(pool_row_gradient)(columns, rows, src, diff_dst, room, diff_src);
}

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
