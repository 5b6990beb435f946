// SPDX-License-Identifier: Apache-2.0
// The world of jobs that train for real: each is `rehearse run` under mpirun, which goes on from its checkpoint with
// other ranks and another batch when it is given other devices.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cluster/scheduler.hpp"

namespace rehearse::cluster {

struct Launch {
    std::filesystem::path folder;  // of all jobs; there is none of that name, or it is empty
    /// What starts ranks; {ranks} is how many, {devices} which ("0,2"), {job} the job's own folder.
    std::string launcher = "mpirun -n {ranks}";
    std::string program;               // rehearse
    std::vector<std::string> options;  // of `run`, for all jobs
    bool pins = true;                  // a job keeps to the cores of its devices, where there are as many
    std::function<bool()> is_over{};   // asks whether all jobs are to be stopped
};

/// Makes the folder. InputError where it cannot be made or is not empty.
void prepare(const Launch& launch);
/// InputError unless each of the jobs asks for a batch that its devices share evenly.
void check_even(const std::vector<Job>& jobs);

/// What a job did from its start to its end on the same devices.
struct Measured {
    int job = 0;
    Share share;
    std::int64_t steps = 0;
    Seconds step;  // the mean of all but the first: what many of them take is a sum
    Seconds idle;  // of its time: start, loading, saving, end, and by how much the first step was longer
};

class Processes : public World {
public:
    /// Each job has a folder in launch.folder / `name`; both outlive this. BackendError when a job cannot be started or
    /// fails: then all others are ended.
    Processes(const std::vector<Job>& jobs, const Launch& launch, const std::string& name);
    ~Processes() override;

    Seconds now() const override;
    void start(const Assignment& assignment) override;
    void stop(int job) override;
    std::vector<Stopped> wait(Seconds until) override;
    bool is_over() const override { return launch_.is_over && launch_.is_over(); }

    const std::vector<Measured>& measured() const { return measured_; }

private:
    struct Process {
        pid_t id = -1;  // of its group, too
        Assignment assignment;
        Seconds since;
        std::int64_t until_step = 0;
        std::filesystem::path result{}, log{};
    };
    std::filesystem::path folder_of(int job) const;
    std::vector<std::string> words(const Process& process) const;
    Stopped ended(const Process& process, int status);

    const std::vector<Job>& jobs_;
    const Launch& launch_;
    std::filesystem::path folder_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    std::vector<Process> processes_;   // at work
    std::vector<std::int64_t> steps_;  // of each job, done
    std::vector<int> starts_;          // of each job
    std::vector<Measured> measured_;
};

/// What it costs to start a job, and to start it again from its checkpoint.
struct Costs {
    Seconds start, restart;
};
/// Means over one job of each model that trains two steps on one device, and again on as many as such jobs have at
/// most.
Costs measured_costs(const std::vector<Job>& jobs, const Launch& launch, std::int64_t devices);

/// Speeds of each model, measured by as many steps on 1, 2, 4, ... devices up to what its jobs have at most, with the
/// least and most samples a device that their batches come to, and some between. As many of it train beside each other
/// as there are jobs, or devices for them: jobs share memory and its bandwidth.
std::map<std::string, std::vector<SpeedPoint>> measured_points(const std::vector<Job>& jobs, const Launch& launch,
                                                               std::int64_t devices, std::int64_t steps);

}  // namespace rehearse::cluster
