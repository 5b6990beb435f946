// SPDX-License-Identifier: Apache-2.0
#include "picture/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rehearse::picture {

namespace {

constexpr Color grey{136, 136, 136};

struct Shown {
    double value, low, high;
};

// The band of the time is the band of all that is made of it: a longer step is a lower throughput.
Shown shown(const ScalingPoint& p, ScalingMetric metric) {
    const double value = metric == ScalingMetric::step         ? p.step_s
                         : metric == ScalingMetric::throughput ? p.samples_per_s
                                                               : p.efficiency;
    if (p.low_s <= 0 || p.high_s <= 0 || p.step_s <= 0) return {value, value, value};
    if (metric == ScalingMetric::step) return {value, p.low_s, p.high_s};
    return {value, value * p.step_s / p.high_s, value * p.step_s / p.low_s};
}

// The first curve has the first colour: the lines of perfect scaling take none.
void add(Chart& chart, const ScalingCurve& curve, ScalingMetric metric) {
    Series series{.name = curve.name};
    Series beyond{.name = curve.name + ", does not fit", .line = false, .color = grey};
    for (const ScalingPoint& p : curve.points) {
        const Shown s = shown(p, metric);
        Series& of = p.fits ? series : beyond;
        of.points.push_back({p.devices, s.value});
        of.titles.push_back(title_of(curve, p));
        if (!p.fits) continue;
        of.low.push_back(s.low);
        of.high.push_back(s.high);
    }
    chart.series.push_back(std::move(series));
    if (!beyond.points.empty()) chart.series.push_back(std::move(beyond));
}

}  // namespace

std::string title_of(const ScalingCurve& curve, const ScalingPoint& p) {
    return fmt::format("{} devices: {} a step ({} to {}), {:.5g} samples/s, efficiency {:.1f} %{}\n{}", p.devices,
                       to_string(Seconds{p.step_s}), to_string(Seconds{p.low_s}), to_string(Seconds{p.high_s}),
                       p.samples_per_s, 100 * p.efficiency, p.fits ? "" : ", does not fit in memory", curve.name);
}

Chart scaling_chart(const std::vector<ScalingCurve>& curves, ScalingMetric metric, const std::string& title,
                    const std::string& subtitle) {
    const bool any = std::ranges::any_of(curves, [](const ScalingCurve& c) { return !c.points.empty(); });
    if (!any) throw InputError("a scaling curve needs at least one point");
    Chart chart;
    chart.title = title;
    chart.subtitle = subtitle;
    chart.x = {"devices", Scale::log, Unit::none, {}, {}};
    if (metric == ScalingMetric::throughput) chart.y = {"samples/s", Scale::log, Unit::none, {}, {}};
    if (metric == ScalingMetric::efficiency) chart.y = {"efficiency", Scale::linear, Unit::share, Range{0, 1.2}, {}};
    if (metric == ScalingMetric::step) chart.y = {"time of a step", Scale::linear, Unit::seconds, {}, {}};
    double most = 0;
    for (const ScalingCurve& curve : curves) {
        for (const ScalingPoint& p : curve.points) most = std::max(most, metric == ScalingMetric::step ? p.high_s : 0);
    }
    if (metric == ScalingMetric::step) chart.y.range = nice_range(Scale::linear, {0, most}, 6);
    for (const ScalingCurve& curve : curves) add(chart, curve, metric);
    for (const ScalingCurve& curve : curves) {
        const auto fitting = std::ranges::find_if(curve.points, &ScalingPoint::fits);
        if (metric != ScalingMetric::throughput || curve.points.size() < 2 || fitting == curve.points.end()) continue;
        const ScalingPoint& first = *fitting;
        const double last = curve.points.back().devices;
        chart.series.push_back(
            {.points = {{first.devices, first.samples_per_s}, {last, first.samples_per_s * last / first.devices}},
             .dots = false,
             .color = grey,
             .width = 1,
             .dash = {5, 4}});
    }
    return chart;
}

}  // namespace rehearse::picture
