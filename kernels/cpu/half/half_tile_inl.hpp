// SPDX-License-Identifier: Apache-2.0
// The register block of a 16-bit product, over a class of vectors `V`:
//   pair, lanes       numbers that an instruction adds up in a lane, lanes of a vector of sums
//   Sum, Vector       registers; Vector holds {lanes, pair} numbers
//   carries           a sum goes on from c; otherwise it begins at 0 and is added to c in f32 after each chunk
// With 14 rows by two vectors 28 sums, 2 vectors of b and one unit of a fill 32 registers. No function of the standard
// library is used here: compiled for one instruction set, it could be linked into code for all.
#pragma once

#include "kernels/cpu/half/half_simd.hpp"

namespace rehearse::kernels::cpu {
namespace {

constexpr int half_rows = 14;

template <typename V, int rows>
void multiply_half(const HalfTile& tile) {
    const std::int64_t whole = tile.channels > 0 ? tile.channels : 1;
    const std::int64_t chunk = half_chunk / tile.tap_count > 0 ? half_chunk / tile.tap_count : 1;
    const std::int64_t at_once = V::carries ? whole : chunk;
    for (std::int64_t first = 0; first < whole; first += at_once) {
        typename V::Sum sum[rows][2];
        const bool add = tile.accumulate || first > 0;
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            const float* const c = tile.c + i * tile.ldc;
            sum[i][0] = V::carries && add ? V::load_sum(c) : V::zero();
            sum[i][1] = V::carries && add ? V::load_sum(c + V::lanes) : V::zero();
        }
        const std::int64_t end = first + at_once < tile.channels ? first + at_once : tile.channels;
        for (std::int64_t channel = first; channel < end; ++channel) {
            const std::uint32_t* const a_channel = tile.a + channel * tile.a_channel;
            const std::uint16_t* const b_channel = tile.b + channel * tile.b_channel;
            for (std::int64_t t = 0; t < tile.tap_count; ++t) {
                const std::uint32_t* const a = a_channel + tile.taps[t].weights;
                const std::uint16_t* const b = b_channel + tile.taps[t].src;
                const typename V::Vector left = V::load(b);
                const typename V::Vector right = V::load(b + V::lanes * V::pair);
#pragma GCC unroll 16
                for (int i = 0; i < rows; ++i) {
                    const typename V::Vector factor = V::broadcast(a[i]);
                    sum[i][0] = V::multiply_add(factor, left, sum[i][0]);
                    sum[i][1] = V::multiply_add(factor, right, sum[i][1]);
                }
            }
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) {
            float* const c = tile.c + i * tile.ldc;
            V::store_sum(sum[i][0], c, !V::carries && add);
            V::store_sum(sum[i][1], c + V::lanes, !V::carries && add);
        }
    }
}

template <typename V>
void multiply_half_rows(std::int64_t rows, const HalfTile& tile) {
    using Multiply = void (*)(const HalfTile&);
    static constexpr Multiply of_rows[half_rows] = {
        multiply_half<V, 1>,  multiply_half<V, 2>,  multiply_half<V, 3>,  multiply_half<V, 4>, multiply_half<V, 5>,
        multiply_half<V, 6>,  multiply_half<V, 7>,  multiply_half<V, 8>,  multiply_half<V, 9>, multiply_half<V, 10>,
        multiply_half<V, 11>, multiply_half<V, 12>, multiply_half<V, 13>, multiply_half<V, 14>};
    of_rows[rows - 1](tile);
}

template <typename V>
constexpr HalfSimd half_simd() {
    return {V::pair, 2 * V::lanes, half_rows, multiply_half_rows<V>, V::zip, V::zip_rows};
}

}  // namespace
}  // namespace rehearse::kernels::cpu
