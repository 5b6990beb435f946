// SPDX-License-Identifier: Apache-2.0
// From data to places in a picture.
#pragma once

#include <optional>
#include <utility>

#include "picture/chart.hpp"

namespace rehearse::picture {

struct Plane {
    Box box;
    Scale x_scale, y_scale;
    Range x, y;

    /// False where a logarithmic axis has no place for it.
    bool shows(Point data) const;
    Point place(Point data) const;
};

/// The part of a line that lies inside the box (Liang and Barsky 1984).
std::optional<std::pair<Point, Point>> clipped(Point from, Point to, const Box& box);

/// Holds every point and band of the series. InputError when there is nothing to show.
Range data_range(const Chart& chart, bool horizontal);

}  // namespace rehearse::picture
