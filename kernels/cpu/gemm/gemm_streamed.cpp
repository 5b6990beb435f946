// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/gemm_streamed.hpp"

#include <algorithm>
#include <array>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm_streamed.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                                  // must come before highway.h
#include "hwy/highway.h"
#include "kernels/cpu/algorithm.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> f32;
using Vector = hn::Vec<hn::ScalableTag<float>>;
constexpr std::int64_t lanes = hn::MaxLanes(f32);
constexpr std::int64_t columns = 2 * lanes;                 // of a panel
constexpr int most_rows = HWY_TARGET == HWY_AVX3 ? 14 : 6;  // of a panel of A: as in gemm.cpp
constexpr std::int64_t max_depth = 256;                     // so that a panel of B stays in the first cache
constexpr std::int64_t line = 16;                           // floats
constexpr std::int64_t kept_floats = 8 * 1024;              // of B: 32 KiB

// How the product is cut: rows of B at a time, and panels of B that all of A passes by before the next ones. So many
// that a row of C is written in one go over them: C's rows lie pages apart, its panels only lines.
struct Cut {
    explicit Cut(std::int64_t k)
        : depth(k == 0 ? 1 : divide_up(k, divide_up(k, max_depth))),
          width(std::max<std::int64_t>(1, kept_floats / (depth * columns)) * columns) {}
    std::int64_t depth, width;
};

// What a tile reads of B.
struct Right {
    const float* from;
    std::int64_t row;
    float* packed;  // where B is kept for the other tiles of the panel; nullptr: `from` is that already
};

// Rows of `width` floats into the second cache: the first is full of what is multiplied now.
void fetch(const float* from, std::int64_t row, std::int64_t rows, std::int64_t width) {
    for (std::int64_t l = 0; l < rows; ++l, from += row) {
        for (std::int64_t j = 0; j < width; j += line) __builtin_prefetch(from + j, 0, 2);
        __builtin_prefetch(from + width - 1, 0, 2);  // of rows that do not begin a line
    }
}

template <int rows, bool packs>
void multiply_tile(std::int64_t k, const float* HWY_RESTRICT a, std::int64_t a_step, const Right& right,
                   float* HWY_RESTRICT c, std::int64_t ldc, bool accumulate) {
    Vector sum[rows][2];
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
        sum[i][0] = accumulate ? hn::LoadU(f32, c + i * ldc) : hn::Zero(f32);
        sum[i][1] = accumulate ? hn::LoadU(f32, c + i * ldc + lanes) : hn::Zero(f32);
    }
    for (int i = 0; i < rows; ++i) __builtin_prefetch(c + i * ldc, 1);  // so that stores do not wait for their lines
    const float* HWY_RESTRICT b = right.from;
    float* HWY_RESTRICT packed = right.packed;
    for (std::int64_t l = 0; l < k; ++l) {
        const Vector left_half = hn::LoadU(f32, b);
        const Vector right_half = hn::LoadU(f32, b + lanes);
        if constexpr (packs) {
            hn::StoreU(left_half, f32, packed);
            hn::StoreU(right_half, f32, packed + lanes);
            packed += columns;
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            const Vector factor = hn::Set(f32, a[i]);
            sum[i][0] = hn::MulAdd(factor, left_half, sum[i][0]);
            sum[i][1] = hn::MulAdd(factor, right_half, sum[i][1]);
        }
        a += a_step;
        b += right.row;
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
        hn::StoreU(sum[i][0], f32, c + i * ldc);
        hn::StoreU(sum[i][1], f32, c + i * ldc + lanes);
    }
}

using Tile = decltype(&multiply_tile<1, false>);

template <bool packs, int... less_one>
constexpr std::array<Tile, sizeof...(less_one)> tiles(std::integer_sequence<int, less_one...> /*rows*/) {
    return {&multiply_tile<less_one + 1, packs>...};
}

constexpr std::make_integer_sequence<int, most_rows> counts{};

// A few panels of B, all rows of C. `height` rows a panel of A, which lie a_stride floats apart.
void multiply_panels(GemmShape shape, std::int64_t height, const float* a, std::int64_t a_stride, const float* b,
                     std::int64_t ldb, std::int64_t left, float* c, std::int64_t ldc, bool accumulate,
                     float* packed_b) {
    static constexpr auto packing = tiles<true>(counts), packed = tiles<false>(counts);
    const std::int64_t next = std::min(shape.n, left - shape.n);  // panels' columns
    const std::int64_t share = divide_up(shape.k, divide_up(shape.m, height));
    std::int64_t fetched = 0;
    for (std::int64_t i = 0; i < shape.m; i += height) {
        const auto rows = static_cast<std::size_t>(std::min(height, shape.m - i) - 1);
        if (next > 0) {
            fetch(b + fetched * ldb + shape.n, ldb, std::min(share, shape.k - fetched), next);
            fetched = std::min(fetched + share, shape.k);
        }
        for (std::int64_t j = 0; j < shape.n; j += columns) {
            float* const panel = packed_b + j * shape.k;
            const Right right = i == 0 ? Right{b + j, ldb, panel} : Right{panel, columns, nullptr};
            const Tile tile = i == 0 ? packing[rows] : packed[rows];
            tile(shape.k, a + i / height * a_stride, height, right, c + i * ldc + j, ldc, accumulate);
        }
    }
}

void multiply_streamed(GemmShape shape, std::int64_t height, const float* a, const float* b, std::int64_t ldb, float* c,
                       std::int64_t ldc, bool accumulate, float* packed_b) {
    const Cut cut(shape.k);
    for (std::int64_t l = 0; l < shape.k; l += cut.depth) {
        const std::int64_t depth = std::min(cut.depth, shape.k - l);
        for (std::int64_t j = 0; j < shape.n; j += cut.width) {
            multiply_panels({shape.m, std::min(cut.width, shape.n - j), depth}, height, a + l * height,
                            height * shape.k, b + l * ldb + j, ldb, shape.n - j, c + j, ldc, accumulate || l > 0,
                            packed_b);
        }
    }
}

// Of B: what is kept of its whole panels, or the last, narrow one.
std::int64_t space_of(std::int64_t k) {
    const Cut cut(k);
    return std::max(cut.width * cut.depth, columns * k);
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(multiply_streamed);
HWY_EXPORT(space_of);

void gemm_streamed(GemmShape shape, const float* packed_a, const float* b, std::int64_t ldb, float* c, std::int64_t ldc,
                   bool accumulate, float* space) {
    const std::int64_t panel = panel_columns();
    const std::int64_t whole = shape.k == 0 ? 0 : shape.n / panel * panel;
    HWY_DYNAMIC_DISPATCH(multiply_streamed)
    ({shape.m, whole, shape.k}, panel_rows(shape.m), packed_a, b, ldb, c, ldc, accumulate, space);
    const GemmShape rest{shape.m, shape.n - whole, shape.k};
    if (rest.n == 0) return;
    pack_b(rest, {b + whole, ldb, 1}, space);
    gemm_packed(rest, packed_a, space, c + whole, ldc, accumulate);
}

std::int64_t streamed_workspace(std::int64_t k) { return HWY_DYNAMIC_DISPATCH(space_of)(k); }

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
