// SPDX-License-Identifier: Apache-2.0
#include "picture/timeline_picture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "picture/text.hpp"

namespace rehearse::picture {

namespace {

constexpr double margin = 16, label_size = 11;

std::string name_of(const Lane& lane) {
    std::string name = fmt::format("rank {} {}", lane.rank, lane.name);
    return lane.number > 0 ? fmt::format("{} {}", name, lane.number + 1) : name;
}

// Those that are asked for; else one row a lane where there is room, else one a rank, else one a group of ranks.
std::vector<PictureRow> rows_of(const Lanes& lanes, const TimelineView& view) {
    if (!view.rows.empty()) return view.rows;
    std::vector<PictureRow> rows;
    if (lanes.lanes.size() <= view.most_rows / 6) {
        for (const Lane& lane : lanes.lanes) rows.push_back({{{&lane}}, name_of(lane)});
        return rows;
    }
    std::vector<RankLanes> ranks;
    for (const Lane& lane : lanes.lanes) {
        if (ranks.empty() || ranks.back().front()->rank != lane.rank) ranks.emplace_back();
        ranks.back().push_back(&lane);
    }
    const std::size_t group = (ranks.size() + view.most_rows - 1) / view.most_rows;
    for (std::size_t i = 0; i < ranks.size(); i += group) {
        const std::size_t end = std::min(i + group, ranks.size());
        PictureRow& row = rows.emplace_back();
        row.ranks.assign(ranks.begin() + static_cast<std::ptrdiff_t>(i),
                         ranks.begin() + static_cast<std::ptrdiff_t>(end));
        row.name = fmt::format("rank {}", row.ranks.front().front()->rank);
        if (end - i > 1)
            row.name = fmt::format("ranks {}-{}", row.ranks.front().front()->rank, row.ranks.back().front()->rank);
    }
    return rows;
}

// Pixels of one colour that stand side by side are one rectangle.
void draw_pixels(Picture& picture, Point at, double height, std::span<const std::uint32_t> pixels,
                 std::uint32_t ground) {
    for (std::size_t begin = 0; begin < pixels.size();) {
        std::size_t end = begin + 1;
        while (end < pixels.size() && pixels[end] == pixels[begin]) ++end;
        if (const std::uint32_t p = pixels[begin]; p != ground) {
            const Color color{static_cast<std::uint8_t>(p >> 16U), static_cast<std::uint8_t>(p >> 8U),
                              static_cast<std::uint8_t>(p)};
            const double left = at.x + static_cast<double>(begin);
            picture.marks.push_back({Rectangle{{left, at.y}, static_cast<double>(end - begin), height}, color, {}, ""});
        }
        begin = end;
    }
}

// Boxes that are wide enough for a name are rectangles of their own; the rest are pixels.
void draw_names(Picture& picture, Point at, double height, const Lane& lane, const Lanes& lanes, TimeView view,
                std::size_t width, Theme theme) {
    for (const NamedBox& box : named_boxes(lane, view, width, 20)) {
        const What& what = lanes.whats[lane.what(box.event)];
        const Color color = color_of(what.activity, theme);
        picture.marks.push_back(
            {Rectangle{{at.x + box.left, at.y}, box.right - box.left - 0.5, height, 1.5}, color,
             Stroke{palette(theme).background, 0.5, {}},
             fmt::format("{}: {}", what.step,
                         to_string(Seconds{static_cast<double>(lane.end(box.event) - lane.start(box.event)) * 1e-9}))});
        std::string text = what.step;
        while (!text.empty() && text_width(text, 9) > box.right - box.left - 4) text.pop_back();
        if (text.size() < std::min<std::size_t>(what.step.size(), 3)) continue;
        picture.marks.push_back(
            {Text{{at.x + box.left + 2, at.y + height / 2 + half_height(9)}, text, 9}, readable_on(color), {}, ""});
    }
}

std::vector<LegendEntry> legend_of(const Lanes& lanes, const TimelineView& view, Theme theme) {
    if (view.coloring != Coloring::activity) {
        const PixelColors colors(theme, view.coloring);
        std::vector<LegendEntry> entries;
        for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0}) {
            Coverage coverage{};
            const bool wait = view.coloring == Coloring::waiting;
            coverage[static_cast<std::size_t>(wait ? Activity::forward : Activity::collective)] =
                static_cast<std::uint8_t>(255 * (wait ? 1 - share : share));
            const std::uint32_t p = colors.of(coverage);
            entries.push_back({fmt::format("{:.0f} % {}", 100 * share, to_string(view.coloring)),
                               {static_cast<std::uint8_t>(p >> 16U), static_cast<std::uint8_t>(p >> 8U),
                                static_cast<std::uint8_t>(p)},
                               false,
                               false,
                               0,
                               {},
                               true});
        }
        return entries;
    }
    std::array<bool, activity_count> used{};
    for (const What& what : lanes.whats) used[static_cast<std::size_t>(what.activity)] = true;
    std::vector<LegendEntry> entries;
    for (std::size_t a = 0; a < activity_count; ++a) {
        const auto activity = static_cast<Activity>(a);
        if (used[a]) {
            entries.push_back({std::string{to_string(activity)}, color_of(activity, theme), false, false, 0, {}, true});
        }
    }
    entries.push_back({"idle", idle_color(theme), false, false, 0, {}, true});
    return entries;
}

}  // namespace

