// SPDX-License-Identifier: Apache-2.0
// Register blocks, as for a matrix product: with 32 registers 14 pixels x 2 vectors of channels (or 7 x 4, for images 7
// wide), with 16 registers 6 x 2; each number loaded and broadcast serves as many multiply-adds as there are vectors.
#include "kernels/cpu/conv/direct_simd.hpp"

#include <algorithm>
#include <array>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/conv/direct_simd.cpp"  // NOLINT: Highway compiles this file once a target
#include "hwy/foreach_target.h"                                // must come before highway.h
#include "hwy/highway.h"
#include "kernels/cpu/lanes_inl.hpp"
#include "kernels/cpu/transpose_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace rehearse::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr bool many_registers = HWY_TARGET == HWY_AVX3;

// Pixels of a register block, by its vectors.
constexpr int most_pixels(int vectors) {
    if (vectors == 4) return many_registers ? 7 : 2;
    return many_registers ? 14 : 12 / vectors;
}

// Channels of a register block of sum_over_pixels, whose sums are those of channels x vectors.
constexpr int most_channels = many_registers ? 8 : 4;

std::int64_t even_piece(std::int64_t size, std::int64_t most) {
    const std::int64_t pieces = (size + most - 1) / most;
    return (size + pieces - 1) / pieces;
}

std::int64_t vectors_for(std::int64_t channels, std::int64_t columns) {
    if (channels <= lanes) return 1;
    return many_registers && columns <= most_pixels(4) && channels > 2 * lanes ? 4 : 2;
}

template <int vectors, int pixels>
void taps_block(const SumOverTaps& s, const float* HWY_RESTRICT src, float* HWY_RESTRICT out) {
    Vector sum[pixels][vectors];
#pragma GCC unroll 16
    for (int i = 0; i < pixels; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
            sum[i][v] = s.accumulate ? hn::LoadU(f32, out + (i * vectors + v) * lanes) : hn::Zero(f32);
        }
    }
    const float* HWY_RESTRICT weights = s.weights;
    const TapAt* const end = s.taps + s.tap_count;
    for (std::int64_t left = s.channels; left > 0; left -= lanes, src += s.block) {
        const std::int64_t depth = std::min(left, lanes);
        for (std::int64_t c = 0; c < depth; ++c, weights += s.channel) {
            for (const TapAt* tap = s.taps; tap != end; ++tap) {
                const float* HWY_RESTRICT a = src + tap->src + c;
                const float* HWY_RESTRICT b = weights + tap->weights;
                Vector factor[vectors];
#pragma GCC unroll 4
                for (int v = 0; v < vectors; ++v) factor[v] = hn::LoadU(f32, b + v * lanes);
#pragma GCC unroll 16
                for (int i = 0; i < pixels; ++i) {
                    const Vector pixel = hn::Set(f32, a[i * lanes]);
#pragma GCC unroll 4
                    for (int v = 0; v < vectors; ++v) sum[i][v] = hn::MulAdd(pixel, factor[v], sum[i][v]);
                }
            }
        }
    }
    if (s.relu) {
#pragma GCC unroll 16
        for (int i = 0; i < pixels; ++i) {
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) sum[i][v] = hn::Max(hn::Zero(f32), sum[i][v]);
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < pixels; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) hn::StoreU(sum[i][v], f32, out + (i * vectors + v) * lanes);
    }
}

template <int vectors, int channels>
void pixels_block(const SumOverPixels& s, const float* HWY_RESTRICT src, float* HWY_RESTRICT out) {
    Vector sum[channels][vectors];
#pragma GCC unroll 16
    for (int i = 0; i < channels; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sum[i][v] = hn::LoadU(f32, out + i * s.out_row + v * lanes);
    }
    const float* HWY_RESTRICT b = s.diff_dst;
    for (std::int64_t y = 0; y < s.rows; ++y) {
        const float* HWY_RESTRICT a = src + y * s.src_row;
        for (std::int64_t x = 0; x < s.columns; ++x, a += lanes, b += vectors * lanes) {
            Vector factor[vectors];
#pragma GCC unroll 4
            for (int v = 0; v < vectors; ++v) factor[v] = hn::LoadU(f32, b + v * lanes);
#pragma GCC unroll 16
            for (int i = 0; i < channels; ++i) {
                const Vector pixel = hn::Set(f32, a[i]);
#pragma GCC unroll 4
                for (int v = 0; v < vectors; ++v) sum[i][v] = hn::MulAdd(pixel, factor[v], sum[i][v]);
            }
        }
    }
#pragma GCC unroll 16
    for (int i = 0; i < channels; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) hn::StoreU(sum[i][v], f32, out + i * s.out_row + v * lanes);
    }
}

template <int vectors, int... less_one>
constexpr auto taps_blocks(std::integer_sequence<int, less_one...> /*pixels*/) {
    return std::array{&taps_block<vectors, less_one + 1>...};
}

