// SPDX-License-Identifier: Apache-2.0
#include "picture/chart.hpp"

#include <algorithm>
#include <cmath>

#include "picture/labels.hpp"
#include "picture/plane.hpp"
#include "picture/text.hpp"

namespace rehearse::picture {

namespace {

constexpr double tick_size = 11, title_size = 12, margin = 16;

struct Drawn {
    Axis axis;
    Range range;
    Ticks ticks;
    std::vector<std::string> texts{};  // of the major ones
};

// "10 k" beside "1 M", as text_of has it: an axis says its powers of ten in one way.
std::string tick_text(double value, Unit unit) {
    const bool thousands = unit == Unit::none && std::abs(value) >= 1e4 && std::abs(value) < 1e6;
    return thousands ? text_of(value / 1e3, unit) + " k" : text_of(value, unit);
}

std::vector<std::string> tick_texts(const std::vector<double>& values, Unit unit) {
    if (unit == Unit::seconds) return texts_of_times(values);
    std::vector<std::string> texts;
    for (const double value : values) texts.push_back(tick_text(value, unit));
    return texts;
}

Drawn drawn_axis(const Chart& chart, bool horizontal, double room) {
    const Axis& axis = horizontal ? chart.x : chart.y;
    const int most = std::max(2, static_cast<int>(room / (horizontal ? 90 : 45)));
    Drawn drawn{axis, {}, {}, {}};
    drawn.range = axis.range ? *axis.range : nice_range(axis.scale, data_range(chart, horizontal), most);
    drawn.ticks = axis.ticks.empty() ? ticks(axis.scale, drawn.range, most) : Ticks{axis.ticks, {}};
    drawn.texts = tick_texts(drawn.ticks.major, axis.unit);
    return drawn;
}

double widest_tick(const Drawn& axis) {
    double widest = 0;
    for (const std::string& text : axis.texts) widest = std::max(widest, text_width(text, tick_size));
    return widest;
}

void draw_line(Picture& picture, Point from, Point to, Color color, double width) {
    picture.marks.push_back({Path{{from, to}}, {}, Stroke{color, width, {}}, ""});
}

void draw_x_axis(Picture& picture, const Plane& plane, const Drawn& axis, const Palette& colors) {
    const Box& box = plane.box;
    const auto x_of = [&](double value) { return plane.place({value, plane.y.low}).x; };
    const auto inside = [&](double x) { return x > box.left - 0.5 && x < box.right() + 0.5; };
    for (const double value : axis.ticks.minor) {
        draw_line(picture, {x_of(value), box.bottom()}, {x_of(value), box.bottom() + 3}, colors.axis, 0.75);
    }
    double free_from = -1e9;  // where the last text ended
    for (std::size_t i = 0; i < axis.ticks.major.size(); ++i) {
        const double x = x_of(axis.ticks.major[i]);
        if (!inside(x)) continue;
        draw_line(picture, {x, box.top}, {x, box.bottom()}, colors.grid, 0.75);
        draw_line(picture, {x, box.bottom()}, {x, box.bottom() + 5}, colors.axis, 1);
        const std::string& text = axis.texts[i];
        const double half = text_width(text, tick_size) / 2;
        const double middle = std::min(x, box.right() + margin - 2 - half);  // inside the picture
        if (middle - half < free_from) continue;
        free_from = middle + half + 6;
        const Text label{{middle, box.bottom() + 8 + tick_size}, text, tick_size, Anchor::middle};
        picture.marks.push_back({label, colors.text, {}, ""});
    }
    const Point at{box.left + box.width / 2, box.bottom() + 8 + 2 * tick_size + title_size};
    picture.marks.push_back({Text{at, axis.axis.title, title_size, Anchor::middle}, colors.text, {}, ""});
}

void draw_y_axis(Picture& picture, const Plane& plane, const Drawn& axis, double title_x, const Palette& colors) {
    const Box& box = plane.box;
    const auto y_of = [&](double value) { return plane.place({plane.x.low, value}).y; };
    for (const double value : axis.ticks.minor) {
        draw_line(picture, {box.left - 3, y_of(value)}, {box.left, y_of(value)}, colors.axis, 0.75);
    }
    for (std::size_t i = 0; i < axis.ticks.major.size(); ++i) {
        const double y = y_of(axis.ticks.major[i]);
        if (y < box.top - 0.5 || y > box.bottom() + 0.5) continue;
        draw_line(picture, {box.left, y}, {box.right(), y}, colors.grid, 0.75);
        draw_line(picture, {box.left - 5, y}, {box.left, y}, colors.axis, 1);
        const Text label{{box.left - 8, y + half_height(tick_size)}, axis.texts[i], tick_size, Anchor::end};
        picture.marks.push_back({label, colors.text, {}, ""});
    }
    const Text title{{title_x, box.top + box.height / 2}, axis.axis.title, title_size, Anchor::middle, -90};
    picture.marks.push_back({title, colors.text, {}, ""});
}

// A band of one point alone is no area: a line with a cap at each end that the box shows.
void draw_whisker(Picture& picture, const Plane& plane, double x, Range band, Color color) {
    if (!plane.shows({x, band.low}) || !plane.shows({x, band.high})) return;
    const Point low = plane.place({x, band.low}), high = plane.place({x, band.high});
    const auto part = clipped(low, high, plane.box);
    if (!part) return;
    constexpr double half_cap = 5;
    draw_line(picture, part->first, part->second, color, 1.5);
    for (const auto& [shown, end] : {std::pair{part->first, low}, std::pair{part->second, high}}) {
        if (shown == end) draw_line(picture, {end.x - half_cap, end.y}, {end.x + half_cap, end.y}, color, 1.5);
    }
}

// A band is a polygon; where it leaves the box it runs along the border.
void draw_band(Picture& picture, const Plane& plane, const Series& series, Color color) {
    if (series.low.size() != series.points.size() || series.high.size() != series.points.size()) return;
    if (series.points.size() == 1)
        return draw_whisker(picture, plane, series.points[0].x, {series.low[0], series.high[0]}, color);
    Path band{{}, true};
    const auto add = [&](Point data) {
        if (!plane.shows(data)) return;
        const Point p = plane.place(data);
        band.points.push_back(
            {std::clamp(p.x, plane.box.left, plane.box.right()), std::clamp(p.y, plane.box.top, plane.box.bottom())});
    };
    for (std::size_t i = 0; i < series.points.size(); ++i) add({series.points[i].x, series.high[i]});
    for (std::size_t i = series.points.size(); i-- > 0;) add({series.points[i].x, series.low[i]});
    color.alpha = 0.18;
    picture.marks.push_back({band, color, {}, ""});
}

// As few paths as its visible parts are.
void draw_curve(Picture& picture, const Plane& plane, const Series& series, Color color) {
    Path path;
    const auto flush = [&] {
        if (path.points.size() > 1)
            picture.marks.push_back({path, {}, Stroke{color, series.width, series.dash}, series.name});
        path.points.clear();
    };
    for (std::size_t i = 1; i < series.points.size(); ++i) {
        if (!plane.shows(series.points[i - 1]) || !plane.shows(series.points[i])) {
            flush();
            continue;
        }
        const auto part = clipped(plane.place(series.points[i - 1]), plane.place(series.points[i]), plane.box);
        if (!part) {
            flush();
            continue;
        }
        if (path.points.empty() || path.points.back() != part->first) {
            flush();
            path.points.push_back(part->first);
        }
        path.points.push_back(part->second);
    }
    flush();
}

struct Dot {
    Point at;
    std::size_t series, index;  // of what it shows
};

std::vector<Dot> dots_of(const Plane& plane, const Chart& chart) {
    std::vector<Dot> dots;
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
        const std::vector<Point>& points = chart.series[s].points;
        for (std::size_t i = 0; i < points.size() && chart.series[s].dots; ++i) {
            if (!plane.shows(points[i])) continue;
            const Point at = plane.place(points[i]);
            if (clipped(at, at, plane.box)) dots.push_back({at, s, i});
        }
    }
    return dots;
}

// Dots that are strung along a curve are so small that they do not touch each other, or they would hide it.
std::vector<double> radii_of(const Chart& chart, const std::vector<Dot>& dots) {
    constexpr double least = 1, usual = 4;
    std::vector<double> way(chart.series.size(), 0), steps(chart.series.size(), 0);
    for (std::size_t i = 1; i < dots.size(); ++i) {
        const Dot &one = dots[i - 1], &next = dots[i];
        if (one.series != next.series) continue;
        way[one.series] += std::hypot(next.at.x - one.at.x, next.at.y - one.at.y);
        ++steps[one.series];
    }
    std::vector<double> radii;
    for (std::size_t s = 0; s < chart.series.size(); ++s) {
        const bool strung = chart.series[s].line && steps[s] > 0;
        radii.push_back(strung ? std::clamp(way[s] / steps[s] / 2, least, usual) : usual);
    }
    return radii;
}

void draw_dot(Picture& picture, const Dot& where, const Series& series, double radius, Color color, Color ground) {
    const double own = where.index < series.radii.size() ? series.radii[where.index] : radius;
    picture.marks.push_back(dot(where.at, own, where.series, color, ground));
    picture.marks.back().title = where.index < series.titles.size() ? series.titles[where.index] : series.name;
}

std::vector<LegendEntry> entries_of(const Chart& chart, const std::vector<Color>& of_series) {
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
        const Series& series = chart.series[i];
        if (series.name.empty()) continue;
        entries.push_back({series.name, of_series[i], series.line, series.dots, i, series.dash, false});
    }
    return entries;
}

