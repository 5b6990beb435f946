// SPDX-License-Identifier: Apache-2.0
// Blocks of matrices packed into panels, compiled once a SIMD target.
#if defined(REHEARSE_CPU_PACK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_PACK_INL
#undef REHEARSE_CPU_PACK_INL
#else
#define REHEARSE_CPU_PACK_INL
#endif

#include <algorithm>

#include "hwy/highway.h"
#include "kernels/cpu/gemm/gemm.hpp"
#include "kernels/cpu/transpose_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> f32;
using Vector = hn::Vec<hn::ScalableTag<float>>;
constexpr std::int64_t lanes = hn::MaxLanes(f32);
constexpr std::int64_t columns = 2 * lanes;  // of a panel of B

// What of a panel `size` wide lies beyond the matrix.
inline void clear_rest(float* packed, std::int64_t k, std::int64_t size, std::int64_t used) {
    for (std::int64_t l = 0; used < size && l < k; ++l)
        std::fill(packed + l * size + used, packed + (l + 1) * size, 0.0F);
}

inline void pack_panels_of_a(GemmShape shape, std::int64_t height, MatrixView a, float* packed) {
    for (std::int64_t i = 0; i < shape.m; i += height, packed += height * shape.k) {
        const std::int64_t rows = std::min(height, shape.m - i);
        const float* from = a.data + i * a.row;
        if (a.column == 1) {
            transpose(from, a.row, rows, shape.k, packed, height);
        } else {
            for (std::int64_t l = 0; l < shape.k; ++l) {
                for (std::int64_t r = 0; r < rows; ++r) packed[l * height + r] = from[r * a.row + l * a.column];
            }
        }
        clear_rest(packed, shape.k, height, rows);
    }
}

// Whole panels of rows that lie in one piece, a few side by side: each row is read further before the next page is.
inline void copy_panels_of_b(std::int64_t panels, std::int64_t k, const float* HWY_RESTRICT from, std::int64_t row,
                             float* HWY_RESTRICT packed) {
    constexpr std::int64_t side_by_side = 4;
    for (std::int64_t first = 0; first < panels; first += side_by_side) {
        const std::int64_t count = std::min(side_by_side, panels - first);
        for (std::int64_t l = 0; l < k; ++l) {
            for (std::int64_t p = first; p < first + count; ++p) {
                const float* const in = from + l * row + p * columns;
                float* const out = packed + (p * k + l) * columns;
                hn::StoreU(hn::LoadU(f32, in), f32, out);
                hn::StoreU(hn::LoadU(f32, in + lanes), f32, out + lanes);
            }
        }
    }
}

inline void pack_panels_of_b(GemmShape shape, MatrixView b, float* packed) {
    const std::int64_t copied = b.column == 1 ? shape.n / columns : 0;
    copy_panels_of_b(copied, shape.k, b.data, b.row, packed);
    packed += copied * columns * shape.k;
    for (std::int64_t j = copied * columns; j < shape.n; j += columns, packed += columns * shape.k) {
        const std::int64_t width = std::min(columns, shape.n - j);
        const float* from = b.data + j * b.column;
        if (b.row == 1) {
            transpose(from, b.column, width, shape.k, packed, columns);
        } else {
            for (std::int64_t l = 0; l < shape.k; ++l) {
                for (std::int64_t r = 0; r < width; ++r) packed[l * columns + r] = from[l * b.row + r * b.column];
            }
        }
        clear_rest(packed, shape.k, columns, width);
    }
}

}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
