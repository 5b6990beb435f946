// SPDX-License-Identifier: Apache-2.0
// A picture is a list of marks, the first at the bottom. Units are points of 1/96 inch (CSS pixels); x goes right, y
// down, as in SVG, cairo and Qt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace rehearse::picture {

struct Point {
    double x = 0, y = 0;
    bool operator==(const Point&) const = default;
};

struct Color {
    std::uint8_t r = 0, g = 0, b = 0;
    double alpha = 1;  // 0 cannot be seen
    bool operator==(const Color&) const = default;
};

struct Rectangle {
    Point at;                                  // its upper left corner
    double width = 0, height = 0, corner = 0;  // corner: the radius of rounded corners
};

struct Path {
    std::vector<Point> points;
    bool closed = false;
};

struct Circle {
    Point center;
    double radius = 1;
};

enum class Anchor { start, middle, end };

/// `at` is on the baseline, where the anchor says; rotation in degrees about it, clockwise.
struct Text {
    Point at;
    std::string text;  // UTF-8
    double size = 11;
    Anchor anchor = Anchor::start;
    double rotation = 0;
    bool bold = false;
};

using Shape = std::variant<Rectangle, Path, Circle, Text>;

struct Stroke {
    Color color;
    double width = 1;
    std::vector<double> dash;  // lengths of line and gap in turn; empty: a whole line
};

struct Mark {
    Shape shape;
    std::optional<Color> fill;  // of a text: its colour
    std::optional<Stroke> stroke;
    std::string title;  // shown where the pointer rests on the mark, by what can show it
};

struct Picture {
    double width = 0, height = 0;
    std::string title;  // of the document, not drawn
    std::vector<Mark> marks;
};

/// Part of a picture.
struct Box {
    double left = 0, top = 0, width = 0, height = 0;
    double right() const { return left + width; }
    double bottom() const { return top + height; }
};

}  // namespace rehearse::picture
