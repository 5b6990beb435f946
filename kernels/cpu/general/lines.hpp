// SPDX-License-Identifier: Apache-2.0
// What a reduction does to the elements of one sample, line by line, by vectors.
#pragma once

#include <cstdint>

namespace rehearse::kernels::cpu {

/// `count` lines of `size` elements, one behind the other. A line's elements go to the results from targets[line] on,
/// each to its own where `apart`, else all to that one.
struct Lines {
    const std::int64_t* targets = nullptr;
    std::int64_t count = 0, size = 1;
    bool apart = false;
};

/// What is added to a result (or takes its place, where it is more or less): an element, its size, its square; 1 where
/// it equals `other` of the result; exp(element - other).
enum class Fold { sum, absolute, squares, most, least, equal, exponentials };
void fold_lines(Fold fold, const Lines& lines, const float* src, const float* other, double* results);

/// An element's gradient: its result's factor as it is, with the element's sign, times the element, where it equals
/// `other`, times exp(element - other). `src` is not read of the first.
enum class Spread { alike, sign, times, equal, exponential };
void spread_lines(Spread spread, const Lines& lines, const float* src, const float* factor, const float* other,
                  float* diff);

}  // namespace rehearse::kernels::cpu
