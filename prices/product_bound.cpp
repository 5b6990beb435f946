// SPDX-License-Identifier: Apache-2.0
#include "prices/product_bound.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "prices/kernel_point.hpp"

namespace rehearse::prices {

namespace {

// Fitted by least absolute errors on four boards' products at once (docs/kernel_prices.md). The share of the peak that
// processors full of a tile reach; small tiles load more for each multiply-add.
struct Tile {
    double rows, columns, share;
};
constexpr std::array tiles{Tile{128, 128, 0.92}, Tile{128, 64, 0.75}, Tile{64, 128, 0.75},
                           Tile{64, 64, 0.83},   Tile{128, 32, 0.46}, Tile{32, 128, 0.46},
                           Tile{64, 32, 0.46},   Tile{32, 64, 0.46},  Tile{32, 32, 0.25}};
constexpr double start = 15;            // values of k in whose time a tile begins and ends
constexpr double lone_block = 0.7;      // time of a block that has a processor to itself, over that of a full one
constexpr double memory_share = 0.567;  // of the bandwidth
constexpr double missed = 0.15;         // of what tiles load, the part that no cache has
constexpr double most_parts = 16, least_depth = 64;
constexpr Seconds launch{1.7e-6}, added_launch{1e-6};
// The power limit acts on averages: what is shorter than the first runs at the boost clock, what is longer than the
// second at the sustained one.
constexpr Seconds short_run{46e-6}, long_run{3e-3};

double clock_after(Seconds run, const Board& board) {
    const double sustained = std::clamp(std::log(run / short_run) / std::log(long_run / short_run), 0.0, 1.0);
    return board.rested * std::pow(board.loaded / board.rested, sustained);
}

ProductTime in_tiles(const ProductShape& s, const Tile& tile, double parts, const Board& board) {
    const double blocks = std::ceil(s.m / tile.rows) * std::ceil(s.n / tile.columns) * s.count;
    const double at_a_time = 2 * std::clamp(128 * 64 / (tile.rows * tile.columns), 1.0, 2.0);
    const double depth = s.k / parts;
    const double waves = blocks * parts / (at_a_time * board.processors), rest = waves - std::floor(waves);
    const double last = rest > 0 ? (rest * at_a_time <= 1 ? lone_block : 1) : 0;
    const Flops each{2 * tile.rows * tile.columns * (depth + start)};
    const FlopRate one = board.peak * (tile.share / board.processors);
    const Seconds boosted = (std::floor(waves) + last) * at_a_time * (each / one);
    const Seconds computed = boosted * (1 / clock_after(boosted, board));
    const double sums = parts > 1 ? 2 * parts * s.count * s.m * s.n : 0;
    const double loaded = blocks * parts * (tile.rows + tile.columns) * depth * missed;
    const Seconds read = std::max(s.values() + sums, loaded) * board.element / (board.bandwidth * memory_share);
    return {std::max(computed, read) + launch + (parts > 1 ? added_launch : Seconds{0}),
            tile.rows,
            tile.columns,
            parts,
            blocks * parts,
            blocks * tile.rows * tile.columns / (s.count * s.m * s.n)};
}

}  // namespace

std::optional<ProductShape> product_shape(const Problem& problem) {
    if (problem.pass != Pass::forward) return std::nullopt;
    if (const auto* dense = std::get_if<MatMul>(&problem.op)) {
        const ProductSizes sizes = product_sizes(*dense, problem.pass, problem.batch);
        return ProductShape{1, sizes.m, sizes.n, sizes.k, false};
    }
    if (const auto* experts = std::get_if<GroupedMatMul>(&problem.op)) {
        return ProductShape{static_cast<double>(experts->experts), static_cast<double>(experts->n),
                            static_cast<double>(rows_of_expert(*experts, problem.batch)),
                            static_cast<double>(experts->k), true};
    }
    return std::nullopt;
}

ProductTime product_bound(const ProductShape& shape, const Board& board) {
    ProductTime best{Seconds{INFINITY}};
    for (const Tile& tile : tiles) {
        for (double parts = 1; parts <= most_parts; parts *= 2) {
            if (parts > 1 && (shape.batched || shape.k / parts < least_depth)) break;
            const ProductTime some = in_tiles(shape, tile, parts, board);
            if (some.time < best.time) best = some;
        }
    }
    return best;
}

}  // namespace rehearse::prices
