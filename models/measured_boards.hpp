// SPDX-License-Identifier: Apache-2.0
// Boards whose kernels were measured beside the names of the algorithms that ran: the tables of calibrate/neusight/,
// built in, and tables of users in the same form.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "prices/measured_board.hpp"

namespace rehearse::models {

/// Every board with the convolutions that are built in.
std::vector<MeasuredBoard> measured_boards();
/// The same boards with the convolutions of a table in the form of calibrate/neusight/convolutions.csv. InputError with
/// file and line for sizes that are no problem, times without the letter of a family, and a table without any board.
std::vector<MeasuredBoard> measured_boards(std::string_view text, const std::string& origin);

/// What the shipped prices of a board are conditioned on: every so manieth of its kernels, at most 400.
inline constexpr std::size_t shipped_count = 400;
MeasuredKernels shipped_kernels(const MeasuredBoard& board);

/// DeepBench's kernels on the data sheet of the board: of its own chip, or of the one that boards.csv names.
std::shared_ptr<const PriceModel> deepbench_of(const MeasuredBoard& board);

/// lengths.csv, of experts learned on boards.
std::string lengths_table(const std::vector<Expert>& experts, double band);

}  // namespace rehearse::models
