// SPDX-License-Identifier: Apache-2.0
// Winograd's minimal filtering (Lavin and Gray 2016) for 3x3 filters that move by one pixel.
//
//   fused      one kernel: a block transforms 32 tiles of 2x2 results in its shared memory and multiplies them with 32
//              filters; 16 products a tile and channel instead of 36. Images are rounded up to blocks of 1 x 4 x 8
//              tiles (images x rows x columns); on Pascal and before also 2x4x4, 2x2x8, 4x2x4, 4x1x8 and 4x4x2.
//   not fused  images to tiles of 4x4 results in memory, 36 products of {tiles, channels} x {channels, filters} in the
//              tiles of the matrix library, and back: 36 products instead of 144, but the tiles cross memory four
//              times.
#include <algorithm>
#include <array>
#include <cmath>

#include "prices/convolution/families.hpp"
#include "prices/convolution/gemm_tiles.hpp"

namespace rehearse::prices {

namespace {

struct ImageBlock {
    double images, rows, columns;
};
constexpr std::array image_blocks{ImageBlock{1, 4, 8}, ImageBlock{2, 4, 4}, ImageBlock{2, 2, 8},
                                  ImageBlock{4, 2, 4}, ImageBlock{4, 1, 8}, ImageBlock{4, 4, 2}};
constexpr double tiles_of_block = 32, filters_of_block = 32;
constexpr double fused_share = 0.768,
                 fused_start = 22.4;  // of the peak; channels in whose time a block begins and ends
// A block loads 10 x 18 pixels and 32 filters of 3x3 a channel; of them, and of what the 36 products' tiles load, this
// much no cache has.
constexpr double loaded_of_block = 180 + 9 * filters_of_block, fused_missed = 0.049, product_missed = 0.0334;
// Boards of little bandwidth (P4 and T4: 35 and 39 bytes for 1,000 operations; V100 and P100: 64 and 78) reach less.
constexpr double lean_bytes = 0.05, lean_share = 0.805;
constexpr double not_fused_start = 1.62;
constexpr Seconds fused_launch{0.8e-6},
    not_fused_launch{95.8e-6};             // the latter: four kernels and a batch of 36 products
constexpr Seconds gradient_launch{30e-6};  // of the same in DeepBench's hot loops, which hide most of it

bool is_for(const ConvolutionShape& s) {
    return s.kernel_height == 3 && s.kernel_width == 3 && s.stride_height == 1 && s.stride_width == 1 &&
           s.groups == 1 && !s.dilated;
}

bool lean(const Board& board) {
    const FlopRate arithmetic = board.lanes.value > 0 ? board.lanes : board.peak * board.rested;
    return board.bandwidth.value < lean_bytes * arithmetic.value;
}

// Of the products of a batch of 36, in the tiles of cuBLAS and what a processor full of each reaches.
constexpr std::array product_tiles{GemmTile{128, 128, 0.707}, GemmTile{128, 64, 0.722}, GemmTile{64, 64, 0.593},
                                   GemmTile{32, 128, 0.595},  GemmTile{128, 32, 0.624}, GemmTile{64, 32, 0.3},
                                   GemmTile{32, 32, 0.148}};

}  // namespace

std::optional<FamilyTime> winograd_fused(const ConvolutionShape& shape, const Board& board) {
    if (!is_for(shape) || shape.pass == Pass::backward_weights) return std::nullopt;
    const double rows = std::ceil(shape.out_height / 2), columns = std::ceil(shape.out_width / 2);
    double blocks = INFINITY;
    for (const ImageBlock& block : image_blocks) {
        if (block.images > 1 && !board.small_image_blocks) continue;
        blocks = std::min(blocks, std::ceil(shape.batch / block.images) * std::ceil(rows / block.rows) *
                                      std::ceil(columns / block.columns));
    }
    blocks *= std::ceil(shape.filters / filters_of_block);
    const Flops work{2 * 16 * tiles_of_block * filters_of_block * (shape.channels + fused_start)};
    const double share = fused_share * (lean(board) ? lean_share : 1);
    const double read = shape.values() + fused_missed * blocks * shape.channels * loaded_of_block;
    const Seconds time = overlapped(in_waves(blocks, work, share, board), moved(read, board));
    const double waste = blocks * tiles_of_block * 4 * filters_of_block / (shape.outputs() * shape.filters);
    return FamilyTime{time + fused_launch, blocks, waste};
}

std::optional<FamilyTime> winograd_transformed(const ConvolutionShape& shape, const Board& board) {
    if (!is_for(shape)) return std::nullopt;
    const double tiles = shape.batch * std::ceil(shape.out_height / 4) * std::ceil(shape.out_width / 4);
    const double images = 36 * tiles * shape.channels, results = 36 * tiles * shape.filters;
    const double filters = 36 * shape.channels * shape.filters;
    const bool of_filters = shape.pass == Pass::backward_weights;
    const TiledProduct product = of_filters ? cut_product({shape.channels, shape.filters, tiles, 36}, product_tiles,
                                                          not_fused_start, board, product_missed)
                                            : tiled_product({tiles, shape.filters, shape.channels, 36}, product_tiles,
                                                            not_fused_start, board, product_missed);
    const Seconds multiplied = overlapped(product.time, moved(images + results + filters, board));
    const Seconds transformed = moved(shape.values() + images + results + filters, board);
    return FamilyTime{multiplied + transformed + (of_filters ? gradient_launch : not_fused_launch), product.blocks,
                      product.waste * tiles * 16 / shape.outputs()};
}

}  // namespace rehearse::prices
