// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/gemm/skinny.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/gemm/skinny.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // must come before highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr hn::ScalableTag<float> f32;
using Vector = hn::Vec<hn::ScalableTag<float>>;
constexpr std::int64_t lanes = hn::MaxLanes(f32);
constexpr int rows_at_once = HWY_TARGET == HWY_AVX3 ? 8 : 4;  // times 3 vectors of sums: what the registers hold
constexpr int most = most_skinny_rows;
constexpr std::int64_t line = 16;  // floats

template <typename Function, int... less_one>
constexpr auto of_rows(std::integer_sequence<int, less_one...> /*rows*/, Function make) {
    return std::array{make(std::integral_constant<int, less_one + 1>{})...};
}

// Forward: a few rows of the weights at a time, from left to right, as memory likes to be read; the sums of all columns
// stay in the second cache. For one row, 8 rows of the weights at a time were a third faster than 32; more sums want
// more rows between their trips to that cache.
constexpr std::int64_t depth_for(int rows) { return rows <= 4 ? 8 : 16; }
constexpr std::int64_t ahead = 512;  // floats of a row that are fetched before they are used: 2 KiB

template <int rows, int vectors>
void add_depth(std::int64_t k, const float* HWY_RESTRICT src, std::int64_t src_row, const float* HWY_RESTRICT weights,
               std::int64_t n, float* HWY_RESTRICT dst, bool accumulate) {
    Vector sum[rows][vectors];
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
            sum[i][v] = accumulate ? hn::LoadU(f32, dst + i * n + v * lanes) : hn::Zero(f32);
        }
    }
    for (std::int64_t l = 0; l < k; ++l) {
        Vector right[vectors];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
            right[v] = hn::LoadU(f32, weights + l * n + v * lanes);
            if (v * lanes % line == 0) hwy::Prefetch(weights + l * n + v * lanes + ahead);
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            const Vector factor = hn::Set(f32, src[i * src_row + l]);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; ++v) sum[i][v] = hn::MulAdd(factor, right[v], sum[i][v]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) hn::StoreU(sum[i][v], f32, dst + i * n + v * lanes);
    }
}

// A panel is `vectors` wide; its weights are used by the first half of many rows from memory, by the second from the
// first cache.
template <int rows>
constexpr int forward_vectors = rows <= rows_at_once / 4   ? 8
                                : rows <= rows_at_once / 2 ? 5
                                                           : 3;

template <int rows, int vectors>
void add_panel(std::int64_t k, const float* src, std::int64_t src_row, const float* weights, std::int64_t n, float* dst,
               bool accumulate) {
    constexpr int now = rows <= rows_at_once ? rows : (rows + 1) / 2 <= rows_at_once ? (rows + 1) / 2 : rows_at_once;
    add_depth<now, vectors>(k, src, src_row, weights, n, dst, accumulate);
    if constexpr (rows > now) {
        add_panel<rows - now, vectors>(k, src + now * src_row, src_row, weights, n, dst + now * n, accumulate);
    }
}

// Fewer columns than a vector has, in a copy that is as wide.
template <int rows>
void add_last_columns(std::int64_t k, const float* src, std::int64_t src_row, const float* weights, std::int64_t n,
                      std::int64_t count, float* dst, bool accumulate) {
    std::array<float, depth_for(rows) * lanes> some_weights{};
    std::array<float, rows * lanes> sums{};
    for (std::int64_t l = 0; l < k; ++l) std::copy_n(weights + l * n, count, some_weights.data() + l * lanes);
    for (int i = 0; accumulate && i < rows; ++i) std::copy_n(dst + i * n, count, sums.data() + i * lanes);
    add_panel<rows, 1>(k, src, src_row, some_weights.data(), lanes, sums.data(), accumulate);
    for (int i = 0; i < rows; ++i) std::copy_n(sums.data() + i * lanes, count, dst + i * n);
}

