// SPDX-License-Identifier: Apache-2.0
#include "picture/cells.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "picture/text.hpp"

namespace rehearse::picture {

namespace {

constexpr double size = 11, small = 9.5, margin = 16, cell_height = 36, gap = 2;

double widest(const std::vector<std::string>& texts, double least, double of_size) {
    for (const std::string& text : texts) least = std::max(least, text_width(text, of_size));
    return least;
}

void write(Picture& picture, Point at, const std::string& text, double of_size, Anchor anchor, Color color) {
    picture.marks.push_back({Text{at, text, of_size, anchor}, color, {}, ""});
}

void draw_cell(Picture& picture, const Box& box, const Cell& cell, const Palette& colors) {
    const Color ground =
        cell.category ? mixed(series_color(colors, *cell.category), colors.background, cell.strength) : colors.grid;
    const Rectangle area{{box.left, box.top}, box.width, box.height, 3};
    picture.marks.push_back({area, ground, {}, cell.title});
    const Color ink = readable_on(ground);
    const double middle = box.left + box.width / 2;
    const double baseline = box.top + box.height / 2 + (cell.second.empty() ? half_height(size) : -2);
    write(picture, {middle, baseline}, cell.text, size, Anchor::middle, ink);
    if (!cell.second.empty()) write(picture, {middle, baseline + small + 3}, cell.second, small, Anchor::middle, ink);
}

double cell_width(const Cells& cells) {
    double width = widest(cells.columns, 40, size);
    for (const auto& row : cells.cells) {
        for (const Cell& cell : row) {
            width = std::max({width, text_width(cell.text, size), text_width(cell.second, small)});
        }
    }
    return width + 14;
}

}  // namespace

Picture cells_chart(const Cells& cells, Theme theme) {
    require(cells.cells.size() == cells.rows.size(), "a row of cells for each name of a row");
    const Palette& colors = palette(theme);
    const double width = cell_width(cells);
    const double names = std::max(widest(cells.rows, 0, size), text_width(cells.row_title, size, true)) + 12;
    const double table = names + width * static_cast<double>(cells.columns.size());
    const double all = std::max({table, text_width(cells.title, 15, true), text_width(cells.subtitle, size)});
    Picture picture = canvas({std::ceil(all + 2 * margin), 0}, colors, cells.title);
    const Box inner{margin, margin, all, 0};
    double y = margin + draw_heading(picture, inner, cells.title, cells.subtitle, colors);
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < cells.categories.size(); ++i) {
        entries.push_back({cells.categories[i], series_color(colors, i), false, false, 0, {}, true});
    }
    y += draw_legend(picture, {margin, y, all, 0}, entries, colors) + 8 + size;
    const double left = margin + names;
    write(picture, {left + (table - names) / 2, y}, cells.column_title, size, Anchor::middle, colors.faint_text);
    y += size + 7;
    write(picture, {left - 12, y}, cells.row_title, size, Anchor::end, colors.faint_text);
    for (std::size_t j = 0; j < cells.columns.size(); ++j) {
        const double x = left + (static_cast<double>(j) + 0.5) * width;
        write(picture, {x, y}, cells.columns[j], size, Anchor::middle, colors.text);
    }
    y += 8;
    for (std::size_t i = 0; i < cells.rows.size(); ++i, y += cell_height) {
        write(picture, {left - 12, y + cell_height / 2 + half_height(size)}, cells.rows[i], size, Anchor::end,
              colors.text);
        for (std::size_t j = 0; j < cells.cells[i].size(); ++j) {
            const double x = left + static_cast<double>(j) * width;
            draw_cell(picture, {x + gap / 2, y + gap / 2, width - gap, cell_height - gap}, cells.cells[i][j], colors);
        }
    }
    picture.height = std::ceil(y + margin);
    std::get<Rectangle>(picture.marks.front().shape).height = picture.height;
    return picture;
}

}  // namespace rehearse::picture
