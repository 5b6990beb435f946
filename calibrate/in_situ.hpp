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

/// By how much more a kernel's size may differ from one that was seen in a step, and still take longer there in
/// proportion.
inline constexpr double alike_within = 8;

/// Gives each sample whose problem has such times their median and error, and keeps what it took by itself as `alone`.
/// The others take longer as those of their kind and pass do whose time alone is within `alike_within` of theirs, all
/// together, else as the one that comes nearest. What is cold in a step costs a kernel a time of its own (code,
/// branches) and misses in proportion to its bytes: so what is added to a kernel longer than all that were seen is no
/// more than `alike_within` times what was missing there. The error is then as far as the seen ones' ratios are from
/// the one taken; of a single one, as much as it says.
void put_in_situ(std::vector<Sample>& samples, const std::map<std::string, InSituTimes>& times);

/// How many times as long kernels of a network take in its steps as by themselves: the median over those of 100 us and
/// more by themselves, to which what is cold adds little; 0 where fewer than three are that long. `samples` by
/// themselves.
double stretch_in_steps(const std::vector<Sample>& samples, const std::map<std::string, InSituTimes>& times);
/// A network and plan, and that ratio.
struct InSituStretch {
    std::string name;
    double ratio = 0;
};
/// Steps whose kernels take more than twice as long as by themselves, or 1.5 times as much longer than another's, were
/// measured beside something else.
inline constexpr double most_stretched = 2, most_between_networks = 1.5;
/// Why steps contradict the kernels by themselves, in words; empty where they do not.
std::string contradiction_of_steps(const std::vector<InSituStretch>& stretches);

}  // namespace rehearse::calibrate