template <int vectors, int... less_one>
constexpr auto pixels_blocks(std::integer_sequence<int, less_one...> /*channels*/) {
    return std::array{&pixels_block<vectors, less_one + 1>...};
}

template <int vectors>
void sum_rows(const SumOverTaps& s) {
    constexpr int most = most_pixels(vectors);
    static constexpr auto of_pixels = taps_blocks<vectors>(std::make_integer_sequence<int, most>{});
    const std::int64_t piece = even_piece(s.columns, most);
    for (std::int64_t y = 0; y < s.rows; ++y) {
        for (std::int64_t x = 0; x < s.columns; x += piece) {
            const std::int64_t pixels = std::min(piece, s.columns - x);
            of_pixels[pixels - 1](s, s.src + y * s.src_row + x * lanes, s.out + (y * s.columns + x) * vectors * lanes);
        }
    }
}

template <int vectors>
void sum_channels(const SumOverPixels& s) {
    static constexpr auto of_channels = pixels_blocks<vectors>(std::make_integer_sequence<int, most_channels>{});
    const std::int64_t piece = even_piece(s.channels, most_channels);
    for (std::int64_t c = 0; c < s.channels; c += piece) {
        of_channels[std::min(piece, s.channels - c) - 1](s, s.src + c, s.out + c * s.out_row);
    }
}

void sum_over_taps(const SumOverTaps& sum, std::int64_t vectors) {
    if (vectors == 1) sum_rows<1>(sum);
    if (vectors == 2) sum_rows<2>(sum);
    if (vectors == 4) sum_rows<4>(sum);
}

void sum_over_pixels(const SumOverPixels& sum, std::int64_t vectors) {
    if (vectors == 1) sum_channels<1>(sum);
    if (vectors == 2) sum_channels<2>(sum);
}

// Row i of a phase: the part inside the image is transposed, the rest is zero.
void pack_row(const PackedImage& image, const Lattice& phase, std::int64_t i, const float* in, std::int64_t channels,
              float* out) {
    const std::int64_t y = phase.first_y + i * phase.step_y;
    std::int64_t begin = 0;
    while (begin < image.columns && phase.first_x + begin * phase.step_x < 0) ++begin;
    std::int64_t end =
        std::max(begin, std::min(image.columns, (image.width - phase.first_x + phase.step_x - 1) / phase.step_x));
    if (y < 0 || y >= image.height) end = begin;
    std::fill(out, out + begin * lanes, 0.0F);
    std::fill(out + end * lanes, out + image.columns * lanes, 0.0F);
    if (begin == end) return;
    const float* from = in + y * image.width + phase.first_x + begin * phase.step_x;
    const std::int64_t plane = image.planes * image.height * image.width;
    if (phase.step_x == 1) return transpose(from, plane, channels, end - begin, out + begin * lanes, lanes);
    if (phase.step_x == 2) return transpose<2>(from, plane, channels, end - begin, out + begin * lanes, lanes);
    for (std::int64_t x = begin; x < end; ++x, from += phase.step_x) {
        for (std::int64_t c = 0; c < channels; ++c) out[x * lanes + c] = from[c * plane];
    }
}

void pack_plane(const PackedImage& image, const float* in, std::int64_t channels, float* out) {
    for (const Lattice& phase : image.phases) {
        const bool whole = phase.first_y == 0 && phase.first_x == 0 && phase.step_y == 1 && phase.step_x == 1 &&
                           image.rows == image.height && image.columns == image.width;
        if (whole) {
            const std::int64_t pixels = image.height * image.width;
            transpose(in, image.planes * pixels, channels, pixels, out, lanes);
        } else {
            for (std::int64_t i = 0; i < image.rows; ++i) {
                pack_row(image, phase, i, in, channels, out + i * image.columns * lanes);
            }
        }
        out += image.rows * image.columns * lanes;
    }
}

void pack_image(const PackedImage& image, const float* in, std::int64_t channels, float* out) {
    for (std::int64_t z = 0; z < image.planes; ++z) {
        pack_plane(image, in + z * image.height * image.width, channels, out + z * image.plane_pixels() * lanes);
    }
}

void transpose_any(const float* in, std::int64_t in_row, std::int64_t rows, std::int64_t columns, float* out,
                   std::int64_t out_row) {
    transpose(in, in_row, rows, columns, out, out_row);
}

const DirectSimd* table() {
    static constexpr DirectSimd simd{lanes,           vectors_for,           sum_over_taps,
                                     sum_over_pixels, sum_over_taps_by_lane, sum_over_pixels_by_lane,
                                     pack_image,      transpose_any};
    return &simd;
}

}  // namespace
}  // namespace rehearse::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rehearse::kernels::cpu {

HWY_EXPORT(table);
const DirectSimd& direct_simd() { return *HWY_DYNAMIC_DISPATCH(table)(); }

}  // namespace rehearse::kernels::cpu
#endif  // HWY_ONCE