template <int rows>
void forward_rows(const SkinnyGemm& p, const float* src, const float* weights, float* dst, bool accumulate) {
    constexpr int vectors = rows <= rows_at_once ? forward_vectors<rows> : 3;
    constexpr std::int64_t depth = depth_for(rows);
    const std::int64_t end = p.first + p.count;
    for (std::int64_t l = 0; l < p.k || l == 0; l += depth) {
        const std::int64_t now = std::min(depth, p.k - l);
        const float* const from = weights + l * p.n;
        const bool add = accumulate || l > 0;
        std::int64_t j = p.first;
        for (; j + vectors * lanes <= end; j += vectors * lanes) {
            add_panel<rows, vectors>(now, src + l, p.k, from + j, p.n, dst + j, add);
        }
        for (; j + lanes <= end; j += lanes) add_panel<rows, 1>(now, src + l, p.k, from + j, p.n, dst + j, add);
        if (j < end) add_last_columns<rows>(now, src + l, p.k, from + j, p.n, end - j, dst + j, add);
    }
}

// Backward data: scalar products of rows of diff_dst with `together` rows of the weights.
template <int rows, int together>
void scalar_products(std::int64_t n, const float* HWY_RESTRICT diff_dst, const float* HWY_RESTRICT weights,
                     float* HWY_RESTRICT diff_src, std::int64_t diff_src_row) {
    Vector sum[rows][together];
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
        for (int j = 0; j < together; ++j) sum[i][j] = hn::Zero(f32);
    }
    std::int64_t l = 0;
    for (; l + lanes <= n; l += lanes) {
        Vector right[together];
#pragma GCC unroll 8
        for (int j = 0; j < together; ++j) {
            right[j] = hn::LoadU(f32, weights + j * n + l);
            if (lanes == line || l % line == 0) hwy::Prefetch(weights + j * n + l + ahead);
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            const Vector left = hn::LoadU(f32, diff_dst + i * n + l);
#pragma GCC unroll 8
            for (int j = 0; j < together; ++j) sum[i][j] = hn::MulAdd(left, right[j], sum[i][j]);
        }
    }
    for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < together; ++j) {
            float all = hn::GetLane(hn::SumOfLanes(f32, sum[i][j]));
            for (std::int64_t d = l; d < n; ++d) all += diff_dst[i * n + d] * weights[j * n + d];
            diff_src[i * diff_src_row + j] = all;
        }
    }
}

template <int rows, int together>
void products_of_all(std::int64_t n, const float* diff_dst, const float* weights, float* diff_src, std::int64_t row) {
    constexpr int now = rows <= rows_at_once ? rows : (rows + 1) / 2 <= rows_at_once ? (rows + 1) / 2 : rows_at_once;
    scalar_products<now, together>(n, diff_dst, weights, diff_src, row);
    if constexpr (rows > now) {
        products_of_all<rows - now, together>(n, diff_dst + now * n, weights, diff_src + now * row, row);
    }
}

template <int rows>
void backward_data_rows(const SkinnyGemm& p, const float* diff_dst, const float* weights, float* diff_src) {
    const std::int64_t end = p.first + p.count;
    std::int64_t j = p.first;
    for (; j + 3 <= end; j += 3) {
        products_of_all<rows, 3>(p.n, diff_dst, weights + j * p.n, diff_src + j, p.k);
    }
    for (; j < end; ++j) products_of_all<rows, 1>(p.n, diff_dst, weights + j * p.n, diff_src + j, p.k);
}

// Backward weights: `together` rows of the result from left to right, past the caches where they are whole lines:
// nobody reads a gradient so soon.
template <int rows, int together, int vectors, bool stream>
void outer_tile(std::int64_t n, const float* HWY_RESTRICT src, std::int64_t src_row, const float* HWY_RESTRICT diff_dst,
                float* HWY_RESTRICT out) {
    Vector sum[together][vectors];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
        Vector right[vectors];
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) right[v] = hn::LoadU(f32, diff_dst + r * n + v * lanes);
#pragma GCC unroll 8
        for (int i = 0; i < together; ++i) {
            const Vector factor = hn::Set(f32, src[r * src_row + i]);
#pragma GCC unroll 2
            for (int v = 0; v < vectors; ++v) {
                sum[i][v] = r == 0 ? hn::Mul(factor, right[v]) : hn::MulAdd(factor, right[v], sum[i][v]);
            }
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < together; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) {
            if constexpr (stream) {
                hn::Stream(sum[i][v], f32, out + i * n + v * lanes);
            } else {
                hn::StoreU(sum[i][v], f32, out + i * n + v * lanes);
            }
        }
    }
}

