// SPDX-License-Identifier: Apache-2.0
// Rotary embeddings (Su et al. 2021): of each head of a row, pairs of numbers are turned by angles that grow with the
// row, x' = x cos - y sin and y' = y cos + x sin. The operator is an Elementwise "rotary" of rows {..., rows, width};
// what it needs beside its shape to be run is in its numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "core/op.hpp"

namespace rehearse {

struct Rotation {
    std::int64_t size = 2;    // numbers of a head
    std::int64_t turned = 2;  // of these, from number `first` on
    std::int64_t first = 0;
    bool neighbours = false;  // pairs are neighbours (GPT-J); else number i goes with number i + turned / 2 (Llama)
    /// Pair i of row r is turned by r base^(-2 i / turned). 0: Layer::given has the cosines and the sines, two tables
    /// {rows or 1, turned}.
    double base = 0;
    bool operator==(const Rotation&) const = default;
};

/// The first `heads` heads of each row are turned; `tables` says what is read beside the rows.
Elementwise rotary(const Shape& shape, const Rotation& rotation, std::int64_t heads, std::vector<Shape> tables);
/// Nothing where the operator is not a rotary one, or says only how many numbers of a row are turned: priced, not run.
std::optional<Rotation> rotation_of(const Elementwise& op);

}  // namespace rehearse
