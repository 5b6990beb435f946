// SPDX-License-Identifier: Apache-2.0
// Who is still there of a job with servers, where workers may die and slow ones are not waited for (Chilimbi et al.
// 2014, Project Adam: an epoch ends when 75 % of the model replicas are through). Server 0 decides.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"

namespace rehearse::run {

/// What everybody who is left knows at the end.
struct Attended {
    std::vector<std::int64_t> left{};  // ranks of the job, ascending
    std::vector<std::int64_t> lost{};  // nothing more was heard of these
    std::vector<std::int64_t> cut{};   // these were told to stop, as a quorum was through
};

/// As server 0 keeps it.
class Attendance {
public:
    /// `steps` are what each worker has to do. `job` outlives this.
    Attendance(const kernels::Communicator& job, const Schedule& schedule, int steps, Seconds patience);

    /// Called again and again with who has pushed since the last time: whether there is anybody to serve. Who neither
    /// pushes nor says goodbye for as long as the patience is lost.
    bool goes_on(std::span<const RankIndex> heard);
    /// Tells all who are left.
    Attended conclude();

private:
    const kernels::Communicator& job_;
    std::int64_t workers_, steps_, quorum_, through_ = 0;
    Seconds patience_;
    bool told_ = false;
    std::map<std::int64_t, double> heard_;  // of who is there: when
    Attended attended_;
};

/// Whether server 0 has told the others who is left: for the other servers, which serve until then.
bool is_concluded(const kernels::Communicator& job, const Schedule& schedule);
/// Waits until it tells them.
Attended hear_conclusion(const kernels::Communicator& job, const Schedule& schedule);

/// Whether a worker has been told to stop.
bool is_cut(const kernels::Communicator& job, const Schedule& schedule);
/// A worker's goodbye after so many steps; returns who is left.
Attended say_goodbye(const kernels::Communicator& job, const Schedule& schedule, int steps);

}  // namespace rehearse::run
