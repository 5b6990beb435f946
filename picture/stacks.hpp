// SPDX-License-Identifier: Apache-2.0
// Bars whose parts add up: what the time or the memory goes into; and figures on cards.
#pragma once

#include "picture/chart.hpp"

namespace rehearse::picture {

struct StackPart {
    std::size_t category = 0;
    double value = 0;
    std::string title;
};

struct StackRow {
    std::string name, note;  // note: behind the bar
    std::vector<StackPart> parts;
    std::optional<double> low, high;  // whiskers about the end
};

struct Stacks {
    std::string title, subtitle;
    std::vector<std::string> categories;
    std::vector<Color> colors;  // of each category; empty: the palette's
    std::vector<StackRow> rows;
    Unit unit = Unit::seconds;
    std::optional<double> limit;  // a line, as of a memory's capacity
    std::string limit_name;
};
double height_of(const Stacks& stacks);
/// Into a part of a picture; the height that it takes: more than height_of where the legend takes several rows.
/// InputError without a row.
double draw(Picture& picture, Box box, const Stacks& stacks, const Palette& colors);
Picture stacks_picture(const Stacks& stacks, double width, Theme theme);

/// From one total to another by what differs: bars that begin where the last one ended.
struct Waterfall {
    std::string title, subtitle;
    std::string from_name, to_name;
    double from = 0;
    std::vector<std::pair<std::string, double>> changes;
    Unit unit = Unit::seconds;
};
Picture waterfall_picture(const Waterfall& waterfall, double width, Theme theme);

struct Card {
    std::string name, value, detail;
    std::optional<Color> color;  // of the edge
    std::string title;           // for the pointer, and what a click on it means
};
/// As many columns as there is room for, each at least so wide; the height that it takes.
double draw_cards(Picture& picture, Box box, const std::vector<Card>& cards, const Palette& colors, double least = 190);

}  // namespace rehearse::picture
