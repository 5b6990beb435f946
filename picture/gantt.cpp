// SPDX-License-Identifier: Apache-2.0
#include "picture/gantt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "picture/activity.hpp"
#include "picture/text.hpp"
#include "picture/timeline_picture.hpp"

namespace rehearse::picture {

namespace {

constexpr double margin = 16, label_size = 11, most_height = 280, axis_height = 26;

double lane_height(const Gantt& gantt) {
    return std::min(22.0, most_height / static_cast<double>(std::max<std::size_t>(gantt.lanes, 1)));
}

void draw_bar(Picture& picture, Box plot, double pitch, const GanttBar& bar, TimeView time, const Palette& colors) {
    const auto x = [&](double seconds) { return plot.left + seconds * 1e9 / time.to * plot.width; };
    const double width = std::max(x(bar.end) - x(bar.start), 0.3);
    const double height = bar.lanes * pitch;
    const Color full = series_color(colors, bar.color);
    const Color color = bar.pale ? mixed(full, colors.background, 0.3) : full;
    const Rectangle box{{x(bar.start), plot.top + bar.first * pitch}, width, height, 1.5};
    picture.marks.push_back({box, color, Stroke{colors.background, 0.5, {}}, bar.title});
    if (height < 10 || text_width(bar.text, 9) > width - 4) return;
    picture.marks.push_back(
        {Text{{box.at.x + width / 2, box.at.y + height / 2 + half_height(9)}, bar.text, 9, Anchor::middle},
         readable_on(color),
         {},
         bar.title});
}

// Names of the first lane of every few.
void draw_lanes(Picture& picture, Box plot, double pitch, const Gantt& gantt, const Palette& colors) {
    const auto every = static_cast<std::size_t>(std::ceil(14 / pitch));
    for (std::size_t lane = 0; lane < gantt.lanes; lane += every) {
        const double middle = plot.top + (static_cast<double>(lane) + 0.5) * pitch;
        const Text label{{plot.left - 8, middle + half_height(label_size)},
                         fmt::format("{} {}", gantt.lane, lane),
                         label_size,
                         Anchor::end};
        picture.marks.push_back({label, colors.text, {}, ""});
    }
}

// The height that it takes.
double draw(Picture& picture, Box box, const Gantt& gantt, TimeView time, Theme theme) {
    const Palette& colors = palette(theme);
    const Box inner{box.left + margin, box.top + margin / 2, box.width - 2 * margin, 0};
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < gantt.kinds.size(); ++i) {
        entries.push_back({gantt.kinds[i], series_color(colors, i), false, false, 0, {}, true});
    }
    double used = draw_heading(picture, inner, gantt.title, gantt.subtitle, colors);
    used += draw_legend(picture, {inner.left, inner.top + used, inner.width, 20}, entries, colors) + 8;
    const double pitch = lane_height(gantt);
    const double names = text_width(fmt::format("{} {}", gantt.lane, gantt.lanes), label_size) + 10;
    const Box plot{inner.left + names, inner.top + used, inner.width - names, pitch * static_cast<double>(gantt.lanes)};
    picture.marks.push_back({Rectangle{{plot.left, plot.top}, plot.width, plot.height}, idle_color(theme), {}, ""});
    draw_lanes(picture, plot, pitch, gantt, colors);
    for (const GanttBar& bar : gantt.bars) draw_bar(picture, plot, pitch, bar, time, colors);
    draw_time_axis(picture, plot, time, colors);
    return plot.bottom() + axis_height + margin / 2 - box.top;
}

}  // namespace

Picture gantt_picture(const std::vector<Gantt>& drawings, double width, Theme theme) {
    double last = 0;
    for (const Gantt& each : drawings) {
        for (const GanttBar& bar : each.bars) last = std::max(last, bar.end);
    }
    const TimeView time{0, last > 0 ? last * 1e9 : 1e9};
    Picture picture = canvas({width, 0}, palette(theme), drawings.empty() ? "" : drawings.front().title);
    double top = 0;
    for (const Gantt& each : drawings) top += draw(picture, {0, top, width, 0}, each, time, theme);
    picture.height = top;
    std::get<Rectangle>(picture.marks.front().shape).height = top;
    return picture;
}

}  // namespace rehearse::picture
