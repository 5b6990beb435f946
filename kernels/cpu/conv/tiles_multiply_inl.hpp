// SPDX-License-Identifier: Apache-2.0
// The matrix product at one point: up to 14 rows x 2 vectors of sums stay in registers (6 x 2 where there are 16
// registers only). Nothing is packed: the transforms write what is read here.
#if defined(REHEARSE_CPU_TILES_MULTIPLY_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef REHEARSE_CPU_TILES_MULTIPLY_INL
#undef REHEARSE_CPU_TILES_MULTIPLY_INL
#else
#define REHEARSE_CPU_TILES_MULTIPLY_INL
#endif

#include <array>
#include <utility>

#include "kernels/cpu/conv/tiles_transpose_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu {
namespace HWY_NAMESPACE {

inline constexpr std::int64_t panel = 2 * lanes;  // columns of the right matrix
inline constexpr int most_rows = lanes == 16 ? 14 : 6;

/// sums[i][j] (+)= sum over l < depth of left[i * row_stride + l * depth_stride] * right[l * panel + j]
struct Product {
    const float* left = nullptr;
    std::int64_t row_stride = 0, depth_stride = 0;
    const float* right = nullptr;
    float* sums = nullptr;
    std::int64_t depth = 0;
    bool accumulate = false;
};

// unit_rows: row_stride is 1. Three rows share a pointer, the distances 1 and 2 fit into an address.
template <int rows, int vectors, bool unit_rows>
void multiply_rows(const Product& p) {
    constexpr int together = unit_rows ? rows : 3;
    constexpr int pointers = (rows + together - 1) / together;
    const Floats d;
    const std::int64_t row_stride = unit_rows ? 1 : p.row_stride;
    const std::int64_t depth_stride = unit_rows ? p.depth_stride : 1;
    Vec sum[rows][vectors];
    const float* left[pointers];
#pragma GCC unroll 16
    for (int i = 0; i < pointers; ++i) left[i] = p.left + i * together * row_stride;
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) {
            sum[i][j] = p.accumulate ? hn::Load(d, p.sums + i * panel + j * lanes) : hn::Zero(d);
        }
    }
    const float* right = p.right;
#pragma GCC unroll 2
    for (std::int64_t l = 0; l < p.depth; ++l) {
        Vec r[vectors];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) r[j] = hn::Load(d, right + j * lanes);
        right += panel;
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            const Vec a = hn::Set(d, left[i / together][i % together * row_stride]);
#pragma GCC unroll 2
            for (int j = 0; j < vectors; ++j) sum[i][j] = hn::MulAdd(a, r[j], sum[i][j]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < pointers; ++i) left[i] += depth_stride;
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 2
        for (int j = 0; j < vectors; ++j) hn::Store(sum[i][j], d, p.sums + i * panel + j * lanes);
    }
}

using MultiplyRows = void (*)(const Product&);

template <int vectors, bool unit_rows, int... rows>
constexpr std::array<MultiplyRows, most_rows + 1> row_kernels(std::integer_sequence<int, rows...>) {
    return {nullptr, multiply_rows<rows + 1, vectors, unit_rows>...};
}

template <bool unit_rows>
void multiply_any(Product p, std::int64_t rows, int vectors) {
    constexpr auto counts = std::make_integer_sequence<int, most_rows>();
    static constexpr auto one = row_kernels<1, unit_rows>(counts);
    static constexpr auto two = row_kernels<2, unit_rows>(counts);
    const auto& kernels = vectors == 1 ? one : two;
    // Parts of nearly the same size: 15 rows are 8 and 7, not 14 and 1.
    for (std::int64_t parts = (rows + most_rows - 1) / most_rows; parts > 0; --parts) {
        const std::int64_t now = (rows + parts - 1) / parts;
        kernels[now](p);
        rows -= now;
        p.left += now * p.row_stride;
        p.sums += now * panel;
    }
}

/// `vectors`: 1 where the second vector of the panel is empty.
inline void multiply(const Product& p, std::int64_t rows, int vectors) {
    if (p.row_stride == 1) {
        multiply_any<true>(p, rows, vectors);
    } else {
        multiply_any<false>(p, rows, vectors);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace rehearse::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif
