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
#include <tuple>
#include <vector>

#include "core/schedule.hpp"
#include "kernels/comm/communicator.hpp"
#include "kernels/comm/idle.hpp"
#include "run/program.hpp"
#include "run/methods/server_shard.hpp"

namespace rehearse::run {

using Clock = std::chrono::steady_clock;

struct Interval {
    Clock::time_point start, end;
};

/// Called before each step of the schedule, on its thread, in the time of that step. It may throw.
using Probe = std::function<void(int iteration, const Step& step)>;

class Executor {
public:
    /// Collective over `world`, the ranks of the mesh. `program`, `schedule` and `servers` outlive the executor.
    Executor(const Schedule& schedule, Program& program, const kernels::Communicator& world, Probe probe,
             TradeLinks* servers = nullptr);
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
    /// What a step sends and receives, and among whom.
    struct Wire {
        kernels::Communicator* group = nullptr;
        kernels::RankProgram rounds;
        kernels::DeviceGroup* devices = nullptr;  // that do it in the hosts' place
        std::size_t room = 0;                     // bytes beside the data (RankProgram::slots)
    };
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
    /// Two neighbours on an axis and what one sends the other: activations or gradients.
    using Edge =
        std::tuple<int, std::int64_t, std::int64_t, bool>;  // axis, coordinates of sender and receiver, gradients

    void make_edges(const Schedule& schedule, const kernels::Communicator& world);
    void make_wires(const Schedule& schedule, const kernels::Communicator& world);
    Wire trade(const Trade& trade, std::int64_t rank);
    /// Of the ranks of an axis, where each has a device of its own and they make groups; else null.
    std::unique_ptr<kernels::DeviceGroup> device_group(const kernels::Communicator& group) const;
    bool start(Lane& lane, std::size_t index);
    Wire message(const Schedule& schedule, const Step& step, int axis, std::int64_t offset, std::int64_t rank,
                 std::size_t count);
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
    Probe probe_;
    std::map<int, kernels::Communicator> groups_;  // by axis
    std::map<int, std::unique_ptr<kernels::DeviceGroup>> devices_;
    std::map<Edge, kernels::Communicator> edges_;
    TradeLinks* servers_;
    std::optional<kernels::Communicator> nobody_;  // of trades that another rank of the group does
    std::map<std::size_t, Wire> wires_;            // by step
    std::vector<Lane> lanes_;
    std::optional<kernels::Communicator> agreement_;  // where ranks may find different gradients
    kernels::RankProgram agreement_rounds_;
    std::unique_ptr<kernels::Operation> agreeing_;
    bool agreed_ = true;  // in this training step; for the communication thread
    std::vector<Interval> times_;
    /// Of a device: the start of the training step, by both clocks, and of each step that computes its start and end.
    kernels::Device::Event begun_;
    Clock::time_point begun_at_;
    std::vector<kernels::Device::Event> starts_, ends_;
    std::vector<bool> awaited_;  // some step of the other stream waits for it

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<bool> done_;      // guarded, like the next four
    int iteration_ = -1;          // that the communication thread is to run
    int communicated_ = -1;       // that it has run
    std::exception_ptr failure_;  // the first one
    enum class Flag { none, asked, known };
    Flag flag_state_ = Flag::none;
    float flag_ = 0;
    bool stop_ = false;
    std::atomic<bool> stopping_ = false;                  // what a wait for messages looks at
    kernels::Idle attentive_;                             // of the wait since then:
    std::optional<Clock::time_point> nothing_has_moved_;  // empty: something just has
    std::atomic<bool> compute_is_idle_ = false;           // then communication may have the whole core
    std::thread thread_;                                  // all streams but compute
};

}  // namespace rehearse::run
