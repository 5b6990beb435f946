// SPDX-License-Identifier: Apache-2.0
#include "models/kernel_samples.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace rehearse::models {

namespace {

Pass pass_of(const Csv& table, std::size_t row) {
    const std::string& name = table.text(row, "direction");
    if (name == "fwd") return Pass::forward;
    if (name == "bwd_data") return Pass::backward_data;
    if (name == "bwd_weights") return Pass::backward_weights;
    table.fail(row, fmt::format("direction is '{}', it is one of fwd, bwd_data, bwd_weights", name));
}

bool backward_total(const Csv& table, std::size_t row) {
    return table.has("cell") && table.text(row, "direction") == "bwd_total";
}

Problem conv_of(const Csv& table, std::size_t row, DataType type) {
    const auto size = [&](std::string_view name, std::int64_t least) { return table.whole(row, name, least); };
    const std::int64_t pad_h = size("pad_h", 0), pad_w = size("pad_w", 0);
    Window window{size("R", 1), size("S", 1), size("stride_h", 1), size("stride_w", 1), pad_h, pad_w, pad_h, pad_w};
    const Conv conv{size("C", 1), size("H", 1), size("W", 1), size("K", 1), window};
    if (conv.height + 2 * pad_h < window.kernel_h || conv.width + 2 * pad_w < window.kernel_w) {
        table.fail(row, fmt::format("a window of {}x{} does not fit into {}x{} with padding {} and {}", window.kernel_h,
                                    window.kernel_w, conv.height, conv.width, pad_h, pad_w));
    }
    return {conv, pass_of(table, row), size("N", 1), type};
}

Problem product_of(const Csv& table, std::size_t row, DataType type) {
    const std::int64_t m = table.whole(row, "M", 1), n = table.whole(row, "N", 1), k = table.whole(row, "K", 1);
    const std::string transposed = table.text(row, "a_t") + table.text(row, "b_t");
    if (transposed == "NN") return {MatMul{1, m, k, false}, Pass::forward, n, type};
    if (transposed == "TN") return {MatMul{1, k, m, false}, Pass::backward_data, n, type};
    if (transposed == "NT") return {MatMul{1, m, n, false}, Pass::backward_weights, k, type};
    table.fail(row, fmt::format("a_t and b_t are '{}' and '{}', they are N,N or T,N or N,T", table.text(row, "a_t"),
                                table.text(row, "b_t")));
}

Problem cells_of(const Csv& table, std::size_t row, DataType type) {
    const std::string& cell = table.text(row, "cell");
    if (cell != "vanilla" && cell != "gru" && cell != "lstm")
        table.fail(row, fmt::format("cell is '{}', it is one of vanilla, gru, lstm", cell));
    const std::int64_t hidden = table.whole(row, "hidden", 1);
    Recurrent op{cell == "vanilla" ? "rnn" : cell, table.whole(row, "timesteps", 1), hidden, hidden};
    op.reset_after = cell == "gru";  // as cuDNN has it
    const Pass pass = backward_total(table, row) ? Pass::backward_data : pass_of(table, row);
    return {std::move(op), pass, table.whole(row, "N", 1), type};
}

std::string text_or(const Csv& table, std::size_t row, std::string_view column, std::string otherwise) {
    return table.has(column) ? table.text(row, column) : std::move(otherwise);
}

}  // namespace

Problem problem_of(const Csv& table, std::size_t row, DataType type) {
    if (table.has("cell")) return cells_of(table, row, type);
    return table.has("a_t") ? product_of(table, row, type) : conv_of(table, row, type);
}

std::vector<SampleRow> read_samples(std::string_view text, const std::string& origin) {
    const Csv table{text, origin};
    std::vector<SampleRow> rows;
    for (std::size_t i = 0; i < table.size(); ++i) {
        SampleRow row;
        row.device = table.text(i, "device");
        row.precision = table.text(i, "precision");
        row.snapshot = text_or(table, i, "snapshot", "da81ba7");
        row.training = text_or(table, i, "mode", "train") == "train";
        const DataType type = row.precision == "fp16_tc" ? DataType::f16 : DataType::f32;
        row.sample = {problem_of(table, i, type), Seconds{table.positive(i, "time_us") * 1e-6}};
        row.pass = table.has("a_t")           ? "all"
                   : backward_total(table, i) ? "backward"
                                              : std::string{to_string(row.sample.problem.pass)};
        rows.push_back(std::move(row));
    }
    if (rows.empty()) throw InputError(fmt::format("{}: it has a header and no rows", origin));
    return rows;
}

}  // namespace rehearse::models
