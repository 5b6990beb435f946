// SPDX-License-Identifier: Apache-2.0
#include "picture/stacks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "picture/text.hpp"

namespace rehearse::picture {

namespace {

constexpr double margin = 16, row_height = 30, bar = 20, label_size = 11, axis_height = 30;

double heading_height(const Stacks& stacks) {
    return (stacks.title.empty() ? 0 : 18) + (stacks.subtitle.empty() ? 0 : 17) + 10 + 24;
}

double total(const StackRow& row) {
    return std::accumulate(row.parts.begin(), row.parts.end(), 0.0,
                           [](double sum, const StackPart& part) { return sum + part.value; });
}

Color color_of(const Stacks& stacks, std::size_t category, const Palette& colors) {
    return category < stacks.colors.size() ? stacks.colors[category] : series_color(colors, category);
}

struct Frame {
    Box plot;
    Range range;
    double x(double value) const { return plot.left + (value - range.low) / (range.high - range.low) * plot.width; }
};

void text(Picture& picture, Point at, const std::string& words, Anchor anchor, Color color, double size = label_size,
          bool bold = false) {
    picture.marks.push_back({Text{at, words, size, anchor, 0, bold}, color, {}, ""});
}

void line(Picture& picture, Point from, Point to, Stroke stroke, const std::string& title = "") {
    picture.marks.push_back({Path{{from, to}}, {}, std::move(stroke), title});
}

void draw_axis(Picture& picture, const Frame& frame, Unit unit, const Palette& colors) {
    for (const double value : linear_ticks(frame.range, std::max(2, static_cast<int>(frame.plot.width / 100))).major) {
        const double x = frame.x(value);
        line(picture, {x, frame.plot.top}, {x, frame.plot.bottom() + 4}, {colors.grid, 0.75, {}});
        text(picture, {x, frame.plot.bottom() + 6 + label_size}, text_of(value, unit), Anchor::middle,
             colors.faint_text);
    }
}

void draw_row(Picture& picture, const Frame& frame, double top, const Stacks& stacks, const StackRow& row,
              const Palette& colors) {
    const double base = top + row_height / 2 + half_height(label_size);
    text(picture, {frame.plot.left - 10, base}, row.name, Anchor::end, colors.text);
    double sum = 0;
    for (const StackPart& part : row.parts) {
        const double left = frame.x(sum), right = frame.x(sum + part.value);
        sum += part.value;
        if (right - left < 0.05) continue;
        const Color color = color_of(stacks, part.category, colors);
        const std::string title = part.title.empty()
                                      ? stacks.categories[part.category] + ": " + text_of(part.value, stacks.unit)
                                      : part.title;
        picture.marks.push_back({Rectangle{{left, top + (row_height - bar) / 2}, right - left, bar}, color, {}, title});
    }
    double end = frame.x(sum);
    if (row.low && row.high) {
        const double middle = top + row_height / 2;
        line(picture, {frame.x(*row.low), middle}, {frame.x(*row.high), middle}, {colors.text, 1.25, {}});
        for (const double value : {*row.low, *row.high}) {
            line(picture, {frame.x(value), middle - 5}, {frame.x(value), middle + 5}, {colors.text, 1.25, {}});
        }
        end = std::max(end, frame.x(*row.high));
    }
    if (!row.note.empty()) text(picture, {end + 8, base}, row.note, Anchor::start, colors.faint_text);
}

}  // namespace

double height_of(const Stacks& stacks) {
    return heading_height(stacks) + static_cast<double>(stacks.rows.size()) * row_height + axis_height + margin +
           (stacks.limit ? 16 : 0);
}

double draw(Picture& picture, Box box, const Stacks& stacks, const Palette& colors) {
    if (stacks.rows.empty()) throw InputError("a picture of bars needs at least one bar");
    const Box inner{box.left + margin, box.top + margin / 2, box.width - 2 * margin, 0};
    double used = draw_heading(picture, inner, stacks.title, stacks.subtitle, colors);
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < stacks.categories.size(); ++i) {
        entries.push_back({stacks.categories[i], color_of(stacks, i, colors), false, false, 0, {}, true});
    }
    used += draw_legend(picture, {inner.left, inner.top + used, inner.width, 20}, entries, colors);
    used += 8 + (stacks.limit ? 16 : 0);
    double names = 0, notes = 0, most = stacks.limit.value_or(0);
    for (const StackRow& row : stacks.rows) {
        names = std::max(names, text_width(row.name, label_size));
        notes = std::max(notes, row.note.empty() ? 0 : text_width(row.note, label_size) + 12);
        most = std::max({most, total(row), row.high.value_or(0)});
    }
    Frame frame{{inner.left + names + 10, inner.top + used, inner.width - names - 10 - notes,
                 row_height * static_cast<double>(stacks.rows.size())},
                {0, most > 0 ? most * 1.03 : 1}};
    draw_axis(picture, frame, stacks.unit, colors);
    for (std::size_t i = 0; i < stacks.rows.size(); ++i) {
        draw_row(picture, frame, frame.plot.top + static_cast<double>(i) * row_height, stacks, stacks.rows[i], colors);
    }
    const double height = frame.plot.bottom() - box.top + axis_height + margin / 2;
    if (!stacks.limit) return height;
    const double x = frame.x(*stacks.limit);
    constexpr Color red{213, 94, 0};
    line(picture, {x, frame.plot.top - 4}, {x, frame.plot.bottom()}, {red, 2, {6, 3}}, stacks.limit_name);
    const bool left = x > frame.plot.left + frame.plot.width / 2;
    text(picture, {x + (left ? 2 : -2), frame.plot.top - 8}, stacks.limit_name, left ? Anchor::end : Anchor::start, red,
         label_size, true);
    return height;
}

