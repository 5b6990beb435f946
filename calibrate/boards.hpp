// SPDX-License-Identifier: Apache-2.0
// How far prices of convolutions are from boards' kernels that they have not seen, and how often the library's choice
// is foretold.
#pragma once

#include <span>
#include <vector>

#include "calibrate/learn.hpp"
#include "calibrate/validate_kernels.hpp"
#include "prices/measured_board.hpp"

namespace rehearse::calibrate {

/// A kernel, its price, and whether the family that was expected is the one that ran: of the bound alone the one with
/// the least time, elsewhere the one that ran at like shapes.
struct JudgedChoice {
    Judged judged;
    bool family_right = false;  // of a convolution
    bool network = false;       // sizes of a network, not random ones
};

/// Each kernel at the library's bound alone; the deviation is that of all of them, around no offset.
std::vector<JudgedChoice> judge_bound(const MeasuredBoard& board);

/// Priced from at most `count` of the board's kernels, taken evenly: all others.
std::vector<JudgedChoice> judge_unseen(const MeasuredBoard& board, std::size_t count);

/// Every kernel priced from at most `count` of those whose images have other sides (products other depths, rows other
/// lengths): one side in five is left out at a time.
std::vector<JudgedChoice> judge_unseen_sides(const MeasuredBoard& board, std::size_t count);

/// The board `out` from its data sheet: what the other boards' kernels take beyond their bounds, `count` of them in
/// all, each board's median taken off. `pilots` of the board's own kernels, taken evenly, then give it one factor.
std::vector<JudgedChoice> judge_left_out(std::span<const MeasuredBoard> boards, std::size_t out, std::size_t count,
                                         std::size_t pilots);

double family_right(std::span<const JudgedChoice> rows);
std::vector<Judged> judged_of(std::span<const JudgedChoice> rows);

/// Experts and band learned anew of all boards, from at most `count` kernels of each.
Family learn_boards(std::span<const MeasuredBoard> boards, std::size_t count, int rounds);

/// The band of one of these boards by itself, from as many of its kernels, random sizes or networks', whichever is
/// wider; of few kernels no less than the family's, which is the answer where there are hardly any.
double learn_band(const MeasuredBoard& board, const Family& family, std::size_t count);

}  // namespace rehearse::calibrate
