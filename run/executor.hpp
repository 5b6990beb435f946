// SPDX-License-Identifier: Apache-2.0
// Runs a rank's steps: the compute stream on the calling thread, all others beside it on a thread of their own, which
// works on every stream's first message that is not over. Where the compute stream has to wait for one, it works on
// them itself, and no thread has to wake: a switch of threads takes longer than a small message. One of the two calls
// MPI at a time.
#pragma once

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
    /// Whether any rank's gradients have overflowed, where ranks may find different ones: asked by the compute stream,
    /// answered by who works on messages.
    struct Agreement {
        std::optional<kernels::Communicator> ranks;
        kernels::RankProgram rounds;
        std::unique_ptr<kernels::Operation> under_way;
        bool reached = true;  // in this training step; for who works on messages
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
        bool news = false;           // something has been done that the communication thread has not looked at
        std::exception_ptr failure;  // the first one
        bool stop = false;
    };

    bool start(Lane& lane, std::size_t index);
    /// Whether any rank says so.
    bool agreed(bool overflow);
    bool go_on_agreeing();
    void communicate();
    void communicate_beside();
    /// Goes on with a stream; whether anything has happened.
    bool go_on(Lane& lane);
    /// ... with all of them.
    bool look();
    bool anything_under_way() const;
    bool all_over() const;
    bool is_free(const Lane& lane) const;
    template <typename Work>
    void time(std::size_t index, const Work& work);
    template <typename Done>
    void communicate_until(const Done& done);
    void wait_for(std::size_t index);
    void announce();
    void finish(std::size_t index);
    void wait_for_device(std::size_t index);
    void read_device_clock();
    void fail(std::exception_ptr why);
    /// `moved`: when something last did.
    void give_way(Clock::time_point moved);

    Program& program_;
    StepGraphs graphs_;
    Probe probe_;
    Wires wires_;
    int iteration_ = -1;
    std::vector<Lane> lanes_;
    Agreement agreement_;
    std::vector<Interval> times_;
    DeviceTimes device_times_;
    std::vector<bool> awaited_;  // some step of the other stream waits for it

    std::mutex messages_;  // of who works on them: lanes_, and what agreement_ has under way; locked before the next
    std::mutex mutex_;
    std::condition_variable changed_;
    Progress progress_;
    bool unannounced_ = false;  // the compute stream's: it has done something that a message may wait for
    std::thread thread_;        // messages beside computation
};

}  // namespace rehearse::run