Picture stacks_picture(const Stacks& stacks, double width, Theme theme) {
    const Palette& colors = palette(theme);
    Picture picture = canvas({width, height_of(stacks)}, colors, stacks.title);
    picture.height = std::max(picture.height, draw(picture, {0, 0, width, picture.height}, stacks, colors));
    std::get<Rectangle>(picture.marks.front().shape).height = picture.height;
    return picture;
}

Picture waterfall_picture(const Waterfall& waterfall, double width, Theme theme) {
    const Palette& colors = palette(theme);
    constexpr Color slower{213, 94, 0}, faster{0, 158, 115};
    const double rows = static_cast<double>(waterfall.changes.size()) + 2;
    const double head = 50, height = head + rows * row_height + axis_height + margin;
    Picture picture = canvas({width, height}, colors, waterfall.title);
    draw_heading(picture, {margin, margin / 2, width - 2 * margin, 0}, waterfall.title, waterfall.subtitle, colors);
    double names = std::max(text_width(waterfall.from_name, label_size), text_width(waterfall.to_name, label_size));
    double low = 0, high = std::max(waterfall.from, 1e-30), sum = waterfall.from;
    for (const auto& [name, change] : waterfall.changes) {
        names = std::max(names, text_width(name, label_size));
        sum += change;
        low = std::min(low, sum);
        high = std::max(high, sum);
    }
    const Frame frame{{margin + names + 10, head, width - 2 * margin - names - 100, rows * row_height},
                      {low, high * 1.02}};
    draw_axis(picture, frame, waterfall.unit, colors);
    double top = head;
    const auto row = [&](const std::string& name, double from, double to, Color color, const std::string& note) {
        const double left = frame.x(std::min(from, to));
        const double wide = std::max(std::abs(frame.x(to) - frame.x(from)), 1.0);
        const double base = top + row_height / 2 + half_height(label_size);
        text(picture, {frame.plot.left - 10, base}, name, Anchor::end, colors.text);
        picture.marks.push_back({Rectangle{{left, top + 5}, wide, bar}, color, {}, name + ": " + note});
        text(picture, {left + wide + 8, base}, note, Anchor::start, colors.faint_text);
        line(picture, {frame.x(to), top + 5}, {frame.x(to), top + row_height + 5}, {colors.axis, 0.75, {2, 2}});
        top += row_height;
    };
    row(waterfall.from_name, 0, waterfall.from, series_color(colors, 0), text_of(waterfall.from, waterfall.unit));
    double at = waterfall.from;
    for (const auto& [name, change] : waterfall.changes) {
        const std::string sign = change < 0 ? "−" : "+";
        row(name, at, at + change, change > 0 ? slower : faster, sign + text_of(std::abs(change), waterfall.unit));
        at += change;
    }
    row(waterfall.to_name, 0, at, series_color(colors, 0), text_of(at, waterfall.unit));
    return picture;
}

double draw_cards(Picture& picture, Box box, const std::vector<Card>& cards, const Palette& colors, double least) {
    constexpr double height = 86, gap = 12;
    const auto columns = static_cast<std::size_t>(std::max(1.0, std::floor((box.width + gap) / (least + gap))));
    const double width = (box.width + gap) / static_cast<double>(columns) - gap;
    const Color ground = mixed(colors.text, colors.background, 0.035);
    for (std::size_t i = 0; i < cards.size(); ++i) {
        const Card& card = cards[i];
        const Point at{box.left + static_cast<double>(i % columns) * (width + gap),
                       box.top + static_cast<double>(i / columns) * (height + gap)};
        const Color edge = card.color.value_or(colors.axis);
        picture.marks.push_back({Rectangle{at, width, height, 6}, ground, Stroke{colors.grid, 1, {}}, card.title});
        picture.marks.push_back({Rectangle{{at.x, at.y + 8}, 4, height - 16, 2}, edge, {}, ""});
        text(picture, {at.x + 16, at.y + 22}, card.name, Anchor::start, colors.faint_text);
        double size = 21;
        while (size > 11 && text_width(card.value, size, true) > width - 24) size -= 1;
        text(picture, {at.x + 16, at.y + 50}, card.value, Anchor::start, colors.text, size, true);
        double detail = 10.5;
        while (detail > 8 && text_width(card.detail, detail) > width - 22) detail -= 0.5;
        text(picture, {at.x + 16, at.y + 72}, card.detail, Anchor::start, colors.faint_text, detail);
    }
    const double rows = std::ceil(static_cast<double>(cards.size()) / static_cast<double>(columns));
    return rows * (height + gap);
}

}  // namespace rehearse::picture
