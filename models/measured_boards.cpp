// SPDX-License-Identifier: Apache-2.0
#include "models/measured_boards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/csv.hpp"
#include "models/price_models.hpp"
#include "prices/library_point.hpp"
#include "prices/product_bound.hpp"

namespace rehearse::models {

namespace {

constexpr std::string_view letters = "wngfd";  // of the families, in the order of prices::families()

// Peak of f32 at the boost clock.
DeviceSheet sheet_of(FlopRate peak, Bandwidth bandwidth, const BoardSheet& board) {
    DeviceSheet sheet;
    const double energy = prices::energy_of(board.nanometres);
    const double sustained = prices::sustained_clock(board.watts, peak, energy);
    sheet.bandwidth = bandwidth;
    sheet.processors = board.processors;
    sheet.element = Bytes{4};
    sheet.peak = sustained * peak;
    sheet.board = prices::Board{sheet.peak,
                                sheet.bandwidth,
                                static_cast<double>(board.processors),
                                sheet.element,
                                board.small_image_blocks,
                                1 / sustained,
                                prices::loaded_clock(board.watts, peak, energy) / sustained,
                                board.reads,
                                board.library,
                                board.batch_tiles};
    return sheet;
}

prices::Reads reads_of(std::string_view word) {
    if (word == "contiguous") return prices::Reads::contiguous;
    require(word == "strided" || word == "strided-odd", "boards.csv says how dense layers read");
    return word == "strided" ? prices::Reads::strided : prices::Reads::strided_odd;
}

prices::Library library_of(std::string_view word) {
    require(word == "cuda" || word == "rocm", "boards.csv says whose libraries a board runs");
    return word == "rocm" ? prices::Library::rocm : prices::Library::cuda;
}

prices::BatchTiles batch_tiles_of(std::string_view word) {
    using prices::BatchTiles;
    constexpr std::pair<std::string_view, BatchTiles> words[] = {{"any", BatchTiles::any},
                                                                 {"pascal", BatchTiles::pascal},
                                                                 {"volta", BatchTiles::volta},
                                                                 {"turing", BatchTiles::turing},
                                                                 {"ampere", BatchTiles::ampere}};
    const auto* found = std::ranges::find_if(words, [&](const auto& each) { return each.first == word; });
    require(found != std::end(words), "boards.csv says which tiles batches of products have");
    return found->second;
}

DeviceSheet sheet_of(const Csv& boards, std::size_t row) {
    return sheet_of(
        parse_quantity<FlopRate>(boards.text(row, "peak")), parse_quantity<Bandwidth>(boards.text(row, "bandwidth")),
        {boards.whole(row, "processors", 1), boards.positive(row, "watts"), boards.positive(row, "nanometres"),
         boards.text(row, "image_blocks") == "several", reads_of(boards.text(row, "dense")),
         library_of(boards.text(row, "library")), batch_tiles_of(boards.text(row, "batches"))});
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
    const Conv conv{table.whole(row, "C", 1), side, side, table.whole(row, "K", 1), Window{3, 3, 1, 1, 1, 1, 1, 1}};
    return {{{conv, Pass::forward, table.whole(row, "N", 1), DataType::f32}, Seconds{time * 1e-6}}, family};
}

bool a_megabyte(const Csv& table, std::size_t row) {
    return 4 * table.whole(row, "rows", 1) * table.whole(row, "cols", 1) >= 1'000'000;
}

bool dense_rows(const Csv& table, std::size_t row) {
    return table.text(row, "op") == "linear" && table.whole(row, "rows", 1) >= prices::fewest_rows;
}

Seconds time_of(const Csv& table, std::size_t row, const std::string& board) {
    return Seconds{table.positive(row, board) * 1e-6};
}

BoardKernel product_of(const Csv& table, std::size_t row, const std::string& board, bool batched) {
    const std::int64_t rows = table.whole(row, "rows", 1), k = table.whole(row, "depth", 1);
    const std::int64_t n = table.whole(row, "cols", 1), count = table.whole(row, "batch", 1);
    BoardKernel kernel;
    kernel.sample.time = time_of(table, row, board);
    kernel.network = table.text(row, "part") == "network";
    if (batched) {
        kernel.sample.problem = {GroupedMatMul{.experts = count, .rows = rows, .n = n, .k = k, .bias = false},
                                 Pass::forward, 1, DataType::f32};
    } else {
        kernel.sample.problem = {MatMul{.m = 1, .n = n, .k = k}, Pass::forward, rows, DataType::f32};
    }
    return kernel;
}

BoardKernel rows_of(const Csv& table, std::size_t row, const std::string& board, bool norm) {
    const std::int64_t rows = table.whole(row, "rows", 1), columns = table.whole(row, "cols", 1);
    const Op op = norm ? Op{LayerNorm{1, columns}} : Op{Softmax{columns}};
    return {{{op, Pass::forward, rows, DataType::f32}, time_of(table, row, board) + hidden_start}};
}

std::optional<double> band_of(const Csv& bands, std::string_view board, std::string_view kind) {
    for (std::size_t row = 0; row < bands.size(); ++row) {
        if (bands.text(row, "board") == board && bands.text(row, "kind") == kind) return bands.positive(row, "band");
    }
    return std::nullopt;
}

// What a row of a table is of, in a table whose header says which operators it has.
struct RowReader {
    std::string_view kind;
    bool (*takes)(const Csv&, std::size_t row);
    BoardKernel (*kernel)(const Csv&, std::size_t row, const std::string& board);
};

std::vector<RowReader> row_readers_of(const Csv& table) {
    if (table.has("depth")) {
        return {{"matmul", [](const Csv& t, std::size_t row) { return dense_rows(t, row); },
                 [](const Csv& t, std::size_t row, const std::string& b) { return product_of(t, row, b, false); }},
                {"groupedmatmul", [](const Csv& t, std::size_t row) { return t.text(row, "op") == "bmm"; },
                 [](const Csv& t, std::size_t row, const std::string& b) { return product_of(t, row, b, true); }}};
    }
    if (table.has("cols")) {
        // A megabyte: below, the host's part is most of what was measured.
        return {
            {"softmax",
             [](const Csv& t, std::size_t row) { return t.text(row, "op") == "softmax" && a_megabyte(t, row); },
             [](const Csv& t, std::size_t row, const std::string& b) { return rows_of(t, row, b, false); }},
            {"layernorm", [](const Csv& t, std::size_t row) { return t.text(row, "op") == "ln" && a_megabyte(t, row); },
             [](const Csv& t, std::size_t row, const std::string& b) { return rows_of(t, row, b, true); }}};
    }
    return {{"conv2d", [](const Csv&, std::size_t) { return true; }, kernel_of}};
}

const LearnedExperts& learned_of(std::string_view kind) {
    static const std::map<std::string, LearnedExperts, std::less<>> all = [] {
        std::map<std::string, LearnedExperts, std::less<>> read;
        for (const std::string each : {"matmul", "groupedmatmul", "softmax", "layernorm", "conv2d"})
            read.emplace(each, learned_experts("lengths", "calibrate/neusight/lengths.csv", "board", each));
        return read;
    }();
    return all.find(kind)->second;
}

}  // namespace

std::vector<MeasuredBoard> measured_boards(std::string_view text, const std::string& origin) {
    const Csv table{text, origin};
    static const Csv boards{kernel_file("boards"), "calibrate/neusight/boards.csv"};
    static const Csv bands{kernel_file("bands"), "calibrate/neusight/bands.csv"};
    std::vector<MeasuredBoard> all;
    for (const RowReader& reader : row_readers_of(table)) {
        const LearnedExperts& learned = learned_of(reader.kind);
        for (std::size_t b = 0; b < boards.size(); ++b) {
            const std::string name = boards.text(b, "board");
            if (!table.has(name)) continue;
            MeasuredBoard board;
            board.name = name;
            board.kind = reader.kind;
            board.like = boards.text(b, "like");
            board.sheet = sheet_of(boards, b);
            board.boost_peak = parse_quantity<FlopRate>(boards.text(b, "peak"));
            board.experts = learned.experts;
            board.kind_band = learned.band;
            board.band = band_of(bands, name, board.kind).value_or(learned.band);
            board.source = fmt::format("NeuSight (MIT) 6945927, {}, {}", name,
                                       reader.kind == "conv2d" ? "cuDNN 8.9.2" : "CUDA 12.1");
            for (std::size_t row = 0; row < table.size(); ++row) {
                if (!table.text(row, name).empty() && reader.takes(table, row))
                    board.kernels.push_back(reader.kernel(table, row, name));
            }
            all.push_back(std::move(board));
        }
    }
    const auto empty = [](const MeasuredBoard& board) { return board.kernels.empty(); };
    if (std::ranges::all_of(all, empty)) {
        std::string names;
        for (std::size_t b = 0; b < boards.size(); ++b) names += (b == 0 ? "" : ", ") + boards.text(b, "board");
        throw InputError(fmt::format("{}: no times of any board; a column is one of {} (calibrate/neusight/boards.csv)",
                                     origin, names));
    }
    std::erase_if(all, empty);
    return all;
}

const std::vector<MeasuredBoard>& measured_boards() {
    static const std::vector<MeasuredBoard> built_in = [] {
        std::vector<MeasuredBoard> all;
        for (const std::string_view table : {"convolutions", "products", "vectors"}) {
            for (MeasuredBoard& board :
                 measured_boards(kernel_file(table), fmt::format("calibrate/neusight/{}.csv", table)))
                all.push_back(std::move(board));
        }
        return all;
    }();
    return built_in;
}

MeasuredKernels shipped_kernels(const MeasuredBoard& board) {
    MeasuredKernels kernels{board.kind, DataType::f32, board.sheet, {}, board.experts, board.band, board.source};
    for (const std::size_t i : every(board.kernels.size(), shipped_count(board.kind))) {
        kernels.samples.push_back(board.kernels[i].sample);
        if (board.kind == "conv2d") kernels.ran.push_back(ran(board.kernels[i], board.sheet));
    }
    return kernels;
}

namespace {

// Of "400 W" 400, where the number has at most so many digits; nothing of any other text.
std::optional<std::int64_t> number_of(std::string_view text, std::string_view unit, std::size_t most_digits) {
    if (!text.ends_with(unit)) return std::nullopt;
    text.remove_suffix(unit.size());
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    return digits && text.size() <= most_digits ? std::optional{parse_int(text, unit)} : std::nullopt;
}

}  // namespace

std::optional<BoardSheet> board_sheet(std::string_view text) {
    const std::vector<std::string_view> parts = split(text, ',');
    if (parts.size() != 3 || !parts[1].starts_with(' ') || !parts[2].starts_with(' ')) return std::nullopt;
    const auto processors = number_of(parts[0], " processors", 5);
    const auto watts = number_of(parts[1].substr(1), " W", 4), nanometres = number_of(parts[2].substr(1), " nm", 3);
    if (processors.value_or(0) < 1 || watts.value_or(0) < 1 || nanometres.value_or(0) < 1) return std::nullopt;
    return BoardSheet{*processors, static_cast<double>(*watts), static_cast<double>(*nanometres), false};
}

MeasuredKernels convolutions_by_sheet(const BoardSheet& board, const DeviceClass& device) {
    constexpr std::size_t pooled = 600;
    const auto peak = device.peak.find(DataType::f32);
    if (peak == device.peak.end() || !(device.memory_bandwidth.value.value > 0))
        throw InputError("prices by the data sheet need the device's peak of f32 and its memory_bandwidth");
    const DeviceSheet here = sheet_of(peak->second.value, device.memory_bandwidth.value, board);
    static const std::vector<MeasuredBoard> boards =
        measured_boards(kernel_file("convolutions"), "calibrate/neusight/convolutions.csv");
    MeasuredKernels all{"conv2d",
                        DataType::f32,
                        here,
                        {},
                        boards.front().experts,
                        boards.front().kind_band,
                        fmt::format("NeuSight (MIT) 6945927, four boards, for {} by its data sheet", device.name)};
    all.transferred = true;
    for (const MeasuredBoard& known : boards) {
        for (const std::size_t i : every(known.kernels.size(), pooled / boards.size())) {
            KernelSample sample = known.kernels[i].sample;
            const auto there = library_point(sample.problem, *known.sheet.board);
            const auto point = library_point(sample.problem, *here.board);
            require(there && point, "a board's convolution has a bound");
            all.ran.push_back({there->point, known.kernels[i].family});
            sample.time = point->bound * (sample.time / there->bound);
            all.samples.push_back(std::move(sample));
        }
    }
    for (Expert& expert : all.experts)
        expert.covariance.noise = std::hypot(expert.covariance.noise, prices::between_boards);
    return all;
}

std::shared_ptr<const PriceModel> deepbench_of(const MeasuredBoard& board) {
    DeviceClass device;
    device.name = board.name;
    device.peak[DataType::f32] = {board.boost_peak, "calibrate/neusight/boards.csv"};
    device.memory_bandwidth = {board.sheet.bandwidth, "calibrate/neusight/boards.csv"};
    const Likeness likeness{
        .like = board.like, .processors = board.sheet.processors, .error = 0.05, .source = "by the data sheet"};
    return transferred_price_model(likeness, device);
}

std::string lengths_table(const std::vector<LearnedKind>& kinds) {
    std::vector<ShippedKernels> all;
    for (const LearnedKind& kind : kinds) {
        ShippedKernels learned;
        learned.family = "board";
        learned.kernels.kind = kind.kind;
        learned.kernels.experts = kind.experts;
        learned.kernels.band = kind.band;
        all.push_back(std::move(learned));
    }
    return "# SPDX-License-Identifier: Apache-2.0\n"
           "# How far measured kernels speak for others beyond the library's bound (docs/kernel_prices.md): "
           "learned by\n"
           "# rehearse validate --set neusight --learn FILE, which writes this table.\n" +
           covariance_table(all);
}

std::string bands_table(const std::vector<LearnedBand>& bands) {
    std::string text =
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# How wide the bands of prices from a board's own kernels must be to hold 90 % of its kernels left out, in "
        "units\n"
        "# of what lengths.csv says: written beside it by rehearse validate --set neusight --learn FILE.\n"
        "board,kind,band\n";
    for (const LearnedBand& row : bands) text += fmt::format("{},{},{:.3g}\n", row.board, row.kind, row.band);
    return text;
}

}  // namespace rehearse::models
