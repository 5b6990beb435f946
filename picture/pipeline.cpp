// SPDX-License-Identifier: Apache-2.0
#include "picture/pipeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "picture/text.hpp"

namespace rehearse::picture {

namespace {

constexpr double margin = 16, row = 26, row_gap = 5, strip = 5, label_size = 11, number_size = 10;
constexpr double axis_height = 34;

bool any_strip(const PipelineDrawing& drawing) {
    return std::ranges::any_of(drawing.boxes, [](const PipelineBox& box) { return !computes(box.activity); });
}

double pitch(const PipelineDrawing& drawing) { return row + row_gap + (any_strip(drawing) ? strip + 1 : 0); }

double heading_height(const PipelineDrawing& drawing) {
    return (drawing.title.empty() ? 0 : 18) + (drawing.subtitle.empty() ? 0 : 17) + 10 + 24;
}

std::string idle_text(double share) { return fmt::format("{:.1f} % idle", 100 * share); }

// Activities that occur, in the order of the enumeration, as squares.
std::vector<LegendEntry> entries_of(const PipelineDrawing& drawing, Theme theme) {
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < activity_count; ++i) {
        const auto activity = static_cast<Activity>(i);
        const bool used = std::ranges::any_of(drawing.boxes, [&](const auto& box) { return box.activity == activity; });
        if (!used) continue;
        // A box of the backward pass is both of its halves where none of the other is drawn for itself.
        const bool split = std::ranges::any_of(
            drawing.boxes, [](const auto& box) { return box.activity == Activity::backward_weights; });
        const std::string name{activity == Activity::backward_data && !split ? "backward" : to_string(activity)};
        entries.push_back({name, color_of(activity, theme), false, false, 0, {}, true});
    }
    entries.push_back({"idle", idle_color(theme), false, false, 0, {}, true});
    return entries;
}

struct Frame {
    Box plot;
    Range span;
    double pitch = 0;
    double x(double time) const { return plot.left + (time - span.low) / (span.high - span.low) * plot.width; }
};

Color fill_of(const PipelineBox& box, Theme theme) {
    const Color color = color_of(box.activity, theme);
    return box.chunk % 2 == 1 ? mixed(color, palette(theme).background, 0.62) : color;
}

void draw_box(Picture& picture, const Frame& frame, const PipelineBox& box, double left, double right, Theme theme) {
    const double top = frame.plot.top + static_cast<double>(box.lane) * frame.pitch;
    const double width = std::max(right - left, 0.35);
    const Color fill = fill_of(box, theme);
    if (!computes(box.activity)) {
        picture.marks.push_back({Rectangle{{left, top + row + 1}, width, strip}, fill, {}, box.title});
        return;
    }
    const double inset = width > 4 ? 0.5 : 0;
    picture.marks.push_back(
        {Rectangle{{left + inset, top}, width - 2 * inset, row, width > 8 ? 2.0 : 0.0}, fill, {}, box.title});
    if (box.micro_batch < 0) return;
    const std::string number = fmt::format("{}", box.micro_batch);
    if (text_width(number, number_size) + 1 > width) return;
    picture.marks.push_back(
        {Text{{(left + right) / 2, top + row / 2 + half_height(number_size)}, number, number_size, Anchor::middle},
         readable_on(fill),
         {},
         ""});
}

// Boxes of one lane and kind that are too thin to be told apart are drawn as one, so that the number of marks is bound
// by the picture's width.
void draw_boxes(Picture& picture, const Frame& frame, const PipelineDrawing& drawing, Theme theme) {
    std::vector<const PipelineBox*> boxes;
    for (const PipelineBox& box : drawing.boxes) {
        if (box.end >= frame.span.low && box.start <= frame.span.high) boxes.push_back(&box);
    }
    std::ranges::stable_sort(boxes, [](const PipelineBox* a, const PipelineBox* b) {
        if (a->lane != b->lane) return a->lane < b->lane;
        if (computes(a->activity) != computes(b->activity)) return computes(a->activity);
        return a->start < b->start;
    });
    for (std::size_t i = 0; i < boxes.size();) {
        PipelineBox box = *boxes[i];
        const double left = std::max(frame.x(box.start), frame.plot.left);
        std::size_t next = i + 1;
        const auto thin = [&](const PipelineBox& b) { return frame.x(b.end) - frame.x(b.start) < 1; };
        while (thin(box) && next < boxes.size() && thin(*boxes[next]) && boxes[next]->lane == box.lane &&
               boxes[next]->activity == box.activity && frame.x(boxes[next]->end) - left < 1) {
            box.end = std::max(box.end, boxes[next]->end);
            ++next;
        }
        draw_box(picture, frame, box, left, std::min(frame.x(box.end), frame.plot.right()), theme);
        i = next;
    }
}

void draw_axis(Picture& picture, const Frame& frame, bool clock, const Palette& colors) {
    const Ticks marks = linear_ticks(frame.span, std::max(2, static_cast<int>(frame.plot.width / 110)));
    const double bottom = frame.plot.bottom();
    const std::vector<std::string> times = texts_of_times(marks.major);
    for (std::size_t i = 0; i < marks.major.size(); ++i) {
        const double value = marks.major[i], x = frame.x(value);
        picture.marks.push_back(
            {Path{{{x, frame.plot.top - 3}, {x, bottom + 4}}}, {}, Stroke{colors.grid, 0.75, {}}, ""});
        const Text label{
            {x, bottom + 6 + label_size}, clock ? times[i] : text_of(value, Unit::none), label_size, Anchor::middle};
        picture.marks.push_back({label, colors.faint_text, {}, ""});
    }
}

}  // namespace

