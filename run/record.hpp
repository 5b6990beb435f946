// SPDX-License-Identifier: Apache-2.0
// What was measured, as a Timeline.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/timeline.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/clock.hpp"
#include "run/executor.hpp"
#include "run/methods/server_shard.hpp"
#include "run/train.hpp"

namespace rehearse::run {

/// What one rank sent in each step, in bytes, and the starts and ends of its steps, iteration after iteration, in
/// seconds of some clock: of the last iterations alone, so that memory does not grow with how long one trains.
class Recording {
public:
    static constexpr int most_iterations = most_steps_in_timeline;

    /// Keeps room for all iterations that it keeps, so that recording does not allocate.
    Recording(std::vector<double> bytes_sent, int iterations);
    /// The first iteration is that step of the training.
    void start_at(int step) { first_ = step; }
    void add(std::span<const Interval> times);
    /// Called once, after the last iteration.
    void align(const Alignment& alignment);
    std::span<const double> bytes_sent() const { return bytes_sent_; }
    std::span<const double> times() const { return times_; }
    /// The first iteration that is kept, as steps of the training are counted.
    int first_iteration() const { return first_ + dropped(); }

private:
    int dropped() const { return std::max(0, iterations_ - most_iterations); }

    std::vector<double> bytes_sent_;
    std::vector<double> times_;  // start, end, start, end, ...; until `align` the newest lie over the oldest
    int iterations_ = 0, first_ = 0;
};

/// Events of one rank from what it recorded, moved so that `origin` is 0; its iterations count from `first`.
std::vector<Event> events_of(const Schedule& schedule, RankIndex rank, std::span<const double> bytes_sent,
                             std::span<const double> times, double origin, int first = 0);

/// A transfer begins when both ends have come to it; each rank has only seen its own coming. A message that was
/// buffered, and had left its sender before the receiver came, keeps its times.
void meet(const Schedule& schedule, std::vector<Event>& events);

/// What servers did, as events of the ranks behind those of the mesh, under the names that sim gives them: `serve` from
/// when a push was seen to when the weights were updated, `answer` until they had been sent; of steps from `first` on.
std::vector<Event> events_of_servers(const Schedule& schedule, const ServerLogs& logs, double origin, int first = 0);

/// Collective. At rank 0 the events of all ranks and of the servers, elsewhere of this one; 0 is the first start among
/// those of the ranks.
Timeline make_timeline(const Schedule& schedule, const kernels::Communicator& world, const Recording& recording,
                       const ServerLogs& logs = {});

}  // namespace rehearse::run
