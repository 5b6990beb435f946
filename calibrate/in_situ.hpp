// SPDX-License-Identifier: Apache-2.0
// What problems take inside whole training steps: after their neighbours, with the caches and the memory that these
// leave, while all ranks compute.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

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

/// What each iteration of a training step on one rank computes, the sum of its compute steps in seconds. The first
/// iteration warms up and is left out. InputError with fewer than two.
std::vector<double> step_sums(const RankClass& rank_class, const Timeline& timeline);

/// Steps of training without communication. A place takes the median of its iterations; all places are then stretched
/// alike, so that their sum is `whole`: what strikes now here and now there (the scheduler, other ranks of the core)
/// counts too, and where `whole` is the slowest rank's, that the others wait for it. Where sums of gradients follow a
/// kernel (gradient_sums) each gets a share, as prices of `device` say.
class InSituSteps {
public:
    /// Steps of one rank that were timed in one go.
    struct Block {
        Seconds step;  // what counts as the whole of one, the same on every rank of a class
        Timeline timeline;
    };
    /// Of blocks at different times, as a host is faster in some seconds and slower in others: how steps divide is told
    /// by the iterations of all but the first of each, which warms up; how long they are by the block in the middle.
    void add(const Schedule& schedule, const RankClass& rank_class, std::vector<Block> blocks,
             const DeviceClass& device);
    /// `timeline`: of one rank, of this class of the schedule, two iterations at least.
    void add(const Schedule& schedule, const RankClass& rank_class, const Timeline& timeline, const DeviceClass& device,
             Seconds whole);
    /// By the problem's name.
    const std::map<std::string, InSituTimes>& times() const { return times_; }
    /// As lines of text, and what another rank wrote, whose places count beside these.
    std::string text() const;
    void add(const std::string& text);

private:
    std::map<std::string, InSituTimes> times_;
};

/// Gives each sample whose problem has such times their median and error, and keeps what it took by itself as `alone`.
/// The others are stretched as those of their kind and pass are, all together.
void put_in_situ(std::vector<Sample>& samples, const std::map<std::string, InSituTimes>& times);

}  // namespace rehearse::calibrate