Range time_of(const PipelineDrawing& drawing) {
    Range span{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    for (const PipelineBox& box : drawing.boxes) {
        span = {std::min(span.low, box.start), std::max(span.high, box.end)};
    }
    if (!(span.high > span.low)) return {0, 1};
    return span;
}

double idle_share(const PipelineDrawing& drawing, std::size_t lane) {
    const Range span = time_of(drawing);
    double busy = 0;
    for (const PipelineBox& box : drawing.boxes) {
        if (box.lane == lane && computes(box.activity)) busy += box.busy.value_or(box.end - box.start);
    }
    return drawing.boxes.empty() ? 0 : 1 - busy / (span.high - span.low);
}

double idle_share(const PipelineDrawing& drawing) {
    double sum = 0;
    for (std::size_t lane = 0; lane < drawing.lanes.size(); ++lane) sum += idle_share(drawing, lane);
    return drawing.lanes.empty() ? 0 : sum / static_cast<double>(drawing.lanes.size());
}

double height_of(const PipelineDrawing& drawing) {
    return heading_height(drawing) + static_cast<double>(drawing.lanes.size()) * pitch(drawing) + axis_height + margin;
}

void draw(Picture& picture, Box box, const PipelineDrawing& drawing, Range span, Theme theme) {
    const Palette& colors = palette(theme);
    const Box inner{box.left + margin, box.top + margin / 2, box.width - 2 * margin, box.height};
    std::string subtitle = drawing.subtitle;
    if (!drawing.lanes.empty()) subtitle += (subtitle.empty() ? "" : ", ") + idle_text(idle_share(drawing));
    double used = draw_heading(picture, inner, drawing.title, subtitle, colors);
    used += draw_legend(picture, {inner.left, inner.top + used, inner.width, 20}, entries_of(drawing, theme), colors);
    double names = 0;
    for (const std::string& lane : drawing.lanes) names = std::max(names, text_width(lane, label_size));
    const double shares = text_width("100.0 % idle", label_size) + 8;
    Frame frame{
        {inner.left + names + 10, inner.top + used + 8, inner.width - names - 10 - shares, 0}, span, pitch(drawing)};
    frame.plot.height = static_cast<double>(drawing.lanes.size()) * frame.pitch;
    draw_axis(picture, frame, drawing.clock, colors);
    for (std::size_t lane = 0; lane < drawing.lanes.size(); ++lane) {
        const double top = frame.plot.top + static_cast<double>(lane) * frame.pitch;
        const double base = top + row / 2 + half_height(label_size);
        picture.marks.push_back({Rectangle{{frame.plot.left, top}, frame.plot.width, row}, idle_color(theme), {}, ""});
        picture.marks.push_back(
            {Text{{frame.plot.left - 10, base}, drawing.lanes[lane], label_size, Anchor::end}, colors.text, {}, ""});
        picture.marks.push_back(
            {Text{{inner.right(), base}, idle_text(idle_share(drawing, lane)), label_size, Anchor::end},
             colors.faint_text,
             {},
             ""});
    }
    draw_boxes(picture, frame, drawing, theme);
}

Picture pipelines_picture(const std::vector<PipelineDrawing>& drawings, double width, Theme theme) {
    double height = 0;
    Range span{0, 0};
    for (const PipelineDrawing& each : drawings) {
        const Range time = time_of(each);
        const bool first = &each == &drawings.front();
        span = {first ? time.low : std::min(span.low, time.low), first ? time.high : std::max(span.high, time.high)};
        height += height_of(each);
    }
    Picture picture = canvas({width, height}, palette(theme), drawings.empty() ? "" : drawings.front().title);
    double top = 0;
    for (const PipelineDrawing& each : drawings) {
        draw(picture, {0, top, width, height_of(each)}, each, span, theme);
        top += height_of(each);
    }
    return picture;
}

Picture pipeline_picture(const PipelineDrawing& drawing, double width, Theme theme) {
    return pipelines_picture({drawing}, width, theme);
}

}  // namespace rehearse::picture
