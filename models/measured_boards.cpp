// SPDX-License-Identifier: Apache-2.0
#include "models/measured_boards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/csv.hpp"
#include "models/price_models.hpp"

namespace rehearse::models {

namespace {

constexpr std::string_view letters = "wngfd";  // of the families, in the order of prices::families()

DeviceSheet sheet_of(const Csv& boards, std::size_t row) {
    DeviceSheet sheet;
    const auto peak = parse_quantity<FlopRate>(boards.text(row, "peak"));
    sheet.bandwidth = parse_quantity<Bandwidth>(boards.text(row, "bandwidth"));
    sheet.processors = boards.whole(row, "processors", 1);
    sheet.element = Bytes{4};
    sheet.peak = prices::sustained_clock(boards.positive(row, "watts"), peak) * peak;
    sheet.board = prices::Board{sheet.peak, sheet.bandwidth, boards.positive(row, "processors"), sheet.element,
                                boards.text(row, "image_blocks") == "several"};
    return sheet;
}

BoardKernel kernel_of(const Csv& table, std::size_t row, const std::string& board) {
    const std::string& cell = table.text(row, board);
    const std::size_t family = letters.find(cell.back());
    if (family == std::string_view::npos) {
        table.fail(row, fmt::format("{} is '{}': it is microseconds and the letter of what ran, one of w n g f d",
                                    board, cell));
    }
    const double time = parse_number(std::string_view{cell}.substr(0, cell.size() - 1), board);
    if (!(time > 0)) table.fail(row, fmt::format("{} is '{}': it is above zero", board, cell));
    const std::int64_t side = table.whole(row, "H", 1);
    const Conv2d conv{table.whole(row, "C", 1), side, side, table.whole(row, "K", 1), Window{3, 3, 1, 1, 1, 1, 1, 1}};
    return {{{conv, Pass::forward, table.whole(row, "N", 1), DataType::f32}, Seconds{time * 1e-6}}, family};
}

}  // namespace

std::vector<MeasuredBoard> measured_boards(std::string_view text, const std::string& origin) {
    const Csv table{text, origin};
    const Csv boards{kernel_file("boards"), "calibrate/neusight/boards.csv"};
    const LearnedExperts learned = learned_experts("lengths", "calibrate/neusight/lengths.csv", "board", "conv2d");
    std::vector<MeasuredBoard> all;
    for (std::size_t b = 0; b < boards.size(); ++b) {
        const std::string name = boards.text(b, "board");
        if (!table.has(name)) continue;
        MeasuredBoard board;
        board.name = name;
        board.like = boards.text(b, "like");
        board.sheet = sheet_of(boards, b);
        board.boost_peak = parse_quantity<FlopRate>(boards.text(b, "peak"));
        board.experts = learned.experts;
        board.band = learned.band;
        board.source = fmt::format("NeuSight (MIT) 6945927, {}, cuDNN 8.9.2", name);
        for (std::size_t row = 0; row < table.size(); ++row) {
            if (!table.text(row, name).empty()) board.kernels.push_back(kernel_of(table, row, name));
        }
        all.push_back(std::move(board));
    }
    const auto empty = [](const MeasuredBoard& board) { return board.kernels.empty(); };
    if (std::ranges::all_of(all, empty)) {
        throw InputError(
            fmt::format("{}: no times of any board; a column is one of v100-pcie, p100-pcie, p4, t4 "
                        "(calibrate/neusight/boards.csv)",
                        origin));
    }
    std::erase_if(all, empty);
    return all;
}

std::vector<MeasuredBoard> measured_boards() {
    return measured_boards(kernel_file("convolutions"), "calibrate/neusight/convolutions.csv");
}

MeasuredKernels shipped_kernels(const MeasuredBoard& board) {
    MeasuredKernels kernels{"conv2d", DataType::f32, board.sheet, {}, board.experts, board.band, board.source};
    for (const std::size_t i : every(board.kernels.size(), shipped_count))
        kernels.samples.push_back(board.kernels[i].sample);
    return kernels;
}

std::shared_ptr<const PriceModel> deepbench_of(const MeasuredBoard& board) {
    DeviceClass device;
    device.name = board.name;
    device.peak[DataType::f32] = {board.boost_peak, "calibrate/neusight/boards.csv"};
    device.memory_bandwidth = {board.sheet.bandwidth, "calibrate/neusight/boards.csv"};
    return transferred_price_model({board.like, board.sheet.processors, 1, 0.05, "by the data sheet"}, device);
}

std::string lengths_table(const std::vector<Expert>& experts, double band) {
    ShippedKernels learned;
    learned.family = "board";
    learned.kernels.kind = "conv2d";
    learned.kernels.experts = experts;
    learned.kernels.band = band;
    return "# SPDX-License-Identifier: Apache-2.0\n"
           "# How far measured convolutions speak for others beyond the library's bound (docs/kernel_prices.md): "
           "learned by\n"
           "# rehearse validate --set neusight --learn FILE, which writes this table.\n" +
           covariance_table({learned});
}

}  // namespace rehearse::models