void draw_time_axis(Picture& picture, Box plot, TimeView view, const Palette& colors) {
    const Range range{view.from * 1e-9, view.to * 1e-9};
    const Ticks marks = linear_ticks(range, std::max(2, static_cast<int>(plot.width / 110)));
    const std::vector<std::string> texts = texts_of_times(marks.major);
    for (std::size_t i = 0; i < marks.major.size(); ++i) {
        const double x = plot.left + (marks.major[i] - range.low) / (range.high - range.low) * plot.width;
        picture.marks.push_back({Path{{{x, plot.top}, {x, plot.bottom() + 4}}}, {}, Stroke{colors.grid, 0.75, {}}, ""});
        const Text label{{x, plot.bottom() + 6 + label_size}, texts[i], label_size, Anchor::middle};
        picture.marks.push_back({label, colors.faint_text, {}, ""});
    }
}

Picture timeline_picture(const Lanes& lanes, const TimelineView& view, double width, Theme theme) {
    const Palette& colors = palette(theme);
    const std::vector<PictureRow> rows = rows_of(lanes, view);
    const double row_height = std::clamp(600.0 / static_cast<double>(std::max<std::size_t>(rows.size(), 1)), 2.0, 22.0);
    const bool names = row_height >= 10;
    double name_width = 0;
    for (const PictureRow& row : rows) name_width = std::max(name_width, text_width(row.name, label_size));
    Picture picture = canvas({width, 0}, colors, lanes.title);
    const Box inner{margin, margin / 2, width - 2 * margin, 0};
    const std::string subtitle = fmt::format("{} events of {} ranks, {}, coloured by {}", lanes.size(), lanes.ranks,
                                             lanes.measured ? "measured" : "predicted", to_string(view.coloring));
    double used = draw_heading(picture, inner, lanes.title, subtitle, colors);
    used +=
        draw_legend(picture, {inner.left, inner.top + used, inner.width, 20}, legend_of(lanes, view, theme), colors);
    const Box plot{inner.left + name_width + 10, inner.top + used + 8, inner.width - name_width - 10,
                   row_height * static_cast<double>(rows.size())};
    const TimeView time =
        view.time ? *view.time : TimeView{static_cast<double>(lanes.first), static_cast<double>(lanes.last)};
    const PixelColors pixel_colors(theme, view.coloring);
    std::vector<std::uint32_t> pixels(static_cast<std::size_t>(std::max(plot.width, 1.0)));
    picture.marks.push_back(
        {Rectangle{{plot.left, plot.top}, static_cast<double>(pixels.size()), plot.height}, idle_color(theme), {}, ""});
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const Point at{plot.left, plot.top + static_cast<double>(r) * row_height};
        const double height = row_height > 5 ? row_height - 1 : row_height;
        paint(rows[r].ranks, lanes, time, pixel_colors, pixels);
        draw_pixels(picture, at, height, pixels, pixel_colors.idle());
        if (names && rows[r].is_lane() && view.coloring == Coloring::activity) {
            draw_names(picture, at, height, *rows[r].ranks[0][0], lanes, time, pixels.size(), theme);
        }
        const bool spaced = names || r % static_cast<std::size_t>(std::ceil(14 / row_height)) == 0;
        if (!spaced) continue;
        picture.marks.push_back({Text{{plot.left - 10, at.y + (names ? row_height / 2 : 0) + half_height(label_size)},
                                      rows[r].name,
                                      label_size,
                                      Anchor::end},
                                 colors.text,
                                 {},
                                 ""});
    }
    draw_time_axis(picture, plot, time, colors);
    picture.height = plot.bottom() + 28 + margin / 2;
    std::get<Rectangle>(picture.marks.front().shape).height = picture.height;
    return picture;
}

}  // namespace rehearse::picture
