// SPDX-License-Identifier: Apache-2.0
// A Job in, a Prediction out.
#pragma once

#include <cstddef>
#include <functional>

#include "predict/job.hpp"
#include "predict/prediction.hpp"

namespace rehearse::predict {

/// Returns the machine, the schedule and the options of the simulation on so many devices, which wait for their slowest
/// card; no pilot is looked at. InputError as make_schedule.
Setup setup_of(const Job& job, std::int64_t devices);

/// Returns what the device takes that comes nearest to its memory, or goes beyond it most.
MemoryFit memory_of(const Setup& setup);

/// Returns one point, its efficiency left out; `timeline` gets what was simulated.
Point point_of(const Job& job, const Setup& setup, Timeline& timeline);

/// Predicts all points of the job, the smallest first; `done` is told after each. Points that do not fit into the
/// devices' memory say so, and are relative to nothing, nor is anything to them. InfeasibleError for a baseline that
/// does not fit.
Prediction predict(const Job& job, const std::function<void(std::size_t, std::int64_t devices)>& done = {});

}  // namespace rehearse::predict
