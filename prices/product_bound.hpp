// SPDX-License-Identifier: Apache-2.0
// What a GPU library's products take at best on a board: tiles dealt out to processors in waves, k cut where tiles are
// few, the clock that power allows. docs/kernel_prices_products.md explains each part.
#pragma once

#include <cstdint>
#include <optional>

#include "core/op.hpp"
#include "prices/convolution/families.hpp"

namespace rehearse::prices {

/// `count` products {m, n} = {m, k} x {k, n} as the library sees them (column-major: m are columns of the result).
struct ProductShape {
    double count = 1, m = 1, n = 1, k = 1;
    bool batched = false;  // one call for many; libraries do not cut their k
    bool near = false;     // of a dense layer's gradient, whose operands' rows do not lie k values apart

    double products() const { return count * m * n * k; }
    double values() const { return count * (m * k + k * n + m * n); }
};

/// Of fewer rows libraries make products of a matrix and vectors, which no table of boards has.
inline constexpr std::int64_t fewest_rows = 8;

/// Libraries cut k into so many parts at most, each so deep at least; their sums are another kernel, which starts so
/// much later.
inline constexpr double most_parts = 16, least_depth = 64;
inline constexpr Seconds added_launch{1e-6};

/// Of a dense layer, forward, and of the dense layers of experts; nothing for other operators and passes.
std::optional<ProductShape> product_shape(const Problem& problem);

struct ProductTime {
    Seconds time;
    double rows = 128, columns = 128;  // of the tile, along m and n
    double parts = 1;                  // of k
    double blocks = 1, waste = 1;      // work dealt out; multiplied over wanted results
};
/// The least over tiles and cuts of k; on AMD's boards tensile_bound.
ProductTime product_bound(const ProductShape& shape, const Board& board);

}  // namespace rehearse::prices
