// SPDX-License-Identifier: Apache-2.0
// Transposition by blocks of 128-bit registers, in the vector extensions that GCC and Clang share: no instruction set
// is asked for.
#include "kernels/cpu/half/half_pack.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/error.hpp"
#include "kernels/cpu/algorithm.hpp"

namespace rehearse::kernels::cpu {
namespace {

using Words = std::uint16_t __attribute__((vector_size(16)));
using Units = std::uint32_t __attribute__((vector_size(16)));

template <typename Vector, typename Element>
Vector load(const Element* from) {
    Vector made;
    std::memcpy(&made, from, sizeof made);
    return made;
}

template <typename Vector, typename Element>
void store(Vector value, Element* to) {
    std::memcpy(to, &value, sizeof value);
}

// The lower and upper halves of two registers, element by element in turn.
Units lower(Units a, Units b) { return __builtin_shufflevector(a, b, 0, 4, 1, 5); }
Units upper(Units a, Units b) { return __builtin_shufflevector(a, b, 2, 6, 3, 7); }
Words lower(Words a, Words b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
Words upper(Words a, Words b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }

// `size` registers of `size` elements: each round puts row i beside row i + size / 2; after log2(size) rounds rows are
// columns.
template <typename Vector, typename Element, int size>
void transpose_block(const Element* in, std::int64_t in_row, Element* out, std::int64_t out_row) {
    std::array<Vector, size> rows;
    for (int i = 0; i < size; ++i) rows[i] = load<Vector>(in + i * in_row);
    for (int round = 1; round < size; round *= 2) {
        std::array<Vector, size> next;
        for (int i = 0; i < size / 2; ++i) {
            next[2 * i] = lower(rows[i], rows[i + size / 2]);
            next[2 * i + 1] = upper(rows[i], rows[i + size / 2]);
        }
        rows = next;
    }
    for (int i = 0; i < size; ++i) store(rows[i], out + i * out_row);
}

template <typename Vector, typename Element>
void transpose_blocks(const Element* in, std::int64_t in_row, std::int64_t rows, std::int64_t columns, Element* out,
                      std::int64_t out_row) {
    constexpr int size = sizeof(Vector) / sizeof(Element);
    const std::int64_t whole_rows = rows / size * size;
    const std::int64_t whole_columns = columns / size * size;
    for (std::int64_t j = 0; j < whole_columns; j += size) {
        for (std::int64_t i = 0; i < whole_rows; i += size) {
            transpose_block<Vector, Element, size>(in + i * in_row + j, in_row, out + j * out_row + i, out_row);
        }
    }
    for (std::int64_t j = 0; j < columns; ++j) {
        for (std::int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i) {
            out[j * out_row + i] = in[i * in_row + j];
        }
    }
}

constexpr std::int64_t segment = 64;  // steps whose units are made at a time: 14 rows of them in 3.5 KiB
constexpr std::int64_t most_items = 16;
constexpr std::array<std::uint16_t, 64> zeros{};

// Units of item i, steps [first, first + count).
void make_units(const HalfSimd& simd, const std::uint16_t* row, std::int64_t first, std::int64_t count, std::int64_t k,
                std::uint32_t* out) {
    if (simd.pair == 1) return simd.zip(row + first, row + first, count, reinterpret_cast<std::uint16_t*>(out));
    const std::int64_t numbers = std::min(2 * count, k - 2 * first);
    if (numbers < 2 * count) out[count - 1] = 0;
    std::memcpy(out, row + 2 * first, static_cast<std::size_t>(numbers) * sizeof(std::uint16_t));
}

void pack_along_depth(const HalfSimd& simd, HalfMatrix a, std::int64_t items, std::int64_t k, std::int64_t width,
                      std::uint32_t* out) {
    std::array<std::uint32_t, most_items * segment> units;
    const std::int64_t steps = half_steps(simd, k);
    for (std::int64_t first = 0; first < steps; first += segment) {
        const std::int64_t count = std::min(segment, steps - first);
        for (std::int64_t i = 0; i < items; ++i) {
            make_units(simd, a.data + i * a.item, first, count, k, units.data() + i * segment);
        }
        transpose(units.data(), segment, items, count, out + first * width, width);
        for (std::int64_t l = first; items < width && l < first + count; ++l) {
            std::fill(out + l * width + items, out + (l + 1) * width, 0);
        }
    }
}

}  // namespace

std::int64_t half_steps(const HalfSimd& simd, std::int64_t k) { return divide_up(k, simd.pair); }

void transpose(const std::uint32_t* in, std::int64_t in_row, std::int64_t rows, std::int64_t columns,
               std::uint32_t* out, std::int64_t out_row) {
    transpose_blocks<Units>(in, in_row, rows, columns, out, out_row);
}

void transpose(const std::uint16_t* in, std::int64_t in_row, std::int64_t rows, std::int64_t columns,
               std::uint16_t* out, std::int64_t out_row) {
    transpose_blocks<Words>(in, in_row, rows, columns, out, out_row);
}

void pack_half_a(const HalfSimd& simd, HalfMatrix a, std::int64_t items, std::int64_t k, std::int64_t width,
                 std::uint32_t* out) {
    require(a.item == 1 || a.depth == 1, "rows or columns of a matrix lie in one piece");
    require(width <= most_items, "a panel of a fits into registers");
    if (a.depth == 1) return pack_along_depth(simd, a, items, k, width, out);
    for (std::int64_t l = 0; l < k; l += simd.pair, out += width) {
        const std::uint16_t* const row = a.data + l * a.depth;
        const std::uint16_t* const second = simd.pair == 1 ? row : l + 1 < k ? row + a.depth : zeros.data();
        simd.zip(row, second, items, reinterpret_cast<std::uint16_t*>(out));
        std::fill(out + items, out + width, 0);
    }
}

void pack_half_b(const HalfSimd& simd, HalfMatrix b, std::int64_t items, std::int64_t k, std::uint16_t* out) {
    require(b.item == 1 || b.depth == 1, "rows or columns of a matrix lie in one piece");
    const std::int64_t row = simd.columns * simd.pair;
    if (items < simd.columns) std::fill_n(out, half_steps(simd, k) * row, 0);
    if (b.depth != 1) {
        for (std::int64_t l = 0; l < k; l += simd.pair, out += row) {
            const std::uint16_t* const from = b.data + l * b.depth;
            if (simd.pair == 1) {
                std::copy_n(from, items, out);
            } else {
                simd.zip(from, l + 1 < k ? from + b.depth : zeros.data(), items, out);
            }
        }
        return;
    }
    if (simd.pair == 1) return transpose(b.data, b.item, items, k, out, row);
    std::array<std::uint32_t, most_items * segment> units;
    const std::int64_t steps = half_steps(simd, k);
    auto* const pairs = reinterpret_cast<std::uint32_t*>(out);
    for (std::int64_t first = 0; first < steps; first += segment) {
        const std::int64_t count = std::min(segment, steps - first);
        for (std::int64_t i = 0; i < items; i += most_items) {
            const std::int64_t some = std::min(most_items, items - i);
            for (std::int64_t j = 0; j < some; ++j) {
                make_units(simd, b.data + (i + j) * b.item, first, count, k, units.data() + j * segment);
            }
            transpose(units.data(), segment, some, count, pairs + first * simd.columns + i, simd.columns);
        }
    }
}

}  // namespace rehearse::kernels::cpu
