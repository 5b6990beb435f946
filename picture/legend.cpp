// SPDX-License-Identifier: Apache-2.0
// What stands around a chart: its heading and its legend.
#include <cmath>
#include <numbers>
#include <optional>

#include "picture/chart.hpp"
#include "picture/text.hpp"

namespace rehearse::picture {

namespace {

constexpr double title_size = 15, subtitle_size = 11, entry_size = 11;
constexpr double gap = 6, between = 18, row_height = 18;

// Around a dot, in the colour of the ground, where it is large enough to have one.
std::optional<Stroke> edge(double radius, Color ground) {
    return radius < 2 ? std::nullopt : std::optional(Stroke{ground, 0.75, {}});
}

Mark polygon(Point center, double radius, int corners, double turn, Color color, Color ground) {
    Path path{{}, true};
    for (int i = 0; i < corners; ++i) {
        const double angle = 2 * std::numbers::pi * (turn + static_cast<double>(i) / corners);
        path.points.push_back({center.x + radius * std::sin(angle), center.y - radius * std::cos(angle)});
    }
    return {path, color, edge(radius, ground), ""};
}

// As much of it as there is room for.
std::string cut(const std::string& text, double size, bool bold, double room) {
    if (text_width(text, size, bold) <= room) return text;
    std::string shorter = text;
    while (!shorter.empty() && text_width(shorter + "…", size, bold) > room) {
        do shorter.pop_back();
        while (!shorter.empty() && (static_cast<unsigned char>(shorter.back()) & 0xC0U) == 0x80);
        if (!shorter.empty() && (static_cast<unsigned char>(shorter.back()) & 0xC0U) == 0xC0) shorter.pop_back();
    }
    return shorter + "…";
}

}  // namespace

Mark dot(Point center, double radius, std::size_t form, Color color, Color ground) {
    switch (form % 6) {
        case 0:
            return {Circle{center, radius}, color, edge(radius, ground), ""};
        case 1:
            return polygon(center, 1.25 * radius, 4, 0.125, color, ground);  // square
        case 2:
            return polygon(center, 1.35 * radius, 3, 0, color, ground);
        case 3:
            return polygon(center, 1.3 * radius, 4, 0, color, ground);  // diamond
        case 4:
            return polygon(center, 1.35 * radius, 3, 0.5, color, ground);  // a triangle on its tip
        default:
            return polygon(center, 1.2 * radius, 6, 0, color, ground);
    }
}

Picture canvas(Size size, const Palette& colors, const std::string& title) {
    return {size.width, size.height, title, {{Rectangle{{0, 0}, size.width, size.height}, colors.background, {}, ""}}};
}

double draw_heading(Picture& picture, Box box, const std::string& title, const std::string& subtitle,
                    const Palette& colors) {
    double height = 0;
    if (!title.empty()) {
        height += title_size + 3;
        picture.marks.push_back({Text{{box.left, box.top + height - 3},
                                      cut(title, title_size, true, box.width),
                                      title_size,
                                      Anchor::start,
                                      0,
                                      true},
                                 colors.text,
                                 {},
                                 ""});
    }
    if (!subtitle.empty()) {
        height += subtitle_size + 6;
        picture.marks.push_back(
            {Text{{box.left, box.top + height - 3}, cut(subtitle, subtitle_size, false, box.width), subtitle_size},
             colors.faint_text,
             {},
             ""});
    }
    return height;
}

double draw_legend(Picture& picture, Box box, const std::vector<LegendEntry>& entries, const Palette& colors) {
    Point at{box.left, box.top + 4};
    for (const LegendEntry& entry : entries) {
        const double sample = entry.line ? 24 : 12;
        const std::string name = cut(entry.name, entry_size, false, box.width - sample - gap);
        const double width = sample + gap + text_width(name, entry_size);
        if (at.x > box.left && at.x + width > box.right()) at = {box.left, at.y + row_height};
        const Point middle{at.x + sample / 2, at.y + row_height / 2};
        if (entry.square) {
            picture.marks.push_back({Rectangle{{middle.x - 6, middle.y - 6}, 12, 12, 2}, entry.color, {}, ""});
        }
        if (entry.line) {
            const Path line{{{at.x, middle.y}, {at.x + sample, middle.y}}};
            picture.marks.push_back({line, {}, Stroke{entry.color, 2, entry.dash}, ""});
        }
        if (entry.dot) picture.marks.push_back(dot(middle, 4, entry.form, entry.color, colors.background));
        const Point text{at.x + sample + gap, middle.y + half_height(entry_size)};
        picture.marks.push_back({Text{text, name, entry_size}, colors.text, {}, name == entry.name ? "" : entry.name});
        at.x += width + between;
    }
    return entries.empty() ? 0 : at.y + row_height - box.top;
}

}  // namespace rehearse::picture
