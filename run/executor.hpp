// SPDX-License-Identifier: Apache-2.0
// Runs a rank's steps: the compute stream on the calling thread, all others on a thread of their own, which alone calls
// MPI while a training step goes on and works on every stream's first message that is not over.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "kernels/comm/idle.hpp"
#include "run/program.hpp"
#include "run/step_graphs.hpp"
#include "run/wires.hpp"

namespace rehearse::run {

using Clock = std::chrono::steady_clock;

struct Interval {
    Clock::time_point start, end;
};

/// Called before each step of the schedule, on its thread, in the time of that step. It may throw.
using Probe = std::function<void(int iteration, const Step& step)>;

/// Large: what both threads know, and what each of them keeps.
class Executor {
public:
    /// Collective over `world`, the ranks of the mesh. `program`, `schedule` and `servers` outlive the executor.
    /// `graphs`: a device is given its kernels as graphs (step_graphs.hpp).
    Executor(const Schedule& schedule, Program& program, const kernels::Communicator& world, Probe probe,
             ServerLinks* servers = nullptr, bool graphs = false);
    ~Executor();
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;

    /// One training step. What a step throws, on either thread, is thrown here; the executor is of no use after that.
    void run(int iteration, std::uint64_t seed, std::int64_t first_sample);

    /// Between two steps, collective: the sums that the next one would begin with, of the gradients kept for it.
    void sum_kept_gradients();

    /// Of the last run, step by step.
    std::span<const Interval> times() const { return times_; }
    /// What this rank sends in each step, in bytes.
    std::vector<double> bytes_sent() const;

private:
    struct Stopped {};  // the other thread failed: not an error of its own
    /// A stream's steps, how many are over, and the one that is under way.
    struct Lane {
        std::vector<std::size_t> steps;
        std::vector<std::byte> room;  // of one at a time
        std::size_t next = 0;
        std::unique_ptr<kernels::Operation> under_way;
        kernels::DeviceGroup* summing = nullptr;  // or this is
        std::size_t moved = 0;                    // of what is under way, when last looked at
        bool waits() const { return under_way != nullptr || summing != nullptr; }
    };
    /// Whether any rank's gradients have overflowed, where ranks may find different ones: asked by the compute thread,
    /// answered by the communication thread.
    struct Agreement {
        std::optional<kernels::Communicator> ranks;
        kernels::RankProgram rounds;
        std::unique_ptr<kernels::Operation> under_way;
        bool reached = true;  // in this training step; for the communication thread
        enum class Flag { none, asked, known };
        Flag state = Flag::none;  // guarded by the mutex, like the next one
        float flag = 0;
    };
    /// Of a device: the start of the training step, by both clocks, and of each step that computes its start and end.
    struct DeviceTimes {
        kernels::Device::Event begun;
        Clock::time_point begun_at;
        std::vector<kernels::Device::Event> starts, ends;
    };
    /// What both threads know of the training step; guarded by the mutex.
    struct Progress {
        std::vector<bool> done;      // by step
        int iteration = -1;          // that the communication thread is to run
        int communicated = -1;       // that it has run
        std::exception_ptr failure;  // the first one
        bool stop = false;
    };
    /// The communication thread's wait for messages.
    struct Wait {
        kernels::Idle attentive;
        std::optional<Clock::time_point> nothing_has_moved;  // since then; empty: something just has
    };

    bool start(Lane& lane, std::size_t index);
    /// Whether any rank says so.
    bool agreed(bool overflow);
    bool go_on_agreeing();
    void communicate();
    void communicate_once();
    /// Goes on with a stream; whether anything has happened.
    bool go_on(Lane& lane);
    bool is_free(const Lane& lane) const;
    void wait_for_work();
    template <typename Work>
    void time(std::size_t index, const Work& work);
    void wait_for(std::size_t index);
    void set_idle();
    void finish(std::size_t index);
    void wait_for_device(std::size_t index);
    void read_device_clock();
    void fail(std::exception_ptr why);
    void give_way();

    Program& program_;
    StepGraphs graphs_;
    Probe probe_;
    Wires wires_;
    std::vector<Lane> lanes_;
    Agreement agreement_;
    std::vector<Interval> times_;
    DeviceTimes device_times_;
    std::vector<bool> awaited_;  // some step of the other stream waits for it

    std::mutex mutex_;
    std::condition_variable changed_;
    Progress progress_;
    std::atomic<bool> stopping_ = false;  // what a wait for messages looks at
    Wait wait_;
    std::atomic<bool> compute_is_idle_ = false;  // then communication may have the whole core
    std::thread thread_;                         // all streams but compute
};

}  // namespace rehearse::run
