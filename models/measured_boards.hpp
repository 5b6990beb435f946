// SPDX-License-Identifier: Apache-2.0
// Boards whose kernels were measured beside the names of the algorithms that ran: the tables of calibrate/neusight/,
// built in, and tables of users in the same form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/machine.hpp"
#include "prices/measured_board.hpp"

namespace rehearse::models {

/// Events around a call leave the device some microseconds of the host's part, in which the kernel already runs.
inline constexpr Seconds hidden_start{15e-6};

/// Every board and kind with the kernels that are built in, read once.
const std::vector<MeasuredBoard>& measured_boards();
/// The same boards with the kernels of a table in the form of one of calibrate/neusight/: convolutions.csv,
/// products.csv (columns `op`, `depth`) or vectors.csv (`op`, `cols`; of it softmax and layer normalization from a
/// megabyte). InputError with file and line for sizes that are no problem, times without the letter of a family, and a
/// table without any board.
std::vector<MeasuredBoard> measured_boards(std::string_view text, const std::string& origin);

/// What the shipped prices of a board are conditioned on: of its convolutions every so manieth, at most so many, since
/// the vote for their family factors one matrix of all that are kept; of other kernels all. A price itself goes by
/// those most like the problem (prices/price_model.cpp).
inline constexpr std::size_t shipped_convolutions = 1500;
inline std::size_t shipped_count(std::string_view kind) { return kind == "conv2d" ? shipped_convolutions : SIZE_MAX; }
MeasuredKernels shipped_kernels(const MeasuredBoard& board);

/// What the data sheet of a board says beside peak and bandwidth.
struct BoardSheet {
    std::int64_t processors = 1;
    double watts = 0, nanometres = 0;
    bool small_image_blocks = false;  // as prices::Board
    prices::Reads reads = prices::Reads::contiguous;
    prices::Library library = prices::Library::cuda;
    prices::BatchTiles batch_tiles = prices::BatchTiles::any;
};
/// Of "108 processors, 400 W, 7 nm"; nothing of other text.
std::optional<BoardSheet> board_sheet(std::string_view text);
/// Convolutions of a board that nobody measured: what those of the measured boards took beyond their bounds, beyond its
/// own, with the error by which boards differ. InputError where the device has no peak of f32 or no bandwidth.
MeasuredKernels convolutions_by_sheet(const BoardSheet& board, const DeviceClass& device);

/// DeepBench's kernels on the data sheet of the board: of its own chip, or of the one that boards.csv names.
std::shared_ptr<const PriceModel> deepbench_of(const MeasuredBoard& board);

/// lengths.csv, of experts learned on boards.
struct LearnedKind {
    std::string kind;
    std::vector<Expert> experts;
    double band = 1;
};
std::string lengths_table(const std::vector<LearnedKind>& kinds);

/// bands.csv, of boards and kinds.
struct LearnedBand {
    std::string board, kind;
    double band = 1;
};
std::string bands_table(const std::vector<LearnedBand>& bands);

}  // namespace rehearse::models
