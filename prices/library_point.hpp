// SPDX-License-Identifier: Apache-2.0
// A kernel as what its time beyond the bound of a library depends on.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "prices/convolution/families.hpp"
#include "prices/gaussian_process.hpp"

namespace rehearse {

struct LibraryPoint {
    FeaturePoint point;
    Seconds bound;  // the least time over the families
};

/// Nothing for what was never measured on boards: other types than f32, other passes than forward; convolutions with
/// other windows than 3x3 that move by one pixel, or groups; operators that are neither convolutions, products of dense
/// layers or experts, softmax nor layer normalizations.
std::optional<LibraryPoint> library_point(const Problem& problem, const prices::Board& board);

/// Of products alone (product_bound), and of what is done to rows: softmax and layer normalization.
std::optional<LibraryPoint> product_point(const Problem& problem, const prices::Board& board);
std::optional<LibraryPoint> row_point(const Problem& problem, const prices::Board& board);

/// How many features library_point gives an operator of this kind.
std::size_t library_features(std::string_view kind);

}  // namespace rehearse
