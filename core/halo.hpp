// SPDX-License-Identifier: Apache-2.0
// Rows that ranks have of a tensor, and rows that each needs of its neighbours' to compute its own rows of the next.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rehearse {

/// Of a dimension that equal pieces of `own` rows share, each rank needs `size` rows from a place that moves on by
/// `step` from rank to rank. Rows before the first and after the last rank's are nobody's.
///
///   own 4, size 6, step 4, before 1 (a window of 3, padding 1; three ranks)      own 4, size 3, step 4, before 0
///   rank 0   . 0 1 2 3 4                                                         0 1 2       (a window of 1, stride 2)
///   rank 1           3 4 5 6 7 8                                                         4 5 6
///   rank 2                   7 8 9 10 11 .
struct Halo {
    std::int64_t own = 0, size = 0, step = 0, before = 0;
    bool operator==(const Halo&) const = default;

    /// The first row that a rank needs.
    std::int64_t first(std::int64_t rank) const { return rank * step - before; }
    /// Of the rows that `rank` has, those that `other` needs: from the first to before the last, counted in its own.
    std::int64_t lent_begin(std::int64_t rank, std::int64_t other) const {
        return std::clamp<std::int64_t>(first(other) - rank * own, 0, own);
    }
    std::int64_t lent_end(std::int64_t rank, std::int64_t other) const {
        return std::clamp<std::int64_t>(first(other) + size - rank * own, 0, own);
    }
    /// Whether no rank needs another's, or what is nobody's: the rows that it needs are the first of its own.
    bool stays() const { return step == own && before == 0 && size <= own; }
};

}  // namespace rehearse
