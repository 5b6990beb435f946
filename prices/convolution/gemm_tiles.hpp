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
/// In the tile that takes least; `start` values of k in whose time a tile begins and ends. Without memory.
TiledProduct tiled_product(const ProductBatch& product, std::span<const GemmTile> tiles, double start,
                           const Board& board);

}  // namespace rehearse::prices
