// SPDX-License-Identifier: Apache-2.0
#include "picture/labels.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "picture/text.hpp"

namespace rehearse::picture {

namespace {

constexpr double size = 10.5, above = 4, border = 10;

// The middle line of a placed text, as points half a letter apart: two texts meet where two of these are near.
std::vector<Point> trace(const Text& text) {
    const double width = text_width(text.text, text.size);
    const double angle = text.rotation * std::numbers::pi / 180;
    const Point along{std::cos(angle), std::sin(angle)};
    const Point up{std::sin(angle), -std::cos(angle)};
    const double before = text.anchor == Anchor::start ? 0 : text.anchor == Anchor::middle ? width / 2 : width;
    std::vector<Point> points;
    for (double x = 0; x <= width; x += text.size / 2) {
        const double forward = x - before;
        const double rise = half_height(text.size);
        points.push_back({text.at.x + forward * along.x + rise * up.x, text.at.y + forward * along.y + rise * up.y});
    }
    return points;
}

bool meet(const std::vector<Point>& a, const std::vector<Point>& b) {
    return std::ranges::any_of(a, [&](const Point& p) {
        return std::ranges::any_of(b, [&](const Point& q) { return std::hypot(p.x - q.x, p.y - q.y) < 1.2 * size; });
    });
}

bool within(const std::vector<Point>& trace, const Box& box) {
    constexpr double margin = size / 2;
    return std::ranges::all_of(trace, [&](const Point& p) {
        return p.x >= box.left + margin && p.x <= box.right() - margin && p.y >= box.top + margin &&
               p.y <= box.bottom() - margin;
    });
}

// What keeps lines from running through the text: a stroke of the ground's colour along its middle, as high as it is.
Mark ground_of(const std::vector<Point>& middle, const Text& text, const Palette& colors) {
    Color veil = colors.background;
    veil.alpha = 0.8;
    const Path path{{middle.front(), middle.back()}, false};
    return {path, {}, Stroke{veil, text.size, {}}, ""};
}

// At its place; where a dot stands there, beside, above or below it.
Text placed(Point at, const Label& label, std::size_t attempt) {
    constexpr double beside = 14, over = 18;
    const Point middle{at.x, at.y + half_height(size)};
    switch (attempt) {
        case 0:
            return {middle, label.text, size, label.anchor, 0, false};
        case 1:
            return {{at.x + beside, middle.y}, label.text, size, Anchor::start, 0, false};
        case 2:
            return {{at.x - beside, middle.y}, label.text, size, Anchor::end, 0, false};
        default:
            return {{at.x, middle.y + (attempt == 3 ? -over : over)}, label.text, size, Anchor::middle, 0, false};
    }
}

// The label's text moved by `distance` along its line.
Text placed_along(const Plane& plane, const Label& label, double distance) {
    const Point at = plane.place(label.at);
    const Point to = plane.place(*label.towards);
    const double length = std::max(1e-9, std::hypot(to.x - at.x, to.y - at.y));
    Point along{(to.x - at.x) / length, (to.y - at.y) / length};
    const Point moved{at.x + distance * along.x, at.y + distance * along.y};
    if (along.x < 0) along = {-along.x, -along.y};  // text is read from left to right
    return {{moved.x + above * along.y, moved.y - above * along.x}, label.text, size, label.anchor,
            std::atan2(along.y, along.x) * 180 / std::numbers::pi,  false};
}

}  // namespace

void draw_labels(Picture& picture, const Plane& plane, const std::vector<Label>& labels, const std::vector<Point>& dots,
                 const Palette& colors) {
    std::vector<std::vector<Point>> taken{dots};
    for (const Label& label : labels) {
        const double room = plane.box.width + plane.box.height - border;
        const std::size_t attempts = label.towards                         ? static_cast<std::size_t>(room / (size / 2))
                                     : meet({plane.place(label.at)}, dots) ? 5
                                                                           : 1;
        for (std::size_t i = 0; i < attempts; ++i) {
            const Text text = label.towards ? placed_along(plane, label, border + static_cast<double>(i) * size / 2)
                                            : placed(plane.place(label.at), label, i);
            std::vector<Point> covered = trace(text);
            const bool hit = std::ranges::any_of(taken, [&](const auto& other) { return meet(covered, other); });
            if (hit || !within(covered, plane.box)) continue;
            picture.marks.push_back(ground_of(covered, text, colors));
            picture.marks.push_back({text, label.color.value_or(colors.text), {}, ""});
            taken.push_back(std::move(covered));
            break;
        }
    }
}

}  // namespace rehearse::picture
