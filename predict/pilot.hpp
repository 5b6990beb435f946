// SPDX-License-Identifier: Apache-2.0
// Pilot measurements: a few steps that somebody has measured, on few devices, and what they say of all other points.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/units.hpp"
#include "prices/interval.hpp"

namespace rehearse::predict {

struct Job;
struct Setup;

/// A training step of the job on so many devices, as it was measured.
struct Pilot {
    std::int64_t devices = 1;
    Seconds step{};                              // or
    double samples_per_s = 0;                    // of all devices, instead
    std::optional<std::int64_t> global_batch{};  // that it was measured with, where it is known
};
/// InputError for devices, times and rates that cannot be, and for two pilots of the same devices.
void check(const std::vector<Pilot>& pilots);

/// The factor on computation with which a step takes `step`; when its communication alone takes longer, the factor that
/// comes nearest. `step_with` is the step at a factor.
double fitted_scale(const std::function<Seconds(double factor)>& step_with, Seconds step);

/// What the smallest pilot says of all points.
struct Anchor {
    std::int64_t devices = 1;
    double scale = 1;  // of its computation
};

/// A pilot beside the prediction that knows nothing of it.
struct ComparedPilot {
    std::int64_t devices = 1;
    Seconds measured{}, cold{};
    prices::Interval<Seconds> likely{};  // holds 99 % of what a model that is right would meet
    double computation = 1;              // the factor on computation that would explain it
    Seconds met{};                       // the step with that factor
    Seconds least{};                     // that the peaks of devices and links need
    std::optional<double> messages{};    // ... on exposed communication, where that would
    bool contradicts() const { return !likely.contains(measured); }
    bool is_met() const;  // by computation alone, within 0.1 %
};
/// All of the job's, by devices. InputError as make_schedule, and for a pilot of another batch.
std::vector<ComparedPilot> compared_pilots(const Job& job);

/// The same setup with its computation scaled by the anchor, and by what waiting for the slowest of more cards adds.
Setup anchored(Setup setup, const Job& job, const Anchor& anchor);

}  // namespace rehearse::predict
