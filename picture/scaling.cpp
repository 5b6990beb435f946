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

std::optional<double> value_of(const ScalingPoint& p, ScalingMetric metric) {
    if (metric == ScalingMetric::efficiency) return p.efficiency;
    return metric == ScalingMetric::step ? p.step_s : p.samples_per_s;
}

// The band of the time is the band of all that is made of it: a longer step is a lower throughput.
Shown shown(const ScalingPoint& p, double value, ScalingMetric metric) {
    const bool by_definition = metric == ScalingMetric::efficiency && p.baseline;
    if (by_definition || p.low_s <= 0 || p.high_s <= 0 || p.step_s <= 0) return {value, value, value};
    if (metric == ScalingMetric::step) return {value, p.low_s, p.high_s};
    return {value, value * p.step_s / p.high_s, value * p.step_s / p.low_s};
}

// The first curve has the first colour: the lines of perfect scaling take none.
void add(Chart& chart, const ScalingCurve& curve, ScalingMetric metric) {
    Series series{.name = curve.name};
    Series beyond{.name = curve.name + ", does not fit", .line = false, .color = grey};
    for (const ScalingPoint& p : curve.points) {
        const std::optional<double> value = value_of(p, metric);
        if (!value) continue;
        const Shown s = shown(p, *value, metric);
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

// What a point would have if each device did as much as those of the baseline, which need not be a point: that is what
// the first one's do, over its efficiency.
double perfect(const ScalingPoint& first, const ScalingPoint& p, ScalingMetric metric) {
    if (metric == ScalingMetric::efficiency) return 1;
    const double efficiency = first.efficiency.value_or(1) > 0 ? first.efficiency.value_or(1) : 1;
    const double rate = first.samples_per_s / efficiency * p.devices / first.devices;
    return metric == ScalingMetric::throughput ? rate : p.samples_per_s * p.step_s / rate;
}

void add_perfect(Chart& chart, const ScalingCurve& curve, ScalingMetric metric) {
    const auto first = std::ranges::find_if(curve.points, &ScalingPoint::fits);
    if (curve.points.end() - first < 2 || !(first->samples_per_s > 0)) return;
    Series line{.dots = false, .color = grey, .width = 1, .dash = {5, 4}};
    for (auto p = first; p != curve.points.end(); ++p) line.points.push_back({p->devices, perfect(*first, *p, metric)});
    chart.series.push_back(std::move(line));
}

// Efficiencies are compared with 1, whatever they are.
Range range_of(const std::vector<ScalingCurve>& curves, ScalingMetric metric) {
    constexpr double usual = 1.2;
    double most = metric == ScalingMetric::efficiency ? usual : 0;
    for (const ScalingCurve& curve : curves) {
        for (const ScalingPoint& p : curve.points) {
            if (const std::optional<double> value = value_of(p, metric))
                most = std::max({most, *value, shown(p, *value, metric).high});
        }
    }
    return metric == ScalingMetric::efficiency && most <= usual ? Range{0, usual}
                                                                : nice_range(Scale::linear, {0, most}, 6);
}

}  // namespace

std::string title_of(const ScalingCurve& curve, const ScalingPoint& p) {
    return fmt::format("{} devices: {} a step ({} to {}), {:.5g} samples/s{}{}\n{}", p.devices,
                       to_string(Seconds{p.step_s}), to_string(Seconds{p.low_s}), to_string(Seconds{p.high_s}),
                       p.samples_per_s, p.efficiency ? fmt::format(", efficiency {:.1f} %", 100 * *p.efficiency) : "",
                       p.fits ? "" : ", does not fit in memory", curve.name);
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
    if (metric == ScalingMetric::efficiency) chart.y = {"efficiency", Scale::linear, Unit::share, {}, {}};
    if (metric == ScalingMetric::step) chart.y = {"time of a step", Scale::linear, Unit::seconds, {}, {}};
    if (metric != ScalingMetric::throughput) chart.y.range = range_of(curves, metric);
    for (const ScalingCurve& curve : curves) add(chart, curve, metric);
    for (const ScalingCurve& curve : curves) add_perfect(chart, curve, metric);
    return chart;
}

}  // namespace rehearse::picture
