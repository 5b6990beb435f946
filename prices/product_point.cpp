// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "prices/library_point.hpp"
#include "prices/product_bound.hpp"
#include "prices/strided_tile.hpp"

namespace rehearse {

namespace {

struct Filling {
    double waste, last_wave, waves;  // logarithms; waves to the base of 2
};

Filling filling(const prices::ProductShape& s, double rows, double columns, const prices::Board& board) {
    const double blocks = std::ceil(s.m / rows) * std::ceil(s.n / columns) * s.count;
    const double waves = blocks / (2 * board.processors);
    return {std::log(blocks * rows * columns / (s.count * s.m * s.n)), std::log(std::ceil(waves) / waves),
            std::log2(std::max(waves, 1.0 / 64))};
}

// Loads of four values at a time need rows that begin at a multiple of 16 bytes.
double unaligned(double size) { return std::fmod(size, 4) == 0 ? 0 : 1; }

}  // namespace

std::optional<LibraryPoint> product_point(const Problem& problem, const prices::Board& board) {
    const auto shape = prices::product_shape(problem);
    if (!shape || (!shape->batched && shape->n < prices::fewest_rows)) return std::nullopt;
    const prices::ProductTime best = prices::product_bound(*shape, board);
    const Filling large = filling(*shape, 128, 128, board), wide = filling(*shape, 128, 64, board);
    const Filling small = filling(*shape, 64, 64, board);
    const Bytes bytes = shape->values() * board.element;
    const Seconds read = bytes / board.bandwidth, computed = Flops{2 * shape->products()} / board.peak;
    constexpr double shortest = 2e-5, longest = 2e-2;  // between them the clock changes
    const double any_unaligned = std::max({unaligned(shape->m), unaligned(shape->n), unaligned(shape->k)});
    return LibraryPoint{
        {{std::log2(shape->m), std::log2(shape->n), std::log2(shape->k), std::log2(shape->count),
          std::log(read / computed), 2 * large.waste, 2 * wide.waste, 2 * wide.last_wave, wide.waves, 2 * small.waste,
          2 * unaligned(shape->m), unaligned(shape->k), 3 * any_unaligned,
          4 * std::log(best.time / std::max(read, computed)), std::log2(std::clamp(best.time.value, shortest, longest)),
          std::log2(bytes.value), prices::strided_choice(*shape, board)},
         0},
        best.time};
}

}  // namespace rehearse