template <int rows, int together, bool stream>
void outer_product(std::int64_t n, const float* src, std::int64_t src_row, const float* diff_dst, float* out) {
    std::int64_t j = 0;
    for (; j + 2 * lanes <= n; j += 2 * lanes) {
        outer_tile<rows, together, 2, stream>(n, src, src_row, diff_dst + j, out + j);
    }
    for (; j + lanes <= n; j += lanes) outer_tile<rows, together, 1, stream>(n, src, src_row, diff_dst + j, out + j);
    for (; j < n; ++j) {
        for (int i = 0; i < together; ++i) {
            float sum = 0;
            for (int r = 0; r < rows; ++r) sum += src[r * src_row + i] * diff_dst[r * n + j];
            out[i * n + j] = sum;
        }
    }
}

constexpr int outer_rows = 6;
constexpr std::int64_t streamed = 1 << 20;  // floats of a result from which on it goes past the caches: 4 MiB

template <int rows>
void backward_weights_rows(const SkinnyGemm& p, const float* src, const float* diff_dst, float* diff_weights) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(diff_weights) % 64 == 0 && p.n % line == 0;
    const bool stream = aligned && p.n * p.k >= streamed;
    const std::int64_t end = p.first + p.count;
    std::int64_t i = p.first;
    for (; i + outer_rows <= end; i += outer_rows) {
        float* const out = diff_weights + i * p.n;
        if (stream) outer_product<rows, outer_rows, true>(p.n, src + i, p.k, diff_dst, out);
        if (!stream) outer_product<rows, outer_rows, false>(p.n, src + i, p.k, diff_dst, out);
    }
    for (; i < end; ++i) outer_product<rows, 1, false>(p.n, src + i, p.k, diff_dst, diff_weights + i * p.n);
    if (stream) hwy::FlushStream();
}

constexpr std::make_integer_sequence<int, most> counts{};

void forward(const SkinnyGemm& p, const float* src, const float* weights, float* dst, bool accumulate) {
    static constexpr auto table = of_rows(counts, [](auto rows) { return &forward_rows<rows>; });
    table[static_cast<std::size_t>(p.rows - 1)](p, src, weights, dst, accumulate);
}

void backward_data(const SkinnyGemm& p, const float* diff_dst, const float* weights, float* diff_src) {
    static constexpr auto table = of_rows(counts, [](auto rows) { return &backward_data_rows<rows>; });
    table[static_cast<std::size_t>(p.rows - 1)](p, diff_dst, weights, diff_src);
}

void backward_weights(const SkinnyGemm& p, const float* src, const float* diff_dst, float* diff_weights) {
    static constexpr auto table = of_rows(counts, [](auto rows) { return &backward_weights_rows<rows>; });
    table[static_cast<std::size_t>(p.rows - 1)](p, src, diff_dst, diff_weights);
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(forward);
HWY_EXPORT(backward_data);
HWY_EXPORT(backward_weights);

void skinny_forward(const SkinnyGemm& part, const float* src, const float* weights, float* dst, bool accumulate) {
    HWY_DYNAMIC_DISPATCH(forward)(part, src, weights, dst, accumulate);
}

void skinny_backward_data(const SkinnyGemm& part, const float* diff_dst, const float* weights, float* diff_src) {
    HWY_DYNAMIC_DISPATCH(backward_data)(part, diff_dst, weights, diff_src);
}

void skinny_backward_weights(const SkinnyGemm& part, const float* src, const float* diff_dst, float* diff_weights) {
    HWY_DYNAMIC_DISPATCH(backward_weights)(part, src, diff_dst, diff_weights);
}

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
