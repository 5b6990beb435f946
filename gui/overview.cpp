// SPDX-License-Identifier: Apache-2.0
#include "gui/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/precision.hpp"
#include "models/models.hpp"
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

// The share of the devices' peak in the prediction's data type; nothing when the machine has no such peak.
std::optional<double> utilization(const Prediction& prediction, const Point& p) {
    try {
        const Machine machine = models::load_machine(prediction.machine);
        const DeviceClass& device = class_of(machine, 0);
        const auto peak = device.peak.find(types_of(parse_precision(prediction.precision)).product);
        if (peak == device.peak.end()) return std::nullopt;
        return p.flops_per_s / (static_cast<double>(p.devices) * peak->second.value.value);
    } catch (const std::exception&) {
        return std::nullopt;
    }
}

std::vector<Card> cards_of(const Prediction& prediction, const Point& p) {
    std::vector<Card> cards;
    cards.push_back({"Step time", time_text(p.step_s),
                     fmt::format("band {} to {}", time_text(p.step_low_s), time_text(p.step_high_s)), compute_color,
                     "timeline: where the time goes"});
    cards.push_back(
        {"Throughput",
         picture::text_of(p.samples_per_s, picture::Unit::none) + (p.samples_per_s < 1e6 ? " samples/s" : "samples/s"),
         fmt::format("global batch {}", p.global_batch), compute_color, "scaling: over devices"});
    cards.push_back({"Scaling efficiency", fmt::format("{:.1f} %", 100 * p.efficiency),
                     fmt::format("{} devices, {} nodes", p.devices, p.nodes), p.efficiency > 0.8 ? good : bad,
                     "scaling: over devices"});
    if (const auto mfu = utilization(prediction, p)) {
        cards.push_back({"Model FLOP utilization", fmt::format("{:.1f} %", 100 * *mfu),
                         to_string(FlopRate{p.flops_per_s}) + " in all", compute_color,
                         "kernels: what the devices reach"});
    }
    cards.push_back({"Exposed communication", time_text(p.exposed_comm_s), share_text(p.exposed_comm_s, p.step_s),
                     p.exposed_comm_s > 0.2 * p.step_s ? bad : good, "timeline: where the time goes"});
    cards.push_back({"Pipeline bubble", time_text(p.bubble_s), share_text(p.bubble_s, p.step_s),
                     p.bubble_s > 0.2 * p.step_s ? bad : good, "pipeline: the schedule"});
    cards.push_back({"Waiting for input", time_text(p.io_wait_s), share_text(p.io_wait_s, p.step_s),
                     p.io_wait_s > 0.1 * p.step_s ? bad : good, "timeline: where the time goes"});
    cards.push_back({"Memory of a device", to_string(Bytes{p.memory_peak_bytes}),
                     fmt::format("of {}: {:.0f} %{}", to_string(Bytes{p.memory_capacity_bytes}),
                                 100 * p.memory_peak_bytes / std::max(p.memory_capacity_bytes, 1.0),
                                 p.fits ? "" : ", does not fit"),
                     p.fits ? good : bad, "memory: by kind"});
    if (p.training_s > 0) {
        const std::string name = p.epochs > 0 ? fmt::format("Training of {:.4g} epochs", p.epochs) : "Training";
        cards.push_back({name, long_time(p.training_s), fmt::format("{:.4g} node-hours", p.node_hours), compute_color,
                         "scaling: over devices"});
    }
    return cards;
}

picture::Stacks breakdown(const std::vector<Point>& points) {
    picture::Stacks stacks;
    stacks.title = "Where a step's time goes";
    stacks.subtitle =
        "of the rank that ends last; whiskers: the band of the prediction, from the errors of the prices behind it";
    stacks.categories = {"computing", "exposed communication", "bubble", "waiting for input", "rest"};
    stacks.colors = {compute_color, comm_color, bubble_color, io_color, rest_color};
    for (const Point& p : points) {
        picture::StackRow row{fmt::format("{} devices", p.devices), time_text(p.step_s), {}, {}, {}};
        const std::array values{p.compute_s, p.exposed_comm_s, p.bubble_s, p.io_wait_s, p.rest_s};
        for (std::size_t i = 0; i < values.size(); ++i) row.parts.push_back({i, values[i], ""});
        if (p.step_low_s > 0) row.low = p.step_low_s, row.high = p.step_high_s;
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
    for (const Explanation& e : prediction.explanation) {
        if (stacks.rows.size() == 10) break;
        // A document of an earlier version does not say it: no price is called measured that may not be.
        const auto found = std::ranges::find(stacks.categories, e.basis) - stacks.categories.begin();
        const std::size_t basis = std::min(static_cast<std::size_t>(found), all.size() - 1);
        stacks.rows.push_back({e.what,
                               fmt::format("{} ± {:.0f} %", time_text(e.total_s), 100 * e.error),
                               {{basis, e.total_s,
                                 fmt::format("{}: {} in {} steps, {}: {}", e.what, time_text(e.total_s), e.steps,
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
                              fmt::format("{} devices, plan {}, {}, {} simulation", p.devices, prediction.plan,
                                          prediction.precision, p.mode),
                              colors) +
                 10;
    top += draw_cards(picture, {20, top, size.width - 40, 0}, cards_of(prediction, p), colors) + 6;
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
    p.devices = timeline.ranks;
    p.step_s = s.step.value, p.compute_s = s.compute.value, p.exposed_comm_s = s.exposed_comm.value;
    p.bubble_s = s.bubble.value, p.io_wait_s = s.io_wait.value, p.rest_s = s.rest.value;
    const picture::Palette& colors = palette(theme);
    picture::Picture picture = canvas(size, colors, timeline.title);
    double top = 10 +
                 draw_heading(picture, {20, 10, size.width - 40, 0}, timeline.title,
                              fmt::format("{} events of {} ranks, {}", timeline.events.size(), timeline.ranks,
                                          timeline.measured ? "measured" : "predicted"),
                              colors) +
                 10;
    std::vector<Card> cards{
        {"Step time", time_text(p.step_s), "of the median iteration", compute_color, "timeline: where the time goes"},
        {"Computing", time_text(p.compute_s), share_text(p.compute_s, p.step_s), good, "timeline: where the time goes"},
        {"Exposed communication", time_text(p.exposed_comm_s), share_text(p.exposed_comm_s, p.step_s), comm_color,
         "timeline: where the time goes"},
        {"Idle", time_text(p.rest_s), share_text(p.rest_s, p.step_s), rest_color, "pipeline: the schedule"},
        {"Waiting for input", time_text(p.io_wait_s), share_text(p.io_wait_s, p.step_s), io_color,
         "timeline: where the time goes"}};
    top += draw_cards(picture, {20, top, size.width - 40, 0}, cards, colors) + 6;
    const picture::Stacks stacks = breakdown({p});
    draw(picture, {4, top, size.width - 8, 0}, stacks, colors);
    picture.height = std::max(top + height_of(stacks), size.height);
    std::get<picture::Rectangle>(picture.marks.front().shape).height = picture.height;
    return picture;
}

}  // namespace rehearse::gui