std::vector<Color> colors_of(const Chart& chart, const Palette& palette) {
    std::vector<Color> found;
    std::size_t next = 0;
    for (const Series& series : chart.series)
        found.push_back(series.color ? *series.color : series_color(palette, next++));
    return found;
}

}  // namespace

void draw(Picture& picture, Box box, const Chart& chart, const Palette& colors) {
    const std::vector<Color> of_series = colors_of(chart, colors);
    Box inner{box.left + margin, box.top + margin, box.width - 2 * margin, box.height - 2 * margin};
    double used = draw_heading(picture, inner, chart.title, chart.subtitle, colors);
    const std::vector<LegendEntry> entries = entries_of(chart, of_series);
    if (chart.legend && entries.size() > 1) {
        used += draw_legend(picture, {inner.left, inner.top + used, inner.width, inner.height}, entries, colors);
    }
    used += used > 0 ? 10 : tick_size / 2;
    const double below = 14 + 2 * tick_size + title_size;
    const Box tall{inner.left, inner.top + used, inner.width, inner.height - used - below};
    const Drawn y = drawn_axis(chart, false, tall.height);
    const double beside = title_size + 10 + widest_tick(y) + 8;
    const Box plot{tall.left + beside, tall.top, tall.width - beside, tall.height};
    const Drawn x = drawn_axis(chart, true, plot.width);
    const Plane plane{plot, chart.x.scale, chart.y.scale, x.range, y.range};
    draw_x_axis(picture, plane, x, colors);
    draw_y_axis(picture, plane, y, tall.left + title_size, colors);
    for (std::size_t i = 0; i < chart.series.size(); ++i) draw_band(picture, plane, chart.series[i], of_series[i]);
    for (std::size_t i = 0; i < chart.series.size(); ++i) {
        if (chart.series[i].line) draw_curve(picture, plane, chart.series[i], of_series[i]);
    }
    const std::vector<Dot> dots = dots_of(plane, chart);
    std::vector<Point> places;
    for (const Dot& each : dots) places.push_back(each.at);
    draw_labels(picture, plane, chart.labels, places, colors);
    const Rectangle frame{{plot.left, plot.top}, plot.width, plot.height};
    picture.marks.push_back({frame, {}, Stroke{colors.axis, 1, {}}, ""});
    const std::vector<double> radii = radii_of(chart, dots);
    for (const Dot& each : dots) {
        draw_dot(picture, each, chart.series[each.series], radii[each.series], of_series[each.series],
                 colors.background);
    }
}

Picture xy_chart(const Chart& chart, Size size, Theme theme) {
    const Palette& colors = palette(theme);
    Picture picture = canvas(size, colors, chart.title);
    draw(picture, {0, 0, size.width, size.height}, chart, colors);
    return picture;
}

}  // namespace rehearse::picture
