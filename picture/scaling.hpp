// SPDX-License-Identifier: Apache-2.0
// How a training run scales: curves over the number of devices, with bands and what perfect scaling would be.
#pragma once

#include <optional>

#include "picture/chart.hpp"

namespace rehearse::picture {

struct ScalingPoint {
    double devices = 1;
    double step_s = 0, low_s = 0, high_s = 0;  // low and high: the band of the step's time
    double samples_per_s = 0;
    std::optional<double> efficiency = 1;  // absent: of what does not fit, which nothing is relative to
    bool fits = true;
    bool baseline = false;  // that efficiencies are relative to: its own is 1, whatever its step takes
};

struct ScalingCurve {
    std::string name;  // "data on summit"
    std::vector<ScalingPoint> points;
};

enum class ScalingMetric { throughput, efficiency, step };

/// Of the curve's dot at a point, for the pointer.
std::string title_of(const ScalingCurve& curve, const ScalingPoint& point);

/// Throughput on two logarithmic axes, or efficiency or the step's time over the logarithm of devices, each with what
/// perfect scaling from each curve's baseline would be, as its first point's efficiency has it (dashed). Dots' titles
/// name their point: "384 devices: ...". Points that do not fit are grey dots beside the curve; those without an
/// efficiency have no dot where that is shown. InputError without a point.
Chart scaling_chart(const std::vector<ScalingCurve>& curves, ScalingMetric metric, const std::string& title,
                    const std::string& subtitle = "");

}  // namespace rehearse::picture
