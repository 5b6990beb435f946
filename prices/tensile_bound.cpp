// SPDX-License-Identifier: Apache-2.0
#include "prices/tensile_bound.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace rehearse::prices {

namespace tensile {  // whose names are those of product_bound.cpp
namespace {

// Fitted by least absolute errors on the products of two boards at once (docs/kernel_prices_products.md).
struct Tile {
    double rows, columns;
};
// Of the names of the kernels that ran: Cijk_Alik_Bljk_SB_MT128x96x32 and the like.
constexpr std::array tiles{Tile{128, 128}, Tile{128, 96}, Tile{96, 96}, Tile{128, 64}, Tile{64, 128}, Tile{64, 64},
                           Tile{64, 32},   Tile{32, 64},  Tile{32, 32}, Tile{64, 16},  Tile{16, 64},  Tile{16, 16}};
// Time of a multiply-add over that at the peak: what a full tile needs, and the loads from shared memory, of which a
// tile of a x b values makes 1/a + 1/b for each. 0.68 of the peak at 128 x 128, 0.49 at 64 x 64, 0.19 at 16 x 16.
constexpr double full_tile = 0.9, of_loads = 36;
constexpr double start = 17;            // values of k in whose time a tile begins and ends
constexpr double blocks_at_a_time = 2;  // on a compute unit
constexpr double lone_block = 0.43;     // time of a block that has one to itself, over that of two
constexpr double memory_share = 0.55;   // of the bandwidth
constexpr double missed = 0.2;          // of what tiles of a batch load, the part that no cache has
constexpr double tuned_batch = 2;       // products of a batch that the choice of a tile counts
constexpr double most_pieces = 8, least_piece = 64;
constexpr Seconds launch{1.2e-6};

// Of dense layers both operands' rows lie k values apart, forward. Beyond about 200 KB the tiles of a wave no longer
// share what they load, and each reads for itself; rows a multiple of 16 KB apart fall on the same channels of memory,
// and lose it sooner.
double lost_sharing(const ProductShape& s, const Board& board) {
    if (s.batched || s.near) return 0;
    constexpr double far = 203e3, sharpness = 6.5, same_channels = 1.8, channels = 16384;  // bytes; the third: times
    const double apart = s.k * board.element.value;
    const double as_far = std::fmod(apart, channels) == 0 ? same_channels * apart : apart;
    return 1 / (1 + std::pow(far / as_far, sharpness));
}

Seconds computed(double blocks, const Tile& tile, double depth, double at_a_time, double lone, const Board& board) {
    const double waves = blocks / (at_a_time * board.processors), rest = waves - std::floor(waves);
    const double last = rest > 0 ? (rest * at_a_time <= 1 ? lone : 1) : 0;
    const double slower = full_tile + of_loads * (1 / tile.rows + 1 / tile.columns);
    const Flops each{2 * tile.rows * tile.columns * (depth + start)};
    const FlopRate unit = board.peak * (board.rested / board.processors);
    return (std::floor(waves) + last) * at_a_time * slower * (each / unit);
}

double blocks_of(const ProductShape& s, const Tile& tile, double parts) {
    return std::ceil(s.m / tile.rows) * std::ceil(s.n / tile.columns) * s.count * parts;
}

Seconds moved(double values, const Board& board, double share) {
    return values * board.element / (board.bandwidth * share);
}

// What the library's tables go by: the time of few products, a block a unit, whatever lies how far apart.
Seconds looked_up(const ProductShape& s, const Tile& tile, double parts, const Board& board) {
    ProductShape few = s;
    few.count = std::min(s.count, tuned_batch);
    const double blocks = blocks_of(few, tile, parts), depth = s.k / parts;
    const double sums = parts > 1 ? 2 * parts * s.m * s.n : 0;
    double values = few.values() + sums;
    if (s.batched) values = std::max(values, missed * blocks * (tile.rows + tile.columns) * depth);
    return std::max(computed(blocks, tile, depth, 1, 1, board), moved(values, board, memory_share)) +
           (parts > 1 ? launch : Seconds{0});
}

ProductTime time_of(const ProductShape& s, const Tile& tile, double parts, const Board& board) {
    constexpr double apart_share = 0.24;  // of the bandwidth, by loads that nobody shares
    const double blocks = blocks_of(s, tile, parts), depth = s.k / parts;
    const double loaded = blocks * (tile.rows + tile.columns) * depth;
    const double sums = parts > 1 ? 2 * parts * s.m * s.n : 0;
    double values = s.values() + sums;
    if (s.batched) values = std::max(values, missed * loaded);
    const Seconds read =
        std::max(moved(values, board, memory_share), moved(lost_sharing(s, board) * loaded, board, apart_share));
    const Seconds time = std::max(computed(blocks, tile, depth, blocks_at_a_time, lone_block, board), read);
    return {time + (parts > 1 ? 2.0 : 1.0) * launch,
            tile.rows,
            tile.columns,
            parts,
            blocks,
            blocks / parts * tile.rows * tile.columns / (s.count * s.m * s.n)};
}

}  // namespace
}  // namespace tensile

ProductTime tensile_bound(const ProductShape& shape, const Board& board) {
    ProductTime best{Seconds{INFINITY}};
    Seconds least{INFINITY};
    for (const tensile::Tile& tile : tensile::tiles) {
        for (double parts = 1; parts <= tensile::most_pieces; parts *= 2) {
            if (parts > 1 && (shape.batched || shape.k / parts < tensile::least_piece)) break;
            const Seconds some = tensile::looked_up(shape, tile, parts, board);
            if (some >= least) continue;
            least = some;
            best = tensile::time_of(shape, tile, parts, board);
        }
    }
    return best;
}

}  // namespace rehearse::prices
