// SPDX-License-Identifier: Apache-2.0
// What a published figure counts, and what a simulated step is in its unit.
#pragma once

#include <optional>
#include <string>

#include "core/units.hpp"
#include "validate/published.hpp"
#include "validate/replay_rules.hpp"

namespace rehearse::validate {

enum class Measure {
    throughput,  // samples a second
    step,        // time of an iteration
    epoch,       // time of a pass over the dataset
    training,    // time of all epochs
    flop_rate,   // operations a second, as the source counts a sample's
    flop_rate_per_device,
    efficiency,       // throughput a device, relative to the baseline's
    flop_efficiency,  // operations a second and device, relative to the baseline's, as we count them
    speedup,          // throughput, relative to the baseline's
    staging,          // time until samples lie inside the nodes
    time,             // of a collective
    bus_bandwidth,    // of an all-reduce, as nccl-tests define it
    bandwidth,        // bytes over time
    both_directions,  // bytes over time, of two messages that cross each other
};
bool is_relative(Measure measure);
bool is_collective(Measure measure);

/// Nothing for a metric that a simulated step does not answer (accuracies, ratios of systems).
std::optional<Measure> measure_of(const PublishedRow& row, const ReplaySettings& settings);

/// What is wrong with a figure whose unit is known and counts something else than the measure, as a time in images/s;
/// empty: nothing.
std::string wrong_unit(const PublishedRow& row, Measure measure);

/// One step of a run, as simulated.
struct StepResult {
    Seconds step;
    double samples = 0;  // all devices together
    double devices = 0;
    double operations = 0;  // of a sample, forward and backward
};

/// What a figure is worked out with, beside the step.
struct Metric {
    Measure measure = Measure::throughput;
    double unit = 1;     // of the figure, in base units: 1e12 of TF/s, 60 of min
    double dataset = 0;  // samples of an epoch
    double epochs = 1;
    double sample_flops = 0;  // of the source's own count
    double counted = 1;       // samples of a throughput for each one that was trained
    std::optional<StepResult> baseline{};
};
/// InputError that names what is missing for this measure.
Metric metric_of(const PublishedRow& row, const ReplaySettings& settings, Measure measure);

/// The figure, in the unit that it was published in.
double figure_of(const StepResult& result, const Metric& metric);
/// The other way round: the step that a published figure of so many samples a step tells of. Not of relative ones.
Seconds step_of(double figure, double samples, double devices, const Metric& metric);

}  // namespace rehearse::validate
