// SPDX-License-Identifier: Apache-2.0
// Data in, marks out: a chart with two axes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "picture/palette.hpp"
#include "picture/picture.hpp"
#include "picture/ticks.hpp"

namespace rehearse::picture {

struct Axis {
    std::string title;  // with the unit where `unit` is none: the ticks then carry bare numbers
    Scale scale = Scale::linear;
    Unit unit = Unit::none;
    std::optional<Range> range;  // empty: what holds the data
    std::vector<double> ticks;   // empty: as ticks.hpp chooses
};

/// On a logarithmic axis, points that are not above 0 are left out.
struct Series {
    std::string name = {};  // empty: not in the legend
    std::vector<Point> points = {};
    std::vector<double> low = {}, high = {};  // of the band about each point; empty: no band
    bool line = true, dots = true;
    std::optional<Color> color = {};  // empty: the next of the palette
    double width = 2;
    std::vector<double> dash = {};
    std::vector<std::string> titles = {};  // of the dots, empty or one a point
    std::vector<double> radii = {};        // of the dots; empty: all alike
};

/// A text at a point of the data, beside it where a dot stands there. With `towards`, it runs along the line to that
/// point and stands above it, and moves along it where another such text stands already.
struct Label {
    Point at;
    std::string text;
    Anchor anchor = Anchor::start;
    std::optional<Point> towards;
    std::optional<Color> color;
};

struct Chart {
    std::string title, subtitle;
    Axis x, y;
    std::vector<Series> series;
    std::vector<Label> labels;
    bool legend = true;  // where more than one series has a name
};

struct Size {
    double width = 760, height = 480;
};

Picture xy_chart(const Chart& chart, Size size = {}, Theme theme = Theme::light);

/// The same into a part of a picture. InputError when an axis has no data that it can show.
void draw(Picture& picture, Box box, const Chart& chart, const Palette& colors);

/// An empty picture on the ground of a palette.
Picture canvas(Size size, const Palette& colors, const std::string& title);

/// Title and subtitle at the top left; the height that they take.
double draw_heading(Picture& picture, Box box, const std::string& title, const std::string& subtitle,
                    const Palette& colors);

/// Names with their colours and, of a chart, the form of their dots, in as many rows as they need.
struct LegendEntry {
    std::string name;
    Color color;
    bool line = true, dot = true;
    std::size_t form = 0;
    std::vector<double> dash;
    bool square = false;  // a filled square: the colour of an area
};
/// The height that it takes.
double draw_legend(Picture& picture, Box box, const std::vector<LegendEntry>& entries, const Palette& colors);

/// A dot of the form of the i-th series: circle, square, triangle, diamond, ...
Mark dot(Point center, double radius, std::size_t form, Color color, Color ground);

}  // namespace rehearse::picture
