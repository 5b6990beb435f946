// SPDX-License-Identifier: Apache-2.0
// What was measured, as a Timeline.
#pragma once

#include <span>
#include <vector>

#include "core/timeline.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/clock.hpp"
#include "run/executor.hpp"

namespace rehearse::run {

/// Starts and ends of the steps of one rank, iteration after iteration, in seconds of some clock.
class Recording {
public:
    /// Keeps room for all iterations, so that recording does not allocate.
    Recording(std::size_t steps, int iterations);
    void add(std::span<const Interval> times);
    void align(const Alignment& alignment);
    std::span<const double> times() const { return times_; }

private:
    std::vector<double> times_;  // start, end, start, end, ...
};

/// Events of one rank from its recorded times, moved so that `origin` is 0.
std::vector<Event> events_of(const Schedule& schedule, std::int64_t rank, std::span<const double> times, double origin);

/// The last iteration alone: what a step report is made of.
Timeline one_iteration(const Schedule& schedule, std::int64_t rank, std::span<const Interval> times);

/// Collective. At rank 0 the events of all ranks, elsewhere of this one; 0 is the first start among them.
Timeline make_timeline(const Schedule& schedule, const kernels::Communicator& world, const Recording& recording);

}  // namespace rehearse::run
