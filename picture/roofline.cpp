// SPDX-License-Identifier: Apache-2.0
#include "picture/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.hpp"

namespace rehearse::picture {

namespace {

struct Rates {
    double highest = 0, lowest_slope = 1e300, highest_slope = 0;
};

Rates rates_of(std::span<const Roof> roofs) {
    Rates rates;
    for (const Roof& roof : roofs) {
        if (!roof.is_slope) {
            rates.highest = std::max(rates.highest, roof.rate);
            continue;
        }
        rates.lowest_slope = std::min(rates.lowest_slope, roof.rate);
        rates.highest_slope = std::max(rates.highest_slope, roof.rate);
    }
    return rates;
}

// The part of the plane that shows all dots, all ridges and some of the slopes.
void set_ranges(Chart& chart, const Rates& rates) {
    Range x{rates.highest / rates.highest_slope / 4, rates.highest / rates.lowest_slope * 4};
    Range y{0.8 * x.low * rates.lowest_slope, rates.highest * 2};
    for (const Series& series : chart.series) {
        for (const Point& p : series.points) {
            x = {std::min(x.low, p.x / 1.5), std::max(x.high, p.x * 3)};
            y = {std::min(y.low, p.y / 1.5), std::max(y.high, p.y * 1.5)};
        }
    }
    chart.x.range = x, chart.y.range = y;
}

}  // namespace

// The slopes end at the highest flat.
void add_roofs(Chart& chart, std::span<const Roof> roofs, const Palette& colors) {
    const Rates rates = rates_of(roofs);
    if (rates.highest <= 0 || rates.highest_slope <= 0) return;
    set_ranges(chart, rates);
    const Range x = *chart.x.range, y = *chart.y.range;
    for (const Roof& roof : roofs) {
        const Point from =
            roof.is_slope ? Point{x.low, x.low * roof.rate} : Point{roof.rate / rates.highest_slope, roof.rate};
        const Point to = roof.is_slope ? Point{rates.highest / roof.rate, rates.highest} : Point{x.high, roof.rate};
        chart.series.push_back(
            {.points = {from, to}, .dots = false, .color = colors.axis, .width = roof.is_used ? 1.75 : 1});
        if (!roof.is_used) chart.series.back().dash = {5, 3};
        const std::string rate = roof.is_slope ? to_string(Bandwidth{roof.rate}) : to_string(FlopRate{roof.rate});
        const Point seen = from.y >= y.low ? from : Point{y.low / roof.rate, y.low};
        chart.labels.push_back({roof.is_slope ? seen : to, fmt::format("{} {}", roof.name, rate),
                                roof.is_slope ? Anchor::start : Anchor::end, roof.is_slope ? to : from,
                                roof.is_used ? colors.text : colors.faint_text});
    }
}

}  // namespace rehearse::picture
