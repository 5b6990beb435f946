// SPDX-License-Identifier: Apache-2.0
#include "prices/product_bound.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "prices/kernel_point.hpp"
#include "prices/strided_tile.hpp"
#include "prices/tensile_bound.hpp"

namespace rehearse::prices {

namespace {

// Fitted by least absolute errors on six boards' products at once (docs/kernel_prices_products.md). The share of the
// peak that processors full of a tile reach; small tiles load more for each multiply-add.
struct Tile {
    double rows, columns, share;
};
constexpr std::array tiles{Tile{128, 128, 0.984}, Tile{64, 64, 0.904}, Tile{128, 32, 0.31}, Tile{32, 128, 0.31},
                           Tile{64, 32, 0.31},    Tile{32, 64, 0.31},  Tile{32, 32, 0.163}};
// Of kernels that read rows of values that lie k apart (Reads::strided), as their names say.
constexpr std::array square_strided{Tile{64, 64, 0.814}}, low_strided{Tile{32, 128, 0.827}};
// Of batches of products, a generation's tiles.
constexpr Tile wide_batch{128, 64, 0.952}, square_batch{64, 64, 0.966};
constexpr Tile high_batch{128, 32, 0.89}, low_batch{32, 128, 0.89};
constexpr std::array pascal_tiles{wide_batch};
constexpr std::array volta_tiles{square_batch, low_batch, high_batch};
constexpr std::array turing_tiles{wide_batch, square_batch, high_batch};
constexpr std::array ampere_tiles{Tile{128, 128, 0.948}};

struct Kernels {
    std::span<const Tile> tiles;
    double start = 14.6;          // values of k in whose time a tile begins and ends
    double lone_block = 0.5;      // time of a block that has a processor to itself, over that of a full one
    double memory_share = 0.589;  // of the bandwidth
    double missed = 0.675;        // of what tiles load, the part that no cache has
    bool of_rows = false;         // they read rows of values that lie k apart
    bool hides = false;           // near a tie arithmetic and memory hold each other up
};
constexpr double hiding = 4, unaligned_share = 0.95;
// Processors of 128 lanes have the shared memory of those of 64: products of f32 wait for it.
constexpr FlopRate wide_processor{350e9};
constexpr double wide_share = 0.779;
constexpr Seconds launch{1.7e-6};
// The power limit acts on averages: what is shorter than the first runs at the boost clock, what is longer than the
// second at the sustained one.
constexpr Seconds short_run{16e-6}, long_run{3e-3};

double clock_after(Seconds run, const Board& board) {
    const double sustained = std::clamp(std::log(run / short_run) / std::log(long_run / short_run), 0.0, 1.0);
    return board.rested * std::pow(board.loaded / board.rested, sustained);
}

// Loads of four values at a time need rows that begin at a multiple of 16 bytes; of batches, neither of whose operands
// is transposed, rows of m and of k values.
bool aligned(const ProductShape& s) {
    return std::fmod(s.m, 4) == 0 && (s.batched || std::fmod(s.n, 4) == 0) && std::fmod(s.k, 4) == 0;
}

bool strided(const ProductShape& s, const Board& board) {
    if (s.batched || board.reads == Reads::contiguous) return false;
    const auto whole = [](double size) { return std::fmod(size, 64) == 0 ? 1 : 0; };
    return board.reads == Reads::strided || whole(s.m) + whole(s.n) + whole(s.k) < 2;
}

// The work that a tile's size deals out.
struct Dealt {
    double across, blocks, loaded;  // tiles side by side; blocks with the parts of k; values that they load
    Seconds computed;
};

Dealt deal(const ProductShape& s, const Tile& tile, double parts, const Kernels& kernels, const Board& board) {
    Dealt dealt;
    dealt.across = std::ceil(s.m / tile.rows);
    dealt.blocks = dealt.across * std::ceil(s.n / tile.columns) * s.count * parts;
    const double depth = s.k / parts, at_a_time = 2 * std::clamp(128 * 64 / (tile.rows * tile.columns), 1.0, 2.0);
    const double waves = dealt.blocks / (at_a_time * board.processors), rest = waves - std::floor(waves);
    const double last = rest > 0 ? (rest * at_a_time <= 1 ? kernels.lone_block : 1) : 0;
    const Flops each{2 * tile.rows * tile.columns * (depth + kernels.start)};
    const FlopRate one = board.peak * (board.rested / board.processors);
    const double share = tile.share * (aligned(s) ? 1 : unaligned_share) * (one > wide_processor ? wide_share : 1);
    const Seconds boosted = (std::floor(waves) + last) * at_a_time * (each / (board.peak * (share / board.processors)));
    dealt.computed = boosted * (1 / clock_after(boosted, board));
    dealt.loaded = dealt.blocks * (tile.rows + tile.columns) * depth;
    return dealt;
}

// Tiles whose rows lie k values apart read a sector of 32 bytes of each at a time: memory gives a fifth of its
// bandwidth. The tiles of a wave share rows and columns, until rows lie a page apart, each beyond the reach of the
// translation of addresses; the more of them, the sooner.
Seconds read_strided(const ProductShape& s, const Tile& tile, const Dealt& dealt, const Board& board) {
    constexpr double wave = 4, sector_share = 0.207;   // tiles a processor; of the bandwidth
    constexpr double page = 115e3, sharpness = 1.255;  // bytes between rows at which half of what was shared is lost
    constexpr double usual_rows = 3000, of_rows = 0.254;
    const double at_once = std::min(wave * board.processors, dealt.blocks);
    const double across = std::min(dealt.across, at_once);
    const double rows = across * tile.rows + std::max(1.0, at_once / across) * tile.columns;
    const double unique = std::min(1.0, rows / (at_once * (tile.rows + tile.columns)));
    const double apart = s.k * board.element.value * std::pow((s.m + s.n) / usual_rows, of_rows);
    const double lost = 1 / (1 + std::pow(page / apart, sharpness));
    return dealt.loaded * (unique + (1 - unique) * lost) * board.element / (board.bandwidth * sector_share);
}

Kernels kernels_for(const ProductShape& s, const Board& board) {
    if (strided(s, board)) {
        const bool low = strided_choice(s, board) > 0;
        return {.tiles = low ? std::span{low_strided} : std::span{square_strided}, .of_rows = true, .hides = true};
    }
    const auto batch = [](std::span<const Tile> some) { return Kernels{some, 12.3, 0.622, 0.69, 0.31, false, true}; };
    switch (s.batched ? board.batch_tiles : BatchTiles::any) {
        case BatchTiles::any:
            break;
        case BatchTiles::pascal:
            return batch(pascal_tiles);
        case BatchTiles::volta:
            return batch(volta_tiles);
        case BatchTiles::turing:
            return batch(turing_tiles);
        case BatchTiles::ampere:
            return batch(ampere_tiles);
    }
    return {.tiles = tiles};
}

ProductTime in_tiles(const ProductShape& s, const Tile& tile, double parts, const Kernels& kernels,
                     const Board& board) {
    const Dealt dealt = deal(s, tile, parts, kernels, board);
    const double sums = parts > 1 ? 2 * parts * s.count * s.m * s.n : 0;
    const auto moved = [&](double values) { return values * board.element / (board.bandwidth * kernels.memory_share); };
    Seconds read = moved(std::max(s.values() + sums, kernels.of_rows ? 0 : dealt.loaded * kernels.missed));
    if (kernels.of_rows) read = std::max(read, read_strided(s, tile, dealt, board));
    // Each block waits for its own loads, which others hide in part.
    Seconds time = std::max(dealt.computed, read);
    if (kernels.hides)
        time = Seconds{std::pow(std::pow(dealt.computed.value, hiding) + std::pow(read.value, hiding), 1 / hiding)};
    return {time + launch + (parts > 1 ? added_launch : Seconds{0}),
            tile.rows,
            tile.columns,
            parts,
            dealt.blocks,
            dealt.blocks / parts * tile.rows * tile.columns / (s.count * s.m * s.n)};
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
    if (board.library == Library::rocm) return tensile_bound(shape, board);
    ProductTime best{Seconds{INFINITY}};
    const Kernels kernels = kernels_for(shape, board);
    for (const Tile& tile : kernels.tiles) {
        for (double parts = 1; parts <= most_parts; parts *= 2) {
            if (parts > 1 && (shape.batched || shape.k / parts < least_depth)) break;
            const ProductTime some = in_tiles(shape, tile, parts, kernels, board);
            if (some.time < best.time) best = some;
        }
    }
    return best;
}

}  // namespace rehearse::prices
