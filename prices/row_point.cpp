// SPDX-License-Identifier: Apache-2.0
// Softmax and layer normalization of rows: the bound reads each value once and writes it once.
#include <cmath>

#include "core/error.hpp"
#include "prices/library_point.hpp"

namespace rehearse {

namespace {

struct Rows {
    double rows = 1, columns = 1;
};

std::optional<Rows> rows_of(const Problem& problem) {
    if (problem.pass != Pass::forward) return std::nullopt;
    const auto batch = static_cast<double>(problem.batch);
    if (const auto* softmax = std::get_if<Softmax>(&problem.op))
        return Rows{batch, static_cast<double>(softmax->classes)};
    if (const auto* norm = std::get_if<LayerNorm>(&problem.op))
        return Rows{batch * static_cast<double>(norm->rows), static_cast<double>(norm->features)};
    return std::nullopt;
}

}  // namespace

std::optional<LibraryPoint> row_point(const Problem& problem, const prices::Board& board) {
    const auto rows = rows_of(problem);
    if (!rows) return std::nullopt;
    const Bytes bytes = 2 * rows->rows * rows->columns * board.element;
    // Up to 1024 values a row a warp keeps them in registers and reads once; longer ones are a block's, which reads
    // them again unless they fit into its shared memory. A block of 1024 threads with four values each has 4096.
    const double long_row = rows->columns > 1024 ? 2 : 0;
    const double fits = std::log2(std::ceil(rows->columns / 4096));
    const double waste = std::log(std::ceil(rows->columns / 1024) * 1024 / rows->columns);
    const double unaligned = std::fmod(rows->columns, 4) == 0 ? 0 : 1;
    const double waves = rows->rows / (2 * board.processors);
    return LibraryPoint{{{std::log2(rows->columns), std::log2(rows->rows), std::log2(bytes.value), long_row, fits,
                          rows->columns > 1024 ? 2 * waste : 0, unaligned, std::log(std::ceil(waves) / waves)},
                         0},
                        bytes / board.bandwidth};
}

std::size_t library_features(std::string_view kind) {
    if (kind == "conv2d") return 13;
    if (kind == "matmul" || kind == "groupedmatmul") return 17;
    require(kind == "softmax" || kind == "layernorm", "boards have no kernels of other kinds");
    return 8;
}

}  // namespace rehearse
