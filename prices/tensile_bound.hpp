// SPDX-License-Identifier: Apache-2.0
// What products of f32 take at best on AMD's boards: rocBLAS' kernels (Tensile), which multiply on matrix cores.
// docs/kernel_prices_products.md explains each part.
#pragma once

#include "prices/product_bound.hpp"

namespace rehearse::prices {

/// The time of the tile and the cut of k that would take least for at most two products of the batch: rocBLAS looks
/// its kernels up by the sizes of a product, not by how many there are. `shape` as ProductShape says it; the peak of
/// `board` is that of its matrix cores.
ProductTime tensile_bound(const ProductShape& shape, const Board& board);

}  // namespace rehearse::prices
