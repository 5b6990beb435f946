// SPDX-License-Identifier: Apache-2.0
// A document set on pages of A4: rules of tables as booktabs has them, no table row broken, no heading alone.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "picture/palette.hpp"
#include "picture/text.hpp"
#include "report/document/document.hpp"

namespace rehearse::report {

namespace {

using picture::Anchor;
using picture::Color;
using picture::Picture;

// A4 in points of 1/96 inch.
constexpr double width = 793.7, height = 1122.5, left = 84, right = width - 84, top = 84, bottom = height - 84;
constexpr double body = 11, leading = 16.5, small = 9.5, gap = 9;
constexpr Color ink{28, 28, 30}, faint{105, 108, 114}, rule{28, 28, 30}, hair{196, 199, 204}, ground{244, 245, 247};

// Breaks between words; a word that is longer than the line breaks where it must.
std::vector<std::string> wrapped(const std::string& text, double size, double room, bool bold = false) {
    std::vector<std::string> lines;
    std::string line;
    const auto fits = [&](const std::string& t) { return picture::text_width(t, size, bold) <= room; };
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t end = text.find(' ', at);
        if (end == std::string::npos) end = text.size();
        std::string word = text.substr(at, end - at);
        at = end + 1;
        while (!fits(word) && word.size() > 1) {
            std::size_t cut = word.size();
            while (cut > 1 && !fits(word.substr(0, cut))) --cut;
            while (cut > 1 && (word[cut] & 0xC0) == 0x80) --cut;  // never inside a letter of UTF-8
            if (!line.empty()) lines.push_back(std::move(line));
            lines.push_back(word.substr(0, cut));
            line.clear();
            word = word.substr(cut);
        }
        const std::string longer = line.empty() ? word : line + " " + word;
        if (fits(longer)) {
            line = longer;
        } else {
            lines.push_back(std::move(line));
            line = std::move(word);
        }
    }
    if (!line.empty()) lines.push_back(std::move(line));
    return lines;
}

constexpr double caption_step = 13.5;

// Beside "Table 1", in bold.
double indent_of(const std::string& kind) { return picture::text_width(kind + "  ", small, true); }

std::vector<std::string> caption_lines(const std::string& kind, const std::string& words) {
    return wrapped(words, small, right - left - indent_of(kind));
}

class Setter {
public:
    explicit Setter(const Document& document) : document_(document) { turn(); }

    std::vector<Picture> set() {
        title();
        int number = 0;
        for (const Section& section : document_.sections) {
            heading(fmt::format("{}  {}", ++number, section.title), section);
            for (const Block& block : section.blocks) std::visit([&](const auto& each) { add(each); }, block);
        }
        foot();
        return std::move(pages_);
    }

private:
    // How a table is set: a size of letters, and of each column the width without the gaps.
    struct Grid {
        double size = small;
        std::vector<double> widths;
        std::vector<std::vector<std::vector<std::string>>> cells;  // rows, columns, lines
        std::vector<std::vector<std::string>> titles;              // columns, lines
        double step() const { return size * 1.42; }
    };

    Picture& page() { return pages_.back(); }
    void turn() {
        Picture page{width, height, document_.title, {}};
        page.marks.push_back({picture::Rectangle{{0, 0}, width, height}, Color{255, 255, 255}, {}, ""});
        pages_.push_back(std::move(page));
        y_ = top;
    }
    void need(double room) {
        if (y_ + room > bottom && y_ > top) turn();
    }
    void text(double x, double y, std::string words, double size, Color color = ink, bool bold = false,
              Anchor anchor = Anchor::start) {
        page().marks.push_back({picture::Text{{x, y}, std::move(words), size, anchor, 0, bold}, color, {}, ""});
    }
    void line(double from, double to, double y, double thick, Color color = rule) {
        page().marks.push_back({picture::Path{{{from, y}, {to, y}}}, {}, picture::Stroke{color, thick, {}}, ""});
    }
    void lines(const std::vector<std::string>& all, double size, double step, Color color, bool bold = false) {
        for (const std::string& each : all) {
            need(step);
            text(left, y_ + size, each, size, color, bold);
            y_ += step;
        }
    }

