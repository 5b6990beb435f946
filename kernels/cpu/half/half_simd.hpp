// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit numbers, one table of functions an instruction set. A step of a sum is `pair` successive numbers
// of it, which the instruction multiplies at once: b is packed as {step, column, pair}, a as {step, row} of 32-bit
// units, a pair or one number twice, because a broadcast of 32 bits costs nothing beside its load and one of 16 bits
// does. Plain structs and pointers only: files that are compiled for one instruction set include this.
#pragma once

#include <cstdint>

#include "kernels/cpu/conv/tap_at.hpp"

namespace rehearse::kernels::cpu {

/// c {rows, columns} (+)= sum over channels and taps of a x b. Channel i of tap t: a {rows} begins at
/// a + i * a_channel + taps[t].weights, b {columns, pair} at b + i * b_channel + taps[t].src.
struct HalfTile {
    const std::uint32_t* a;
    std::int64_t a_channel;
    const std::uint16_t* b;
    std::int64_t b_channel;
    const TapAt* taps;
    std::int64_t tap_count, channels;
    float* c;
    std::int64_t ldc;
    bool accumulate;
};

struct HalfSimd {
    std::int64_t pair;     // 1 or 2
    std::int64_t columns;  // of a tile
    std::int64_t rows;     // of a tile, at most
    /// Tile of so many rows, 1 to `rows`.
    void (*multiply)(std::int64_t rows, const HalfTile& tile);
    /// out = a[0] b[0] a[1] b[1] ...
    void (*zip)(const std::uint16_t* a, const std::uint16_t* b, std::int64_t count, std::uint16_t* out);
    /// The same for `rows` pairs of short rows: a {rows, 2, count}, out {rows, count, 2}.
    void (*zip_rows)(const std::uint16_t* a, std::int64_t rows, std::int64_t count, std::uint16_t* out);
};

/// Products that one chunk adds in f16 before it goes to an f32 sum: of a convolution, whole channels of all their
/// taps, so that a chunk has at most this many or one channel's.
constexpr std::int64_t half_chunk = 64;

/// How f16 products are summed: `chunked` as above, `f16` from the first to the last.
enum class HalfSums { chunked, f16 };

/// The instructions of this machine, or nullptr where it has none: AVX512-FP16's multiply-add of 32 numbers,
/// AVX512-BF16's multiply-add of 16 pairs (sums in f32, subnormals taken as zero).
const HalfSimd* native_f16(HalfSums sums);
const HalfSimd* native_bf16();

/// The same algorithms with each instruction done number by number and rounded as the instruction rounds: for tests on
/// machines without it.
const HalfSimd& emulated_f16(HalfSums sums);
const HalfSimd& emulated_bf16();

}  // namespace rehearse::kernels::cpu
