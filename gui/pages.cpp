// SPDX-License-Identifier: Apache-2.0
#include "gui/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"

namespace rehearse::gui {

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
                            to_string(Seconds{at.y}), to_string(Bytes{p.memory_peak_bytes}), at.y * at.x / 3600));
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
        s.titles.push_back(fmt::format("{}: {}{}", b.name, to_string(Seconds{b.seconds}),
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
