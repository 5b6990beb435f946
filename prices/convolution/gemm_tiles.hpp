// SPDX-License-Identifier: Apache-2.0
// A batch of products {m, n} = {m, k} x {k, n} in the tiles of a matrix library.
#pragma once

#include <span>

#include "prices/convolution/families.hpp"

namespace rehearse::prices {

struct GemmTile {
    double rows, columns;
    double share;  // of the peak that processors full of it reach
};
struct ProductBatch {
    double m = 1, n = 1, k = 1, count = 1;
};
struct TiledProduct {
    Seconds time;
    double blocks = 1, waste = 1;
};
/// Arithmetic beside memory: each hides most of the shorter of both, and near a tie they hold each other up.
Seconds overlapped(Seconds computed, Seconds read);
/// In the tile that takes least; `start` values of k in whose time a tile begins and ends. Of what tiles load the share
/// `missed` comes from memory, none by default; operands and results are not counted otherwise.
TiledProduct tiled_product(const ProductBatch& product, std::span<const GemmTile> tiles, double start,
                           const Board& board, double missed = 0);

/// The same with k in as many parts as take least, up to 64 of 128 values at least, that are added up in memory.
TiledProduct cut_product(const ProductBatch& whole, std::span<const GemmTile> tiles, double start, const Board& board,
                         double missed = 0);

}  // namespace rehearse::prices
