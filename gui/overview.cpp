// SPDX-License-Identifier: Apache-2.0
#include "gui/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "picture/text.hpp"
#include "prices/prices.hpp"

namespace rehearse::gui {

namespace {

using picture::Card;
using picture::Color;

constexpr Color compute_color{0, 114, 178}, comm_color{213, 94, 0}, bubble_color{170, 174, 182}, io_color{150, 120, 70},
    rest_color{200, 190, 205}, good{0, 158, 115}, bad{213, 94, 0};

std::string time_text(double s) { return to_string(Seconds{s}); }
std::string share_text(double part, double whole) { return fmt::format("{:.1f} % of the step", 100 * part / whole); }

std::string long_time(double s) {
    if (s < 120) return time_text(s);
    return s < 7200        ? fmt::format("{:.1f} min", s / 60)
           : s < 2 * 86400 ? fmt::format("{:.1f} h", s / 3600)
                           : fmt::format("{:.1f} days", s / 86400);
}

std::vector<Card> cards_of(const Point& p) {
    const Summary& time = p.figures.time;
    std::vector<Card> cards;
    cards.push_back({p.noisy ? "Step time without noise" : "Step time", time_text(time.step.value),
                     fmt::format("band {} to {}", time_text(p.band.low.value), time_text(p.band.high.value)),
                     compute_color, "timeline: where the time goes"});
    if (p.noisy) {
        cards.push_back(
            {"Noisy step", time_text(p.noisy->mean.value),
             fmt::format("nine in ten: {} to {}", time_text(p.noisy->p05.value), time_text(p.noisy->p95.value)),
             compute_color, "scaling: over devices"});
    }
    cards.push_back({"Throughput",
                     picture::text_of(p.samples_per_s(), picture::Unit::none) +
                         (p.samples_per_s() < 1e6 ? " samples/s" : "samples/s"),
                     fmt::format("global batch {}{}", p.figures.global_batch, p.noisy ? ", with the noise" : ""),
                     compute_color, "scaling: over devices"});
    cards.push_back({"Scaling efficiency",
                     p.efficiency ? fmt::format("{:.1f} %", 100 * *p.efficiency) : "none: does not fit",
                     fmt::format("{} devices, {} nodes", p.figures.devices, p.nodes),
                     p.efficiency.value_or(0) > 0.8 ? good : bad, "scaling: over devices"});
    if (p.utilization) {
        cards.push_back({"Model FLOP utilization", fmt::format("{:.1f} %", 100 * *p.utilization),
                         to_string(p.figures.flops_per_s()) + " in all", compute_color,
                         "kernels: what the devices reach"});
    }
    cards.push_back({"Exposed communication", time_text(time.exposed_comm.value),
                     share_text(time.exposed_comm.value, time.step.value),
                     time.exposed_comm.value > 0.2 * time.step.value ? bad : good, "timeline: where the time goes"});
    cards.push_back({"Pipeline bubble", time_text(time.bubble.value), share_text(time.bubble.value, time.step.value),
                     time.bubble.value > 0.2 * time.step.value ? bad : good, "pipeline: the schedule"});
    cards.push_back({"Waiting for input", time_text(time.io_wait.value),
                     share_text(time.io_wait.value, time.step.value),
                     time.io_wait.value > 0.1 * time.step.value ? bad : good, "timeline: where the time goes"});
    cards.push_back({"Memory of a device", to_string(p.memory.peak),
                     fmt::format("of {}: {:.0f} %{}", to_string(p.memory.capacity),
                                 100 * p.memory.peak.value / std::max(p.memory.capacity.value, 1.0),
                                 p.memory.fits ? "" : ", does not fit"),
                     p.memory.fits ? good : bad, "memory: by kind"});
    if (p.training) {
        cards.push_back({fmt::format("Training of {:.4g} epochs", p.training->epochs), long_time(p.training->all.value),
                         fmt::format("{:.4g} node-hours", p.training->node_hours), compute_color,
                         "scaling: over devices"});
    }
    return cards;
}

// What is to be known beside the figures, a line each or several; the height that they take.
double draw_remarks(picture::Picture& picture, picture::Box box, const Prediction& prediction,
                    const picture::Palette& colors) {
    constexpr double letters = 12, line_height = 17;
    double height = 0;
    const auto add = [&](const char* kind, const std::vector<std::string>& remarks, Color color) {
        for (const std::string& remark : remarks) {
            for (const std::string& line : picture::wrapped(kind + remark, letters, box.width)) {
                height += line_height;
                picture.marks.push_back(
                    {picture::Text{{box.left, box.top + height - 4}, line, letters}, color, {}, ""});
            }
        }
    };
    add("warning: ", prediction.warnings, bad);
    add("note: ", prediction.notes, colors.faint_text);
    return height > 0 ? height + 8 : 0;
}

picture::Stacks breakdown(const std::vector<Point>& points) {
    picture::Stacks stacks;
    stacks.title = "Where a step's time goes";
    stacks.subtitle =
        "of the rank that ends last; whiskers: the band of the prediction, from the errors of the prices behind it";
    stacks.categories = {"computing", "exposed communication", "bubble", "waiting for input", "rest"};
    stacks.colors = {compute_color, comm_color, bubble_color, io_color, rest_color};
    for (const Point& p : points) {
        const Summary& time = p.figures.time;
        picture::StackRow row{fmt::format("{} devices", p.figures.devices), time_text(time.step.value), {}, {}, {}};
        const std::array values{time.compute.value, time.exposed_comm.value, time.bubble.value, time.io_wait.value,
                                time.rest.value};
        for (std::size_t i = 0; i < values.size(); ++i) row.parts.push_back({i, values[i], ""});
        if (p.band.low > Seconds{}) row.low = p.band.low.value, row.high = p.band.high.value;
        stacks.rows.push_back(row);
    }
    return stacks;
}

picture::Stacks prices(const Prediction& prediction) {
    picture::Stacks stacks;
    stacks.title = "What takes the time, and where its price comes from";
    stacks.subtitle = "the largest of the last point; the pointer shows the source";
    constexpr std::array all{Basis::measured_here, Basis::measured_on_class, Basis::modelled};
    for (const Basis basis : all) stacks.categories.emplace_back(to_string(basis));
    stacks.colors = {good, compute_color, bubble_color};
    for (const predict::Explained& e : prediction.explanation) {
        if (stacks.rows.size() == 10) break;
        const auto basis = static_cast<std::size_t>(std::ranges::find(all, e.basis) - all.begin());
        stacks.rows.push_back({e.what,
                               fmt::format("{} ± {:.0f} %", time_text(e.total.value), 100 * e.error),
                               {{basis, e.total.value,
                                 fmt::format("{}: {} in {} steps, {}: {}", e.what, time_text(e.total.value), e.steps,
                                             stacks.categories[basis], e.source)}},
                               {},
                               {}});
    }
    return stacks;
}

}  // namespace

picture::Picture overview_picture(const Prediction& prediction, std::size_t point, picture::Size size,
                                  picture::Theme theme) {
    const picture::Palette& colors = palette(theme);
    const Point& p = prediction.points[std::min(point, prediction.points.size() - 1)];
    picture::Picture picture = canvas(size, colors, prediction.model);
    double top = 10 +
                 draw_heading(picture, {20, 10, size.width - 40, 0},
                              fmt::format("{} on {}", prediction.model, prediction.machine),
                              fmt::format("{} devices, plan {}, {}, {} simulation", p.figures.devices, prediction.plan,
                                          prediction.precision, p.mode == sim::Mode::exact ? "exact" : "folded"),
                              colors) +
                 10;
    top += draw_remarks(picture, {20, top, size.width - 40, 0}, prediction, colors);
    top += draw_cards(picture, {20, top, size.width - 40, 0}, cards_of(p), colors) + 6;
    const auto add = [&](const picture::Stacks& stacks) {
        if (stacks.rows.empty()) return;
        top += std::max(draw(picture, {4, top, size.width - 8, 0}, stacks, colors), height_of(stacks)) + 6;
    };
    add(breakdown(prediction.points));
    add(prices(prediction));
    picture.height = std::max(top + 10, size.height);
    std::get<picture::Rectangle>(picture.marks.front().shape).height = picture.height;
    return picture;
}

picture::Picture overview_picture(const Timeline& timeline, const Summary& s, picture::Size size,
                                  picture::Theme theme) {
    Prediction prediction;
    prediction.model = timeline.title;
    prediction.machine = timeline.measured ? "this measurement" : "this prediction";
    Point p;
    p.figures.devices = timeline.ranks;
    p.figures.time = s;
    const picture::Palette& colors = palette(theme);
    picture::Picture picture = canvas(size, colors, timeline.title);
    double top = 10 +
                 draw_heading(picture, {20, 10, size.width - 40, 0}, timeline.title,
                              fmt::format("{} events of {} ranks, {}", timeline.events.size(), timeline.ranks,
                                          timeline.measured ? "measured" : "predicted"),
                              colors) +
                 10;
    const std::optional<std::int64_t> workers = workers_of_servers(timeline);
    std::vector<Card> cards{
        {"Step time", time_text(s.step.value),
         workers ? fmt::format("mean of {} workers", *workers) : "of the median iteration", compute_color,
         "timeline: where the time goes"},
        {"Computing", time_text(s.compute.value), share_text(s.compute.value, s.step.value), good,
         "timeline: where the time goes"},
        {"Exposed communication", time_text(s.exposed_comm.value), share_text(s.exposed_comm.value, s.step.value),
         comm_color, "timeline: where the time goes"},
        {"Idle", time_text(s.rest.value), share_text(s.rest.value, s.step.value), rest_color, "pipeline: the schedule"},
        {"Waiting for input", time_text(s.io_wait.value), share_text(s.io_wait.value, s.step.value), io_color,
         "timeline: where the time goes"}};
    top += draw_cards(picture, {20, top, size.width - 40, 0}, cards, colors) + 6;
    const picture::Stacks stacks = breakdown({p});
    draw(picture, {4, top, size.width - 8, 0}, stacks, colors);
    picture.height = std::max(top + height_of(stacks), size.height);
    std::get<picture::Rectangle>(picture.marks.front().shape).height = picture.height;
    return picture;
}

}  // namespace rehearse::gui
