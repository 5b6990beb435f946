// SPDX-License-Identifier: Apache-2.0
#include "models/elementwise_rows.hpp"

#include <array>
#include <map>
#include <optional>

#include "models/csv.hpp"
#include "models/measured_boards.hpp"
#include "models/price_models.hpp"

namespace rehearse::models {

namespace {

constexpr std::array boards{"v100-pcie", "p100-pcie", "p4", "t4", "l4", "mi100", "mi210"};
constexpr std::int64_t megabyte = 1'000'000;

std::optional<Op> operator_of(const std::string& name, std::int64_t columns) {
    const std::map<std::string, Nonlinearity, std::less<>> functions{
        {"relu", Nonlinearity::relu}, {"gelu", Nonlinearity::gelu}, {"tanh", Nonlinearity::tanh}};
    if (const auto found = functions.find(name); found != functions.end())
        return Op{Activation{found->second, {columns}}};
    if (name == "add") return Op{Add{{columns}, 2}};
    if (name == "mul" || name == "div") return Op{Elementwise{name, {columns}, {{columns}, {columns}}}};
    return std::nullopt;
}

}  // namespace

std::vector<ElementwiseRows> elementwise_rows(std::string_view text, const std::string& origin) {
    const Csv table{text, origin};
    std::vector<ElementwiseRows> all;
    for (const char* board : boards) {
        if (!table.has(board)) continue;
        ElementwiseRows of_board{board, {}};
        for (std::size_t row = 0; row < table.size(); ++row) {
            if (table.text(row, board).empty()) continue;
            const std::int64_t rows = table.whole(row, "rows", 1), columns = table.whole(row, "cols", 1);
            const auto op = operator_of(table.text(row, "op"), columns);
            if (!op || 4 * rows * columns < megabyte) continue;
            const Seconds time = Seconds{table.positive(row, board) * 1e-6} + hidden_start;
            of_board.samples.push_back({{*op, Pass::forward, rows, DataType::f32}, time});
        }
        if (!of_board.samples.empty()) all.push_back(std::move(of_board));
    }
    return all;
}

std::vector<ElementwiseRows> elementwise_rows() {
    return elementwise_rows(kernel_file("vectors"), "calibrate/neusight/vectors.csv");
}

}  // namespace rehearse::models
