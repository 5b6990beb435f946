// SPDX-License-Identifier: Apache-2.0
// What a user wants to know: a network, trained by a plan on a machine, under some conditions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/machine.hpp"
#include "core/network.hpp"
#include "predict/conditions.hpp"
#include "predict/framework.hpp"
#include "predict/pilot.hpp"
#include "predict/training.hpp"
#include "schedule/plan.hpp"
#include "sim/simulate.hpp"

namespace rehearse::predict {

/// Large: one member a question that a prediction answers, each with its default.
struct Job {
    Network network;  // fused as it will be run (models/fuse.hpp)
    Machine machine;
    schedule::Plan plan = schedule::parse_plan("data");
    std::vector<std::int64_t> devices{1};        // each is a point
    std::optional<std::int64_t> baseline{};      // devices that efficiency is relative to; else the smallest point
    std::int64_t batch = 32;                     // of one device
    std::optional<std::int64_t> global_batch{};  // instead
    Precision precision = Precision::fp32;
    Optimizer optimizer = Optimizer::sgd;
    Framework framework{};
    Conditions conditions{};
    Training training{};
    std::vector<Pilot> pilots{};  // the smallest is met, and all points are scaled as it was
    sim::Mode mode = sim::Mode::automatic;
    int steps = 1;       // that are simulated
    bool bands = true;   // else a band is the step itself, in a third of the time
    bool links = false;  // the timeline says what links carried
};
/// InputError for values that cannot be, whatever the network and the machine.
void check(const Job& job);

/// Trains the job as a framework does: its options on the plan's data axis where the plan does not say otherwise, its
/// overheads for the job's optimizer, its loader. InputError for a value of the profile that cannot be.
void follow(Job& job, const models::FrameworkProfile& profile);

/// Returns the job's plan with what its framework keeps in memory.
schedule::Plan planned(const Job& job);

/// Returns the job as the schedule's maker takes it.
schedule::Job scheduled(const Job& job, std::int64_t devices);

}  // namespace rehearse::predict
