// SPDX-License-Identifier: Apache-2.0
// The loops of Goto and van de Geijn 2008: a panel of B stays in the first cache while the panels of a block of A pass
// by from the second. A register block is up to 14 rows (6 with 16 registers) by two vectors: 28 sums, 2 vectors of B
// and one number of A fill 32 registers, and each number loaded from A serves two multiply-adds.
#include "kernels/cpu/gemm/gemm.hpp"

#include <algorithm>
#include <array>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/gemm.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                         // must come before highway.h
#include "hwy/highway.h"
#include "kernels/cpu/algorithm.hpp"
#include "kernels/cpu/gemm/pack_inl.hpp"
#include "kernels/cpu/share.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t max_rows = HWY_TARGET == HWY_AVX3 ? 14 : 6;
constexpr std::int64_t max_depth = 256;   // of a panel: with columns = 32, B's takes 32 KiB
constexpr std::int64_t block_rows = 280;  // of A: with max_depth, 280 KiB
constexpr std::int64_t block_columns = 1024;

// The largest piece when `size` is cut into equal pieces of at most `most`.
std::int64_t even_piece(std::int64_t size, std::int64_t most) {
    return size == 0 ? 1 : divide_up(size, divide_up(size, most));
}

std::int64_t rows_of(std::int64_t m) { return even_piece(m, max_rows); }

// A k x rows panel (a step of a_step floats from one k to the next) times the first `vectors` of a k x columns panel
// into c.
template <int rows, int vectors>
void multiply_tile(std::int64_t k, const float* HWY_RESTRICT a, std::int64_t a_step, const float* HWY_RESTRICT b,
                   std::int64_t b_step, float* HWY_RESTRICT c, std::int64_t ldc, bool accumulate) {
    constexpr int last = vectors - 1;
    Vector sum[rows][vectors];
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
        sum[i][0] = accumulate ? hn::LoadU(f32, c + i * ldc) : hn::Zero(f32);
        if (last > 0) sum[i][last] = accumulate ? hn::LoadU(f32, c + i * ldc + lanes) : hn::Zero(f32);
    }
    for (std::int64_t l = 0; l < k; ++l) {
        const Vector left = hn::LoadU(f32, b);
        const Vector right = hn::LoadU(f32, b + last * lanes);
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            const Vector factor = hn::Set(f32, a[i]);
            sum[i][0] = hn::MulAdd(factor, left, sum[i][0]);
            if (last > 0) sum[i][last] = hn::MulAdd(factor, right, sum[i][last]);
        }
        a += a_step;
        b += b_step;
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
        hn::StoreU(sum[i][0], f32, c + i * ldc);
        if (last > 0) hn::StoreU(sum[i][last], f32, c + i * ldc + lanes);
    }
}

using Tile = decltype(&multiply_tile<1, 1>);

template <int vectors, int... less_one>
constexpr std::array<Tile, sizeof...(less_one)> tiles(std::integer_sequence<int, less_one...> /*rows*/) {
    return {&multiply_tile<less_one + 1, vectors>...};
}

constexpr std::make_integer_sequence<int, max_rows> counts{};

// As multiply_tile, but of c only `rows` x `width` exist.
void multiply_part(std::int64_t rows, std::int64_t width, std::int64_t k, const float* a, std::int64_t a_step,
                   const float* b, std::int64_t b_step, float* c, std::int64_t ldc, bool accumulate) {
    static constexpr auto wide = tiles<2>(counts), narrow = tiles<1>(counts);
    const Tile tile = (width > lanes ? wide : narrow)[static_cast<std::size_t>(rows - 1)];
    if (width == columns) return tile(k, a, a_step, b, b_step, c, ldc, accumulate);
    alignas(64) float whole[max_rows * columns];
    tile(k, a, a_step, b, b_step, whole, columns, false);
    for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < width; ++j) {
            c[i * ldc + j] = (accumulate ? c[i * ldc + j] : 0.0F) + whole[i * columns + j];
        }
    }
}

// Panels of which a stretch of `depth` is used; `stride` floats lie between two panels.
struct Panels {
    const float* data;
    std::int64_t stride;
};

void multiply_panels(GemmShape shape, std::int64_t height, Panels a, Panels b, float* c, std::int64_t ldc,
                     bool accumulate) {
    for (std::int64_t j = 0; j < shape.n; j += columns) {
        const std::int64_t width = std::min(columns, shape.n - j);
        const float* b_panel = b.data + j / columns * b.stride;
        for (std::int64_t i = 0; i < shape.m; i += height) {
            const std::int64_t rows = std::min(height, shape.m - i);
            multiply_part(rows, width, shape.k, a.data + i / height * a.stride, height, b_panel, columns,
                          c + i * ldc + j, ldc, accumulate);
        }
    }
}

// How a large product is cut.
struct Blocks {
    std::int64_t m, n, k;
};

Blocks blocks_of(GemmShape shape) {
    return {even_piece(shape.m, block_rows), std::min(divide_up(shape.n, columns) * columns, block_columns),
            even_piece(shape.k, max_depth)};
}

