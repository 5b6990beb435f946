// SPDX-License-Identifier: Apache-2.0
// What problems take inside whole training steps: after their neighbours, with the caches and the memory that these
// leave, while all ranks compute.
#pragma once

#include <map>
#include <span>
#include <string>

#include "calibrate/samples.hpp"
#include "core/machine.hpp"
#include "core/schedule.hpp"
#include "core/timeline.hpp"

namespace rehearse::calibrate {

/// Of one problem: sums over all its places in the steps that were added.
struct InSituTimes {
    double seconds = 0;  // of one step each
    double error = 0;    // standard deviation between iterations, likewise
    double places = 0;   // in a step
    double samples = 0;  // places times iterations
};

/// Steps of training without communication. A place takes the median of its iterations; all places are then stretched
/// alike, so that their sum is the median sum: what strikes now here and now there (the scheduler, other ranks of the
/// core) counts too. Where sums of gradients follow a kernel (gradient_sums) each gets a share, as prices of `device`
/// say. The first iteration warms up.
class InSituSteps {
public:
    /// `timeline`: of one rank, of the schedule's first class, two iterations at least. InputError with fewer.
    void add(const Schedule& schedule, const Timeline& timeline, const DeviceClass& device);
    /// By the problem's name; the same problems on every rank that added the same schedules.
    std::map<std::string, InSituTimes>& times() { return times_; }

private:
    std::map<std::string, InSituTimes> times_;
};

/// Gives each sample whose problem has such times their median and error, and keeps what it took by itself as `alone`.
/// The others are stretched as those of their kind and pass are, all together.
void put_in_situ(std::vector<Sample>& samples, const std::map<std::string, InSituTimes>& times);

}  // namespace rehearse::calibrate
