// SPDX-License-Identifier: Apache-2.0
#include "gui/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/error.hpp"
#include "models/models.hpp"

namespace rehearse::gui {

namespace {

using picture::Card;
using picture::Color;

constexpr Color compute_color{0, 114, 178}, comm_color{213, 94, 0}, bubble_color{170, 174, 182}, io_color{150, 120, 70},
    good{0, 158, 115}, bad{213, 94, 0};

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
        const DataType type = prediction.precision == "fp32"   ? DataType::f32
                              : prediction.precision == "bf16" ? DataType::bf16
                                                               : DataType::f16;
        const auto peak = device.peak.find(type);
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
    cards.push_back({"Throughput", fmt::format("{:.5g} samples/s", p.samples_per_s),
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
        cards.push_back({"Training", long_time(p.training_s), fmt::format("{:.5g} node-hours", p.node_hours),
                         compute_color, "scaling: over devices"});
    }
    return cards;
}

picture::Stacks breakdown(const std::vector<Point>& points) {
    picture::Stacks stacks;
    stacks.title = "Where a step's time goes";
    stacks.subtitle =
        "of the rank that ends last; whiskers: the band of the prediction, from the errors of the prices behind it";
    stacks.categories = {"computing", "exposed communication", "bubble", "waiting for input"};
    stacks.colors = {compute_color, comm_color, bubble_color, io_color};
    for (const Point& p : points) {
        picture::StackRow row{fmt::format("{} devices", p.devices), time_text(p.step_s), {}, {}, {}};
        const std::array values{p.compute_s, p.exposed_comm_s, p.bubble_s, p.io_wait_s};
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
    stacks.categories = {"priced from measurements", "priced by the data sheet"};
    stacks.colors = {good, bubble_color};
    for (const Explanation& e : prediction.explanation) {
        if (stacks.rows.size() == 10) break;
        const bool measured =
            e.source.find("measured") != std::string::npos || e.source.find("between") != std::string::npos;
        stacks.rows.push_back(
            {e.what,
             fmt::format("{} ± {:.0f} %", time_text(e.total_s), 100 * e.error),
             {{measured ? 0U : 1U, e.total_s,
               fmt::format("{}: {} in {} steps, {}", e.what, time_text(e.total_s), e.steps, e.source)}},
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
        draw(picture, {4, top, size.width - 8, 0}, stacks, colors);
        top += height_of(stacks) + 6;
    };
    add(breakdown(prediction.points));
    add(prices(prediction));
    picture.height = std::max(top + 10, size.height);
    std::get<picture::Rectangle>(picture.marks.front().shape).height = picture.height;
    return picture;
}

picture::Picture overview_picture(const Timeline& timeline, picture::Size size, picture::Theme theme) {
    const Summary s = summarize(timeline);
    Prediction prediction;
    prediction.model = timeline.title;
    prediction.machine = timeline.measured ? "this measurement" : "this prediction";
    Point p;
    p.devices = timeline.ranks;
    p.step_s = s.step.value, p.compute_s = s.compute.value, p.exposed_comm_s = s.exposed_comm.value;
    p.bubble_s = s.bubble.value, p.io_wait_s = s.io_wait.value;
    const picture::Palette& colors = palette(theme);
    picture::Picture picture = canvas(size, colors, timeline.title);
    double top = 10 +
                 draw_heading(picture, {20, 10, size.width, 0}, timeline.title,
                              fmt::format("{} events of {} ranks, {}", timeline.events.size(), timeline.ranks,
                                          timeline.measured ? "measured" : "predicted"),
                              colors) +
                 10;
    std::vector<Card> cards{
        {"Step time", time_text(p.step_s), "of the median iteration", compute_color, "timeline: where the time goes"},
        {"Computing", time_text(p.compute_s), share_text(p.compute_s, p.step_s), good, "timeline: where the time goes"},
        {"Exposed communication", time_text(p.exposed_comm_s), share_text(p.exposed_comm_s, p.step_s), comm_color,
         "timeline: where the time goes"},
        {"Bubble", time_text(p.bubble_s), share_text(p.bubble_s, p.step_s), bubble_color, "pipeline: the schedule"},
        {"Waiting for input", time_text(p.io_wait_s), share_text(p.io_wait_s, p.step_s), io_color,
         "timeline: where the time goes"}};
    top += draw_cards(picture, {20, top, size.width - 40, 0}, cards, colors) + 6;
    const picture::Stacks stacks = breakdown({p});
    draw(picture, {4, top, size.width - 8, 0}, stacks, colors);
    picture.height = std::max(top + height_of(stacks), size.height);
    std::get<picture::Rectangle>(picture.marks.front().shape).height = picture.height;
    return picture;
}

picture::ScalingCurve curve_of(const Prediction& prediction) {
    picture::ScalingCurve curve{
        fmt::format("{} on {}, {}, {}", prediction.model, prediction.machine, prediction.plan, prediction.precision),
        {}};
    for (const Point& p : prediction.points) {
        curve.points.push_back({static_cast<double>(p.devices), p.step_s, p.step_low_s, p.step_high_s, p.samples_per_s,
                                p.efficiency, p.fits});
    }
    return curve;
}

picture::Picture pareto_picture(const std::vector<std::shared_ptr<const Prediction>>& predictions, picture::Size size,
                                picture::Theme theme) {
    picture::Chart chart;
    chart.title = "Time, devices, memory";
    chart.subtitle = "time for a million samples; dots on the dashed line are beaten by none that takes as few devices";
    chart.x = {"devices", picture::Scale::log, picture::Unit::none, {}, {}};
    chart.y = {"time of 1,000,000 samples", picture::Scale::log, picture::Unit::seconds, {}, {}};
    std::vector<picture::Point> all;
    for (const auto& prediction : predictions) {
        picture::Series series{.name = prediction->model + ", " + prediction->plan, .line = false};
        for (const Point& p : prediction->points) {
            if (!p.fits) continue;
            const picture::Point at{static_cast<double>(p.devices), 1e6 / p.samples_per_s};
            series.points.push_back(at);
            series.titles.push_back(
                fmt::format("{} devices: {} for a million samples, {} of memory, {:.4g} device-hours", p.devices,
                            long_time(at.y), to_string(Bytes{p.memory_peak_bytes}), at.y * at.x / 3600));
            chart.labels.push_back({at, to_string(Bytes{p.memory_peak_bytes}), picture::Anchor::start, {}, {}});
            all.push_back(at);
        }
        chart.series.push_back(std::move(series));
    }
    std::ranges::sort(all, {}, [](const picture::Point& p) { return std::pair{p.x, p.y}; });
    picture::Series front{.points = {}, .dots = false, .color = palette(theme).axis, .width = 1.25, .dash = {5, 4}};
    for (const picture::Point& p : all) {
        if (front.points.empty() || p.y < front.points.back().y) front.points.push_back(p);
    }
    chart.series.push_back(std::move(front));
    return xy_chart(chart, size, theme);
}

picture::Picture memory_picture(const std::vector<MemoryPart>& parts, double capacity_bytes, const std::string& title,
                                double width, picture::Theme theme) {
    picture::Stacks stacks;
    stacks.title = title;
    stacks.subtitle =
        "at the fullest moment of each class of ranks, without workspaces and what a framework keeps for itself";
    stacks.unit = picture::Unit::bytes;
    if (capacity_bytes > 0) {
        stacks.limit = capacity_bytes;
        stacks.limit_name = "capacity " + to_string(Bytes{capacity_bytes});
    }
    for (const MemoryPart& part : parts) {
        if (part.kind == "total") continue;
        auto kind = std::ranges::find(stacks.categories, part.kind);
        if (kind == stacks.categories.end()) kind = stacks.categories.insert(kind, part.kind);
        const auto category = static_cast<std::size_t>(kind - stacks.categories.begin());
        const std::string name = part.rank_class.empty() || part.rank_class == "all" ? "every rank" : part.rank_class;
        auto row = std::ranges::find(stacks.rows, name, &picture::StackRow::name);
        if (row == stacks.rows.end()) row = stacks.rows.insert(row, {name, "", {}, {}, {}});
        row->parts.push_back({category, part.bytes, fmt::format("{}: {}", part.kind, to_string(Bytes{part.bytes}))});
    }
    for (picture::StackRow& row : stacks.rows) {
        double sum = 0;
        for (const auto& part : row.parts) sum += part.value;
        row.note = to_string(Bytes{sum});
    }
    return stacks_picture(stacks, width, theme);
}

picture::Picture memory_over_time(const picture::Lanes& lanes, picture::Size size, picture::Theme theme) {
    picture::Chart chart;
    chart.title = "Memory in use over time";
    chart.x = {"time", picture::Scale::linear, picture::Unit::seconds, {}, {}};
    chart.y = {"memory", picture::Scale::linear, picture::Unit::bytes, {}, {}};
    for (const Counter& counter : lanes.counters) {
        if (counter.unit != "bytes" || counter.points.size() < 2 || chart.series.size() == 8) continue;
        picture::Series series{.name = counter.name, .dots = false};
        const std::size_t step = counter.points.size() / 4000 + 1;
        double before = counter.points.front().second;
        for (std::size_t i = 0; i < counter.points.size(); i += step) {
            const auto& [time, value] = counter.points[i];
            series.points.push_back({time.value, before});
            series.points.push_back({time.value, value});
            before = value;
        }
        chart.series.push_back(std::move(series));
    }
    if (chart.series.empty()) throw InputError("this timeline has no counters of memory");
    return xy_chart(chart, size, theme);
}

picture::Waterfall waterfall_of(const trace::Comparison& comparison) {
    picture::Waterfall waterfall;
    waterfall.title = "From the measured step to the predicted one";
    waterfall.subtitle =
        "by pass: green where the prediction is faster than the measurement, red where it is slower; the rest is "
        "overlap and waiting";
    waterfall.from_name = "measured";
    waterfall.to_name = "predicted";
    waterfall.from = comparison.whole.measured.value;
    double rest = comparison.whole.predicted.value - comparison.whole.measured.value;
    for (const trace::Row& row : comparison.passes) {
        const double change = row.predicted.value - row.measured.value;
        waterfall.changes.emplace_back(row.name.empty() ? "without a name" : row.name, change);
        rest -= change;
    }
    waterfall.changes.emplace_back("overlap and waiting", rest);
    return waterfall;
}

picture::Picture kernels_picture(const Benchmarks& benchmarks, picture::Size size, picture::Theme theme) {
    picture::Chart chart;
    chart.title = fmt::format("Kernels measured on {}", benchmarks.host.empty() ? "an unnamed host" : benchmarks.host);
    const bool rated = std::ranges::any_of(benchmarks.rows, [](const Benchmark& b) { return b.flops_per_s > 0; });
    const bool roofline =
        std::ranges::any_of(benchmarks.rows, [](const Benchmark& b) { return b.flops_per_s > 0 && b.bytes_per_s > 0; });
    chart.subtitle = roofline ? "rate against arithmetic intensity; the dashed lines are the best that was measured"
                     : rated  ? "rate against duration"
                              : "duration, in the order of the file";
    chart.x = roofline ? picture::Axis{"arithmetic intensity", picture::Scale::log, picture::Unit::intensity, {}, {}}
                       : picture::Axis{rated ? "duration" : "benchmark",
                                       rated ? picture::Scale::log : picture::Scale::linear,
                                       rated ? picture::Unit::seconds : picture::Unit::none,
                                       {},
                                       {}};
    chart.y = rated ? picture::Axis{"rate", picture::Scale::log, picture::Unit::flop_rate, {}, {}}
                    : picture::Axis{"duration", picture::Scale::log, picture::Unit::seconds, {}, {}};
    std::map<std::string, picture::Series> series;
    double best_rate = 0, best_bytes = 0, least = 1e300, number = 0;
    for (const Benchmark& b : benchmarks.rows) {
        ++number;
        if (!b.error.empty() || b.seconds <= 0 || (rated && b.flops_per_s <= 0) || (roofline && b.bytes_per_s <= 0))
            continue;
        const std::size_t slash = b.name.find('/');
        const std::string name =
            slash == std::string::npos ? "benchmarks" : b.name.substr(slash + 1, b.name.find("/real_time") - slash - 1);
        picture::Series& s = series[name];
        s.name = name;
        s.line = false;
        const double x = roofline ? b.flops_per_s / b.bytes_per_s : rated ? b.seconds : number;
        s.points.push_back({x, rated ? b.flops_per_s : b.seconds});
        s.titles.push_back(fmt::format("{}: {}{}", b.name, time_text(b.seconds),
                                       rated ? ", " + to_string(FlopRate{b.flops_per_s}) : ""));
        best_rate = std::max(best_rate, b.flops_per_s);
        best_bytes = std::max(best_bytes, b.bytes_per_s);
        least = std::min(least, x);
    }
    for (auto& [name, s] : series) chart.series.push_back(std::move(s));
    if (roofline && best_bytes > 0) {
        const double ridge = best_rate / best_bytes;
        chart.series.push_back({.points = {{std::min(least, ridge) / 2, std::min(least, ridge) / 2 * best_bytes},
                                           {ridge, best_rate},
                                           {ridge * 20, best_rate}},
                                .dots = false,
                                .color = palette(theme).axis,
                                .width = 1.5,
                                .dash = {6, 4}});
    }
    return xy_chart(chart, size, theme);
}

}  // namespace rehearse::gui
