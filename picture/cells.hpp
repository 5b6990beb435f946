// SPDX-License-Identifier: Apache-2.0
// A table whose cells are coloured by a category: where which of several ways wins.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "picture/chart.hpp"

namespace rehearse::picture {

struct Cell {
    std::optional<std::size_t> category;  // empty: nothing was measured here
    double strength = 1;                  // 0 to 1: how much of the category's colour is seen
    std::string text, second;             // one line, and a smaller one below it
    std::string title;
};

struct Cells {
    std::string title, subtitle;
    std::string row_title, column_title;
    std::vector<std::string> rows, columns, categories;
    std::vector<std::vector<Cell>> cells;  // a row, a column
};

/// As large as its texts need.
Picture cells_chart(const Cells& cells, Theme theme = Theme::light);

}  // namespace rehearse::picture
