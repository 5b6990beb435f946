// SPDX-License-Identifier: Apache-2.0
// What Winograd's and the Fourier convolution have in common: the output is cut into tiles of m x n pixels, a tile of
// input, a filter and a tile of output are each turned into `points`, and at every point the channels are summed by a
// matrix product. Both are bilinear algorithms, so the gradient of the filters comes from the same points, turned
// round.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/backend.hpp"

namespace rehearse::kernels::cpu {

/// The correlation that a pass computes: out(y, x) = sum over taps of in(y - pad_top + r, x - pad_left + s) * filter.
/// backward_data is one too, of diff_dst with the filters turned by 180 degrees; its padding may be negative.
struct Correlation {
    std::int64_t batch = 1;
    std::int64_t in_channels = 1, in_h = 1, in_w = 1;
    std::int64_t out_channels = 1, out_h = 1, out_w = 1;
    std::int64_t pad_top = 0, pad_left = 0;
    std::int64_t kernel_h = 1, kernel_w = 1, dilation_h = 1, dilation_w = 1;
};
Correlation correlation(const Problem& problem);

/// A tile reads `size` x `size` pixels and gives `out_h` x `out_w`.
struct TileShape {
    std::int64_t size = 4, out_h = 2, out_w = 2, points = 16;
};

/// Neighbouring tiles of one image, rows x cols of them: what is transposed at once.
struct Strip {
    std::int64_t sample = 0, tile_y = 0, tile_x = 0, rows = 1, cols = 1;
    std::int64_t first = 0;  // index of its first tile, counted over all strips
    std::int64_t tiles() const { return rows * cols; }
};

/// Strips whose points are kept at once.
struct Block {
    std::int64_t first_strip = 0, last_strip = 0;  // last is one behind
    std::int64_t first_tile = 0, tiles = 0;
};

struct Tiling {
    std::vector<Strip> strips;
    std::vector<Block> blocks;
    std::int64_t tiles = 0, largest_block = 0;
    std::int64_t band_rows = 0, band_cols = 0;  // pixels of the largest strip, borders included
};

/// Every tile once. A block has about `block_tiles` tiles: a whole number of strips.
Tiling tiling(const Correlation& c, const TileShape& tile, std::int64_t block_tiles);

}  // namespace rehearse::kernels::cpu
