// SPDX-License-Identifier: Apache-2.0
// Which of its two tiles cuBLAS takes for products whose operands' rows lie k values apart, on Pascal: it counts tiles
// and knows nothing of memory (docs/kernel_prices_products.md).
#pragma once

#include "prices/product_bound.hpp"

namespace rehearse::prices {

/// The most that either is chosen by.
inline constexpr double sure_of_tile = 1.5;
/// Above zero 32 x 128, below 64 x 64; near it either. Of batches and of boards that read whole lines 0.
double strided_choice(const ProductShape& shape, const Board& board);

}  // namespace rehearse::prices
