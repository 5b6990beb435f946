// SPDX-License-Identifier: Apache-2.0
// Decides who has which devices, by a policy, as jobs come and go in a world: a simulated one, or this host's.
#pragma once

#include <vector>

#include "cluster/simulate.hpp"

namespace rehearse::cluster {

/// What a job is given to do.
struct Assignment {
    int job = 0;
    Share share;
    std::vector<std::int64_t> devices;  // ascending
    double samples = 0;                 // that are left
    bool again = false;                 // it goes on from what it saved when it was stopped
};

/// A job that trains no longer.
struct Stopped {
    int job = 0;
    bool complete = false;  // all of its samples are done
    double trained = 0;     // samples of its assignment that it has done
    Seconds idle;           // of its time on the devices: what it did not train
};

/// Where jobs train and time passes. Times are seconds since the beginning.
class World {
public:
    World() = default;
    World(const World&) = delete;
    World& operator=(const World&) = delete;
    virtual ~World() = default;
    virtual Seconds now() const = 0;
    /// The job begins now; it is not at work, and nobody else uses the devices.
    virtual void start(const Assignment& assignment) = 0;
    /// Asks a job that is at work to save what it has and to end; wait() tells when it has.
    virtual void stop(int job) = 0;
    /// Returns once a job has ended or it is `until` (infinity: when a job ends), with all that have ended by then.
    virtual std::vector<Stopped> wait(Seconds until) = 0;
    /// Whether all jobs are to be stopped, whatever is left to do.
    virtual bool is_over() const { return false; }
};

/// Goes through all jobs: InputError as simulate().
Outcome run_policy(const std::vector<Job>& jobs, const SpeedTable& speeds, const Options& options, World& world);

}  // namespace rehearse::cluster
