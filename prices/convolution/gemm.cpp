// SPDX-License-Identifier: Apache-2.0
// Convolutions as products that are never written down: each block gathers its part of {pixels, channels * taps}.
//
//   implicit gemm  one product, in tiles of 128 pixels x 128, 64 or 32 filters
//   grouped        as many products as groups: few channels each, most of a tile empty
//   direct         a thread a result, no tile: for few filters and channels, and one channel a group (depthwise)
#include "prices/convolution/gemm_tiles.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace rehearse::prices {

namespace {

constexpr std::array tiles{GemmTile{128, 128, 0.747}, GemmTile{128, 64, 0.866}, GemmTile{128, 32, 0.753}};
// Matrix units multiply 16 x 8 x 16 values: four channels a group fill half of it. Its share is assumed.
constexpr std::array matrix_tiles{GemmTile{128, 128, 0.861}, GemmTile{128, 64, 0.867}, GemmTile{128, 32, 0.75},
                                  GemmTile{128, 8, 0.4}};
constexpr double start = 19.4;  // values of k
// Of the peak: each value that is loaded is used a few times only. Without groups hardly any of the kernels that ran is
// one; of depthwise ones it is assumed.
constexpr double direct_share = 0.0465, depthwise_share = 0.2;
constexpr Seconds launch{0.65e-6};

// {m, n, k} of one group; of the gradient of the filters k is long and m x n small, so k is cut.
ProductBatch product_of(const ConvolutionShape& s) {
    const double channels = s.channels / s.groups, filters = s.filters / s.groups;
    if (s.pass == Pass::backward_weights) return {channels * s.taps(), filters, s.outputs(), s.groups};
    return {s.outputs(), filters, channels * s.taps(), s.groups};
}

// Without groups and in f32, libraries have the gradients of filters of one tap, and those of images that are spread
// over pixels, in tiles of 128 x 128 alone (docs/kernel_prices.md).
bool in_largest_tiles(const ConvolutionShape& s, const Board& board) {
    if (s.groups > 1 || board.lanes.value > 0) return false;
    return s.spreads() || (s.pass == Pass::backward_weights && s.taps() == 1);
}

std::span<const GemmTile> tiles_of(const Board& board) {
    return board.lanes.value > 0 ? std::span<const GemmTile>{matrix_tiles} : std::span<const GemmTile>{tiles};
}

FamilyTime as_product(const ConvolutionShape& shape, const Board& board) {
    const ProductBatch whole = product_of(shape);
    std::span<const GemmTile> choices = tiles_of(board);
    if (in_largest_tiles(shape, board)) choices = choices.first(1);
    const TiledProduct product = shape.pass == Pass::backward_weights ? cut_product(whole, choices, start, board)
                                                                      : tiled_product(whole, choices, start, board);
    Seconds time = overlapped(product.time, moved(shape.values(), board)) + launch;
    // Pixels that no window touches have a gradient of zero: all are set to it first.
    if (shape.spreads() && shape.skips()) time += moved(shape.image_values(), board);
    return {time, product.blocks, product.waste};
}

}  // namespace

Seconds overlapped(Seconds computed, Seconds read) {
    constexpr double hiding = 3;
    return Seconds{std::pow(std::pow(computed.value, hiding) + std::pow(read.value, hiding), 1 / hiding)};
}

TiledProduct tiled_product(const ProductBatch& product, std::span<const GemmTile> choices, double begin,
                           const Board& board, double missed) {
    TiledProduct best{Seconds{INFINITY}, 1, 1};
    for (const GemmTile& tile : choices) {
        const double blocks = std::ceil(product.m / tile.rows) * std::ceil(product.n / tile.columns) * product.count;
        const Flops work{2 * tile.rows * tile.columns * (product.k + begin)};
        Seconds time = in_waves(blocks, work, tile.share, board);
        if (missed > 0) time = overlapped(time, moved(missed * blocks * (tile.rows + tile.columns) * product.k, board));
        if (time < best.time)
            best = {time, blocks, blocks * tile.rows * tile.columns / (product.m * product.n * product.count)};
    }
    return best;
}

TiledProduct cut_product(const ProductBatch& whole, std::span<const GemmTile> choices, double begin, const Board& board,
                         double missed) {
    TiledProduct best = tiled_product(whole, choices, begin, board, missed);
    for (double parts = 2; parts <= 64 && whole.k / parts >= 128; parts *= 2) {
        TiledProduct some =
            tiled_product({whole.m, whole.n, whole.k / parts, whole.count * parts}, choices, begin, board, missed);
        some.time += moved(2 * whole.m * whole.n * whole.count * parts, board);
        if (some.time < best.time) best = some;
    }
    return best;
}

std::optional<FamilyTime> implicit_gemm(const ConvolutionShape& shape, const Board& board) {
    if (shape.groups > 1) return std::nullopt;
    return as_product(shape, board);
}

std::optional<FamilyTime> gradient_by_sample(const ConvolutionShape& shape, const Board& board) {
    if (shape.groups > 1 || shape.pass != Pass::backward_weights) return std::nullopt;
    ProductBatch samples = product_of(shape);
    samples.k /= shape.batch;
    samples.count = shape.batch;
    const TiledProduct product = tiled_product(samples, tiles_of(board), start, board);
    const double sums = shape.batch > 1 ? 2 * samples.m * samples.n * samples.count : 0;
    const Seconds read = moved(shape.values() + sums, board);
    return FamilyTime{overlapped(product.time, read) + launch, product.blocks, product.waste};
}

std::optional<FamilyTime> grouped(const ConvolutionShape& shape, const Board& board) {
    if (shape.groups <= 1 || shape.channels == shape.groups) return std::nullopt;  // of one channel: direct
    return as_product(shape, board);
}

std::optional<FamilyTime> direct(const ConvolutionShape& shape, const Board& board) {
    const FlopRate lanes = board.lanes.value > 0 ? board.lanes : board.peak;
    const double share = shape.groups > 1 ? depthwise_share : direct_share;
    const Seconds computed = Flops{2 * shape.products()} / (lanes * share);
    constexpr double threads = 128;
    return FamilyTime{std::max(computed, moved(shape.values(), board)) + launch,
                      std::ceil(shape.outputs() * shape.filters / threads), 1};
}

}  // namespace rehearse::prices