    void title() {
        lines(wrapped(document_.title, 22, right - left, true), 22, 30, ink, true);
        y_ += 2;
        lines(wrapped(document_.subtitle, body, right - left), body, leading, faint);
        y_ += 8;
        line(left, right, y_, 1.2);
        y_ += 14;
        if (document_.abstract.empty()) return;
        lines(wrapped(document_.abstract, body, right - left), body, leading, ink);
        y_ += gap;
    }
    // What of a block must stand on the page of its heading.
    static double least_of(const Block& block) {
        if (const auto* figure = std::get_if<Figure>(&block)) return height_of(*figure);
        if (const auto* table = std::get_if<Table>(&block)) return least_of(*table, grid_of(*table));
        return 3 * leading;
    }
    static double height_of(const Figure& figure) {
        const auto words = caption_lines("Figure 99", figure.caption).size();
        return figure.size.height * (right - left) / figure.size.width + 4 + caption_step * static_cast<double>(words);
    }
    // A table of less than half a page stays whole; of a longer one, a few rows stand below its head.
    static double least_of(const Table& table, const Grid& grid) {
        double tall = 70 + 3 * grid.step() + (table.note.empty() ? 0 : 26);
        for (const auto& row : grid.cells) tall += grid.step() * static_cast<double>(tallest(row)) + 1.5;
        return tall < (bottom - top) / 2 ? tall : 70 + 6 * grid.step();
    }
    void heading(const std::string& words, const Section& section) {
        need(40 + (section.blocks.empty() ? 0 : least_of(section.blocks.front())));
        y_ += y_ > top ? 12 : 0;
        text(left, y_ + 14, words, 14, ink, true);
        y_ += 26;
    }
    void add(const Paragraph& paragraph) {
        lines(wrapped(paragraph.text, body, right - left), body, leading, ink);
        y_ += gap;
    }
    void add(const Command& command) {
        const auto all = wrapped(command.text, 10, right - left - 24);
        const double box = 14 + 15 * static_cast<double>(all.size());
        need(box + gap);
        page().marks.push_back({picture::Rectangle{{left, y_}, right - left, box, 3}, ground, {}, ""});
        double baseline = y_ + 17;
        for (const std::string& each : all) text(left + 12, baseline, each, 10), baseline += 15;
        y_ += box + gap;
    }
    // "Table 1" in bold, the caption after it.
    void caption(const std::string& kind, const std::string& words) {
        const double indent = indent_of(kind);
        const auto all = caption_lines(kind, words);
        for (std::size_t i = 0; i < all.size(); ++i) {
            if (i == 0) text(left, y_ + small, kind, small, ink, true);
            text(left + indent, y_ + small, all[i], small, faint);
            y_ += caption_step;
        }
    }
    void add(const Figure& figure) {
        const double tall = figure.size.height * (right - left) / figure.size.width;
        need(height_of(figure));
        picture::Palette colors = picture::palette(picture::Theme::light);
        colors.background = {255, 255, 255};
        picture::draw(page(), {left, y_, right - left, tall}, figure.chart, colors);
        y_ += tall + 4;
        caption(fmt::format("Figure {}", ++figures_), figure.caption);
        y_ += 14;
    }

    static constexpr double between = 14;

