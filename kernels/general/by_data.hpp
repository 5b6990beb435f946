// SPDX-License-Identifier: Apache-2.0
// Rearrangements whose places the data say: sorting, and elements picked or put by a second input.
//
//   largest, smallest      the first of each line along the axis, in order; equal ones in theirs
//   largestat, smallestat  where these lay: no gradient
//   takeeach               of {table, indices}: the element of the table whose place along the axis is the index
//   puteach                of {table, indices, values}: the table with values put there
//   takerows               of {table, ids}: row ids[i] of the table as row i
//   addrows                of {rows, ids}: the sum of all rows i whose ids[i] is r as row r
// Ids of rows are whole numbers from 0 on, and -1 where there is none: a row of zeros, or one that is added nowhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/backend.hpp"

namespace rehearse::kernels::general {

bool by_data(const Rearrangement& op);
/// Why its shapes do not fit each other; empty where they do.
std::string why_not_by_data(const Rearrangement& op);

/// One sample of such an operator, forward and backward. An index counts from behind where it is negative; one that
/// lies outside is a BackendError.
class ByData {
public:
    explicit ByData(const Rearrangement& op);
    void forward(std::span<const float* const> src, float* dst) const;
    /// Writes the gradients that are asked for: those of `diff_src` that are not null.
    void backward(std::span<const float* const> src, const float* diff_dst, std::span<float* const> diff_src) const;

private:
    /// Of each element of the result (of takeeach: the indices, of puteach: the values), its place in the first input.
    std::vector<std::int64_t> places(std::span<const float* const> src) const;
    std::vector<std::int64_t> sorted(const float* src) const;
    std::vector<std::int64_t> indexed(const float* indices) const;

    Rearrangement op_;
    /// Of each id the row, or -1.
    std::vector<std::int64_t> rows(const float* ids) const;
    void take(const float* table, const std::vector<std::int64_t>& from, float* to) const;
    void add(const float* values, const std::vector<std::int64_t>& to, float* sums) const;

    bool rows_, adds_, sorts_, puts_, positions_, largest_;
    std::int64_t along_, inner_, taken_;  // of the first input, and how many are taken along the axis
};

}  // namespace rehearse::kernels::general
