// SPDX-License-Identifier: Apache-2.0
#include "prices/strided_tile.hpp"

#include <algorithm>
#include <cmath>

namespace rehearse::prices {

namespace {

double blocks_each(const ProductShape& s, double rows, double columns, const Board& board) {
    return std::ceil(s.m / rows) * std::ceil(s.n / columns) / board.processors;
}

// A processor of 128 lanes holds eight tiles of 64 x 64 or four of 32 x 128. The library takes the one of which the
// busiest processor gets fewer; of equals the one that fills its last wave: up to four are a whole wave of 32 x 128 and
// half of one of 64 x 64, more a wave of this and two of that. Of one or two a processor, in parts of k, it takes
// 64 x 64. Right in 94 % of the P4's kernels, of whose names and grids (NeuSight's) it was made.
double chosen_on_wide(const ProductShape& s, const Board& board) {
    constexpr double wave = 8, few = 2, few_low = 2.5;
    const double square = blocks_each(s, 64, 64, board), low = blocks_each(s, 32, 128, board);
    const double most = std::ceil(square), last = std::fmod(most - 1, wave) + 1;
    if (most <= few || (most <= few + 1 && low <= few_low)) return -sure_of_tile;
    if (last == wave && square == most && square >= low) return sure_of_tile;
    const double fills = last == 1 ? 0.02 : last <= wave / 2 ? 0.2 : last < wave ? -0.1 : -0.02;
    constexpr double busiest = 0.7, steep = 30;  // the rest: of the mean of all processors
    const double fewer = busiest * (most - std::ceil(low)) + (1 - busiest) * (square - low);
    return std::clamp(steep * (fewer + fills), -sure_of_tile, sure_of_tile);
}

// With 64 lanes it counts waves of four and two, a partial one as nearly a whole (94 % of the P100's, likewise).
double chosen_on_narrow(const ProductShape& s, const Board& board) {
    constexpr double partial = 0.9, likes = 0.97;
    const auto cost = [&](double rows, double columns, double at_a_time) {
        const double waves = blocks_each(s, rows, columns, board) / at_a_time;
        return (partial * std::ceil(waves) + (1 - partial) * waves) * at_a_time;
    };
    return std::clamp(10 * std::log(cost(64, 64, 4) / (likes * cost(32, 128, 2))), -sure_of_tile, sure_of_tile);
}

}  // namespace

double strided_choice(const ProductShape& s, const Board& board) {
    if (board.reads == Reads::contiguous || s.batched) return 0;
    const FlopRate lanes_64{220e9};
    const FlopRate each = board.peak * (board.rested / board.processors);
    return each > lanes_64 ? chosen_on_wide(s, board) : chosen_on_narrow(s, board);
}

}  // namespace rehearse::prices