    // The whole text of a column in one line, or its longest word.
    static double widest(const Table& table, std::size_t c, double size, bool in_words) {
        const Column& column = table.columns[c];
        double most = 0;
        const auto take = [&](const std::string& text, bool bold) {
            std::size_t at = 0;
            while (at <= text.size()) {
                const std::size_t end = in_words ? std::min(text.find(' ', at), text.size()) : text.size();
                most = std::max(most, picture::text_width(text.substr(at, end - at), size, bold));
                at = end + 1;
            }
        };
        take(column.title, true);
        if (shows_unit(column)) take("(" + column.unit + ")", false);
        for (const auto& row : table.rows) take(row[c].text, false);
        return most;
    }
    // Figures stay in one line. Columns of words share what these leave, none narrower than its longest word; where
    // that is too little, letters get smaller.
    static Grid grid_of(const Table& table) {
        const std::size_t n = table.columns.size();
        const double room = right - left - between * static_cast<double>(n - 1);
        Grid grid;
        for (;; grid.size -= 0.5) {
            std::vector<double> least(n), most(n);
            double needed = 0, wanted = 0;
            for (std::size_t c = 0; c < n; ++c) {
                most[c] = widest(table, c, grid.size, false);
                least[c] = std::min(most[c], widest(table, c, grid.size, !table.columns[c].figures));
                needed += least[c];
                wanted += most[c] - least[c];
            }
            if (needed > room && grid.size > 6) continue;
            const double share = wanted > 0 ? std::clamp((room - needed) / wanted, 0.0, 1.0) : 0;
            grid.widths.resize(n);
            for (std::size_t c = 0; c < n; ++c) grid.widths[c] = least[c] + share * (most[c] - least[c]);
            break;
        }
        for (std::size_t c = 0; c < n; ++c) {
            auto titles = wrapped(table.columns[c].title, grid.size, grid.widths[c] + 0.5, true);
            if (shows_unit(table.columns[c])) titles.push_back("(" + table.columns[c].unit + ")");
            grid.titles.push_back(std::move(titles));
        }
        for (const auto& row : table.rows) {
            grid.cells.emplace_back();
            for (std::size_t c = 0; c < n; ++c)
                grid.cells.back().push_back(wrapped(row[c].text, grid.size, grid.widths[c] + 0.5));
        }
        return grid;
    }
    void cell(const Table& table, const Grid& grid, std::size_t c, const std::vector<std::string>& all, bool title) {
        double x = left;
        for (std::size_t i = 0; i < c; ++i) x += grid.widths[i] + between;
        const bool at_end = table.columns[c].figures;
        if (at_end) x += grid.widths[c];
        for (std::size_t i = 0; i < all.size(); ++i) {
            const bool unit = title && all[i].starts_with("(");
            text(x, y_ + grid.step() * (static_cast<double>(i) + 0.78), all[i], grid.size, unit ? faint : ink,
                 title && !unit, at_end ? Anchor::end : Anchor::start);
        }
    }
    static std::size_t tallest(const std::vector<std::vector<std::string>>& row) {
        std::size_t most = 1;
        for (const auto& each : row) most = std::max(most, each.size());
        return most;
    }
    void head(const Table& table, const Grid& grid, double end) {
        line(left, end, y_, 1.1);
        y_ += 4;
        for (std::size_t c = 0; c < grid.titles.size(); ++c) cell(table, grid, c, grid.titles[c], true);
        y_ += grid.step() * static_cast<double>(tallest(grid.titles)) + 3;
        line(left, end, y_, 0.6);
        y_ += 4;
    }
    void add(const Table& table) {
        const Grid grid = grid_of(table);
        const double end = left + std::accumulate(grid.widths.begin(), grid.widths.end(), 0.0) +
                           between * static_cast<double>(grid.widths.size() - 1);
        need(least_of(table, grid));
        caption(fmt::format("Table {}", ++tables_), table.caption);
        y_ += 5;
        head(table, grid, end);
        for (const auto& row : grid.cells) {
            const double high = grid.step() * static_cast<double>(tallest(row)) + 1.5;
            if (y_ + high > bottom) {
                line(left, end, y_, 0.4, hair);
                turn();
                head(table, grid, end);
            }
            for (std::size_t c = 0; c < row.size(); ++c) cell(table, grid, c, row[c], false);
            y_ += high;
        }
        y_ += 2;
        line(left, end, y_, 1.1);
        y_ += 6;
        if (!table.note.empty()) lines(wrapped(table.note, 9, right - left), 9, 12.5, faint);
        y_ += 14;
    }
    void foot() {
        for (std::size_t i = 0; i < pages_.size(); ++i) {
            Picture& page = pages_[i];
            page.marks.push_back(
                {picture::Path{{{left, bottom + 26}, {right, bottom + 26}}}, {}, picture::Stroke{hair, 0.6, {}}, ""});
            page.marks.push_back({picture::Text{{left, bottom + 42}, document_.footer, 8.5}, faint, {}, ""});
            page.marks.push_back(
                {picture::Text{{right, bottom + 42}, fmt::format("{} of {}", i + 1, pages_.size()), 8.5, Anchor::end},
                 faint,
                 {},
                 ""});
        }
    }

    const Document& document_;
    std::vector<Picture> pages_;
    double y_ = top;
    int tables_ = 0, figures_ = 0;
};

}  // namespace

std::vector<Picture> pages(const Document& document) { return Setter{document}.set(); }

}  // namespace rehearse::report
