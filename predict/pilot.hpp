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

/// Returns the factor on computation with which a step takes `step`; when its communication alone takes longer, the
/// factor that comes nearest. `step_with` is the step at a factor.
double fitted_scale(const std::function<Seconds(double factor)>& step_with, Seconds step);

/// What pilots say of a point: computation is that of the largest pilot that is no larger than the point (or of the
/// smallest), messages are as all of them together say.
struct Anchor {
    std::int64_t devices = 1;  // of that pilot
    double computation = 1;    // takes so many times as long as its prices say
    double messages = 0;       // where their prices are in their band, in standard deviations: between its ends
    double messages_left = 1;  // what pilots leave open of that band: its standard deviation over what it was
};

/// What pilots say, in the order of their devices.
struct Anchors {
    std::vector<Anchor> pilots;
    const Anchor& of(std::int64_t devices) const;
};

/// A cold setup and the step that was measured with it.
struct MeasuredSetup {
    const Setup* setup = nullptr;
    Seconds step{};
};

/// Computation is scaled to meet the smallest. Where others are on more nodes, messages are moved in their band: as far
/// as is most likely if what is left is normal with the error of the distance between both (maximum a posteriori), and
/// never beyond the band's ends. Then computation is scaled to meet each of them: whatever else more nodes bring.
/// Pilots by devices, the smallest first.
Anchors fitted(const std::vector<MeasuredSetup>& pilots);

/// Returns the same setup with computation scaled and messages moved, beyond what an anchor has done to it before. What
/// a framework copies for messages is no computation, and takes as long as without.
Setup anchored(Setup setup, const Anchor& anchor);

/// A pilot beside a prediction that knows nothing of it.
struct ComparedPilot {
    std::int64_t devices = 1;
    std::optional<std::int64_t> anchored_on{};  // devices of the smallest pilot, that the prediction is scaled to
    Seconds measured{}, predicted{};
    prices::Interval<Seconds> likely{};  // holds 99 % of what a model that is right would meet
    double computation = 1;              // the factor on computation that would explain it
    Seconds met{};                       // the step with that factor
    Seconds least{};                     // that the peaks of devices and links need
    std::optional<double> messages{};    // ... on exposed communication, where that would
    bool contradicts() const { return !likely.contains(measured); }
    bool is_met() const;  // by computation alone, within 0.1 %
};

/// What a job's pilots say, and where they contradict the model.
struct Piloted {
    Anchors anchors;                        // none without pilots
    std::vector<ComparedPilot> compared{};  // by devices: the smallest with the cold prediction, others with the one
                                            // that is anchored on the smallest
};
/// InputError as make_schedule, and for a pilot of another batch.
Piloted piloted(const Job& job);

}  // namespace rehearse::predict