std::int64_t packed_a(std::int64_t m, std::int64_t k) { return divide_up(m, rows_of(m)) * rows_of(m) * k; }

std::int64_t packed_b(std::int64_t n, std::int64_t k) { return divide_up(n, columns) * columns * k; }

// Enough for every smaller product, too: of those a block may be deeper or taller, as even pieces of 320 are 160 and
// that of 256 is 256.
std::int64_t workspace(GemmShape shape) {
    const Blocks block = blocks_of(shape);
    const std::int64_t depth = std::min(shape.k, max_depth);
    // + 16 lets B's block begin a cache line. A's last block may be cut into taller panels than the others.
    return packed_b(block.n, depth) + (std::min(shape.m, block_rows) + max_rows) * depth + 16;
}

void pack_a_rows(GemmShape shape, MatrixView a, Stretch rows, float* packed) {
    pack_panels_of_a({rows.end - rows.begin, 0, shape.k}, rows_of(shape.m),
                     {a.data + rows.begin * a.row, a.row, a.column}, packed + rows.begin * shape.k);
}

void multiply(GemmShape shape, MatrixView a, MatrixView b, float* c, std::int64_t ldc, bool accumulate, float* space) {
    const Blocks block = blocks_of(shape);
    float* const packed_b_block = space;
    float* const packed_a_block = space + divide_up(packed_b(block.n, block.k), 16) * 16;
    for (std::int64_t j = 0; j < shape.n; j += block.n) {
        for (std::int64_t l = 0; l < shape.k || l == 0; l += block.k) {
            const std::int64_t depth = std::min(block.k, shape.k - l);
            const std::int64_t width = std::min(block.n, shape.n - j);
            pack_panels_of_b({0, width, depth}, {b.data + l * b.row + j * b.column, b.row, b.column}, packed_b_block);
            for (std::int64_t i = 0; i < shape.m; i += block.m) {
                const GemmShape part{std::min(block.m, shape.m - i), width, depth};
                const std::int64_t height = rows_of(part.m);
                pack_panels_of_a(part, height, {a.data + i * a.row + l * a.column, a.row, a.column}, packed_a_block);
                multiply_panels(part, height, {packed_a_block, height * depth}, {packed_b_block, columns * depth},
                                c + i * ldc + j, ldc, accumulate || l > 0);
            }
        }
    }
}

void multiply_packed(GemmShape shape, const float* a, const float* b, float* c, std::int64_t ldc, bool accumulate) {
    const std::int64_t height = rows_of(shape.m);
    const std::int64_t piece = even_piece(shape.k, max_depth);
    for (std::int64_t l = 0; l < shape.k || l == 0; l += piece) {
        const GemmShape part{shape.m, shape.n, std::min(piece, shape.k - l)};
        multiply_panels(part, height, {a + l * height, height * shape.k}, {b + l * columns, columns * shape.k}, c, ldc,
                        accumulate || l > 0);
    }
}

std::int64_t columns_of_panel() { return columns; }

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(rows_of);
HWY_EXPORT(columns_of_panel);
HWY_EXPORT(packed_a);
HWY_EXPORT(packed_b);
HWY_EXPORT(workspace);
HWY_EXPORT(pack_a_rows);
HWY_EXPORT(pack_panels_of_b);
HWY_EXPORT(multiply);
HWY_EXPORT(multiply_packed);

std::int64_t panel_rows(std::int64_t m) { return HWY_DYNAMIC_DISPATCH(rows_of)(m); }
std::int64_t panel_columns() { return HWY_DYNAMIC_DISPATCH(columns_of_panel)(); }
std::int64_t packed_a_floats(std::int64_t m, std::int64_t k) { return HWY_DYNAMIC_DISPATCH(packed_a)(m, k); }
std::int64_t packed_b_floats(std::int64_t n, std::int64_t k) { return HWY_DYNAMIC_DISPATCH(packed_b)(n, k); }
std::int64_t gemm_workspace(GemmShape shape) { return HWY_DYNAMIC_DISPATCH(workspace)(shape); }

void gemm(GemmShape shape, MatrixView a, MatrixView b, float* c, std::int64_t ldc, bool accumulate, float* workspace_) {
    HWY_DYNAMIC_DISPATCH(multiply)(shape, a, b, c, ldc, accumulate, workspace_);
}

void pack_a(GemmShape shape, MatrixView a, float* packed) { pack_a_part(shape, a, 0, 1, packed); }

void pack_a_part(GemmShape shape, MatrixView a, std::int64_t part, std::int64_t parts, float* packed) {
    HWY_DYNAMIC_DISPATCH(pack_a_rows)(shape, a, stretch_of(shape.m, panel_rows(shape.m), part, parts), packed);
}

void pack_b(GemmShape shape, MatrixView b, float* packed) { HWY_DYNAMIC_DISPATCH(pack_panels_of_b)(shape, b, packed); }

void gemm_packed(GemmShape shape, const float* packed_a, const float* packed_b, float* c, std::int64_t ldc,
                 bool accumulate) {
    HWY_DYNAMIC_DISPATCH(multiply_packed)(shape, packed_a, packed_b, c, ldc, accumulate);
}

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
