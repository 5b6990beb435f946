// SPDX-License-Identifier: Apache-2.0
// What is predicted for a job: plain values, no text but names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/figures.hpp"
#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "core/timeline.hpp"
#include "core/units.hpp"
#include "predict/conditions.hpp"
#include "predict/framework.hpp"
#include "predict/language_memory.hpp"
#include "predict/pilot.hpp"
#include "predict/training.hpp"
#include "predict/uncertainty.hpp"
#include "prices/interval.hpp"
#include "sim/host/staging.hpp"
#include "sim/simulate.hpp"

namespace rehearse::predict {

/// The device that comes nearest to its memory, or goes beyond it most.
struct MemoryFit {
    Bytes peak, capacity;
    bool fits = true;
};

/// Of training with servers, of as many steps as were simulated: when its quorum of the groups is through, and all.
struct Through {
    Seconds quorum, all;
};

/// Steps under jitter.
struct NoisyStep {
    double sigma = 0;
    int samples = 0;
    Seconds mean, p05, p95;
    double samples_per_s = 0;  // what comes late is not waited for, and does not count
};

/// Samples that are read from a storage tier.
struct Input {
    Bandwidth rate;                               // what all devices read together, over the whole step
    std::optional<std::int64_t> bound_devices{};  // from which on a shared tier is the bound
    std::int64_t data_servers = 0;                // that keep samples in memory; 0: there are none
    std::optional<double> cached_share{};         // ... what share of them
    std::optional<sim::Staging> staging{};
    std::int64_t left_out = 0;  // samples of the data set that no node keeps
};

struct Checkpoints {
    sim::Checkpoint written;
    double share = 0;  // of the training
};

/// A job on one number of devices.
/// Large: one member a figure that tables and documents show.
struct Point {
    StepFigures figures;
    std::int64_t nodes = 1;
    sim::Mode mode = sim::Mode::folded;
    prices::Interval<Seconds> band;  // should hold the measured step nine times in ten
    Uncertainty uncertainty{};       // ... and what it is made of, before a pilot of as many devices is known
    double waiting = 1;              // how many times as long as one card the slowest of a rank's kind takes
    MemoryFit memory;
    std::int64_t flows = 0;  // messages priced or simulated
    sim::Bounds bounds{};
    std::string rings{};  // why gradients are summed by rings, not by the machine's own library; empty: they are not
    std::optional<Staleness> staleness{};
    double drift = 0;  // with servers: sim::Prediction::drift
    std::optional<Through> through{};
    std::optional<NoisyStep> noisy{};
    std::optional<Input> input{};
    std::optional<Checkpoints> checkpoints{};
    std::optional<TrainingTime> training{};
    std::optional<Anchor> anchor{};       // absent: predicted cold, from the prices alone
    std::optional<Seconds> measured{};    // by a pilot of as many devices
    std::optional<double> speedup{};      // throughput, relative to the baseline's; of what fits
    std::optional<double> efficiency{};   // ... a device
    std::optional<double> utilization{};  // operations of the step over those of all devices at their peak
    double guessed = 0;                   // of the bytes that its passes move, those of operators that are unknown
    Seconds wall{};                       // that the prediction itself took
    /// With the noise, where there is some.
    double samples_per_s() const { return noisy ? noisy->samples_per_s : figures.samples_per_s(); }
    Seconds time_of(double samples) const { return Seconds{samples / samples_per_s()}; }
    double device_hours(double samples) const {
        return time_of(samples).value / 3600 * static_cast<double>(figures.devices);
    }
};

/// What a point was simulated with.
struct Setup {
    std::int64_t devices = 1;
    Machine machine;        // as the conditions make it
    Conditions conditions;  // as the machine then has them
    Schedule schedule;
    sim::Options options;
    std::vector<double> waiting{};    // by rank, in `options.pace`: for the slowest card (predict/spread.hpp)
    std::vector<double> crowded{};    // ... and beside the other cards of a node
    std::optional<Machine> priced{};  // with the framework's overheads in each price, where it has any
    Framework framework{};            // whose they are
    std::optional<Anchor> anchor{};   // in `options`
    /// What a rank of each stage takes by the framework's accounting; empty: it has none, or none of this network and
    /// plan, and the schedule's counts.
    std::vector<LanguageMemory> language_memory{};
    const Machine& simulated() const { return priced ? *priced : machine; }
};

struct Prediction {
    std::vector<Point> points;  // by devices
    Setup setup;                // of the last of them
    Timeline timeline;
    std::vector<ComparedPilot> pilots{};  // by devices
    Anchors anchors{};
};

}  // namespace rehearse::predict
