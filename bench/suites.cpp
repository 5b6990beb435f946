// SPDX-License-Identifier: Apache-2.0
#include "bench/suites.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "bench/suites_embedded.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace rehearse::bench {

namespace {

constexpr std::array table{
    Suite{"deepbench-train", "training convolutions and products of Baidu DeepBench", deepbench_train},
    Suite{"crossover", "convolutions with filters of 1x1 to 21x21: where which algorithm wins", crossover}};

// The cells of every row below the comments and the line of names.
std::vector<std::vector<std::string_view>> rows(std::string_view csv, std::size_t columns) {
    std::vector<std::vector<std::string_view>> found;
    bool names_seen = false;
    for (const std::string_view line : split(csv, '\n')) {
        if (line.empty() || line.starts_with('#')) continue;
        if (names_seen) found.push_back(split(line, ','));
        if (names_seen) require(found.back().size() == columns, "a row of a suite has a cell for each name");
        names_seen = true;
    }
    return found;
}

std::int64_t number(std::string_view cell) { return parse_int(cell, "a suite"); }

constexpr std::array passes{Pass::forward, Pass::backward_data, Pass::backward_weights};

void add_convolutions(std::vector<Problem>& problems) {
    // W, H, C, N, K, R, S, pad_h, pad_w, stride_h, stride_w, application
    for (const auto& row : rows(deepbench_conv_csv(), 12)) {
        std::array<std::int64_t, 11> n{};
        std::ranges::transform(row.begin(), row.end() - 1, n.begin(), number);
        const Window window{.kernel_h = n[5],
                            .kernel_w = n[6],
                            .stride_h = n[9],
                            .stride_w = n[10],
                            .pad_top = n[7],
                            .pad_left = n[8],
                            .pad_bottom = n[7],
                            .pad_right = n[8]};
        const Conv op{.channels = n[2], .height = n[1], .width = n[0], .filters = n[4], .window = window};
        for (const Pass pass : passes) problems.push_back({op, pass, n[3], DataType::f32});
    }
}

Problem dense(std::int64_t batch, std::int64_t from, std::int64_t to, Pass pass) {
    return {MatMul{.m = 1, .n = to, .k = from, .bias = false}, pass, batch, DataType::f32};
}

void add_products(std::vector<Problem>& problems) {
    for (const auto& row : rows(deepbench_gemm_csv(), 6)) {
        const std::int64_t m = number(row[0]);
        const std::int64_t n = number(row[1]);
        const std::int64_t k = number(row[2]);
        require(row[3] != "T" || row[4] != "T", "no pass of a dense layer transposes both");
        if (row[3] == "T") {
            problems.push_back(dense(n, m, k, Pass::backward_data));
        } else if (row[4] == "T") {
            problems.push_back(dense(k, n, m, Pass::backward_weights));
        } else {
            problems.push_back(dense(n, k, m, Pass::forward));
        }
    }
}

}  // namespace

std::span<const Suite> suites() { return table; }

const Suite* find_suite(std::string_view name) {
    const auto* const found = std::ranges::find(table, name, &Suite::name);
    return found == table.end() ? nullptr : found;
}

std::vector<Problem> deepbench_train() {
    std::vector<Problem> problems;
    add_convolutions(problems);
    add_products(problems);
    return problems;
}

std::vector<Problem> crossover() {
    struct Plane {
        std::int64_t channels, size;
    };
    constexpr std::array planes{Plane{8, 56},  Plane{32, 112}, Plane{32, 56},
                                Plane{64, 56}, Plane{128, 28}, Plane{256, 14}};
    std::vector<Problem> problems;
    for (const auto [channels, size] : planes) {
        for (const std::int64_t filter : {1, 3, 5, 7, 9, 11, 15, 21}) {
            const std::int64_t pad = filter / 2;
            const Window window{.kernel_h = filter,
                                .kernel_w = filter,
                                .pad_top = pad,
                                .pad_left = pad,
                                .pad_bottom = pad,
                                .pad_right = pad};
            problems.push_back(
                {Conv{.channels = channels, .height = size, .width = size, .filters = channels, .window = window},
                 Pass::forward, 8, DataType::f32});
        }
    }
    return problems;
}

}  // namespace rehearse::bench
