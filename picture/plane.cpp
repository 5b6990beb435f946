// SPDX-License-Identifier: Apache-2.0
#include "picture/plane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace rehearse::picture {

namespace {

bool has_place(double value, Scale scale) { return std::isfinite(value) && (scale == Scale::linear || value > 0); }

double share(double value, Scale scale, Range range) {
    if (scale == Scale::linear) return (value - range.low) / (range.high - range.low);
    return std::log(value / range.low) / std::log(range.high / range.low);
}

}  // namespace

bool Plane::shows(Point data) const { return has_place(data.x, x_scale) && has_place(data.y, y_scale); }

Point Plane::place(Point data) const {
    return {box.left + box.width * share(data.x, x_scale, x), box.bottom() - box.height * share(data.y, y_scale, y)};
}

std::optional<std::pair<Point, Point>> clipped(Point from, Point to, const Box& box) {
    double begin = 0;
    double end = 1;
    const Point way{to.x - from.x, to.y - from.y};
    // Of each side: how far the line runs towards it, and how far it is inside it at its start.
    const std::array<std::pair<double, double>, 4> sides{{{-way.x, from.x - box.left},
                                                          {way.x, box.right() - from.x},
                                                          {-way.y, from.y - box.top},
                                                          {way.y, box.bottom() - from.y}}};
    for (const auto& [towards, inside] : sides) {
        if (towards == 0 && inside < 0) return std::nullopt;
        if (towards < 0) begin = std::max(begin, inside / towards);
        if (towards > 0) end = std::min(end, inside / towards);
    }
    if (begin > end) return std::nullopt;
    const auto at = [&](double t) { return Point{from.x + t * way.x, from.y + t * way.y}; };
    return std::pair{begin > 0 ? at(begin) : from, end < 1 ? at(end) : to};
}

Range data_range(const Chart& chart, bool horizontal) {
    const Axis& axis = horizontal ? chart.x : chart.y;
    Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    const auto hold = [&](double value) {
        if (!has_place(value, axis.scale)) return;
        range = {std::min(range.low, value), std::max(range.high, value)};
    };
    for (const Series& series : chart.series) {
        for (const Point& point : series.points) hold(horizontal ? point.x : point.y);
        if (horizontal) continue;
        for (const double value : series.low) hold(value);
        for (const double value : series.high) hold(value);
    }
    if (range.low > range.high) {
        throw InputError(fmt::format("the chart '{}' has no value to show on its axis '{}'", chart.title, axis.title));
    }
    return range;
}

}  // namespace rehearse::picture
