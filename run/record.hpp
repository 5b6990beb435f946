// SPDX-License-Identifier: Apache-2.0
// What was measured, as a Timeline.
#pragma once

#include <span>
#include <vector>

#include "core/timeline.hpp"
#include "kernels/comm/communicator.hpp"
#include "run/clock.hpp"
#include "run/executor.hpp"
#include "run/methods/server_shard.hpp"

namespace rehearse::run {

/// What one rank sent in each step, in bytes, and the starts and ends of its steps, iteration after iteration, in
/// seconds of some clock.
class Recording {
public:
    /// Keeps room for all iterations, so that recording does not allocate.
    Recording(std::vector<double> bytes_sent, int iterations);
    void add(std::span<const Interval> times);
    void align(const Alignment& alignment);
    std::span<const double> bytes_sent() const { return bytes_sent_; }
    std::span<const double> times() const { return times_; }

private:
    std::vector<double> bytes_sent_;
    std::vector<double> times_;  // start, end, start, end, ...
};

/// Events of one rank from what it recorded, moved so that `origin` is 0.
std::vector<Event> events_of(const Schedule& schedule, RankIndex rank, std::span<const double> bytes_sent,
                             std::span<const double> times, double origin);

/// A transfer begins when both ends have come to it; each rank has only seen its own coming. A message that was
/// buffered, and had left its sender before the receiver came, keeps its times.
void meet(const Schedule& schedule, std::vector<Event>& events);

/// What servers did, as events of the ranks behind those of the mesh, under the names that sim gives them: `serve` from
/// when a push was seen to when the weights were updated, `answer` until they had been sent.
std::vector<Event> events_of_servers(const Schedule& schedule, const ServerLogs& logs, double origin);

/// Collective. At rank 0 the events of all ranks and of the servers, elsewhere of this one; 0 is the first start among
/// those of the ranks.
Timeline make_timeline(const Schedule& schedule, const kernels::Communicator& world, const Recording& recording,
                       const ServerLogs& logs = {});

}  // namespace rehearse::run
