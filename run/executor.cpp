// SPDX-License-Identifier: Apache-2.0
#include "run/executor.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"

namespace rehearse::run {

namespace {

struct Stopped {};  // the other thread failed: not an error of its own

kernels::Operand operand_of(kernels::View data, std::span<std::byte> room) {
    return {data.type(), {static_cast<std::byte*>(data.bytes()), data.size_bytes()}, room};
}

}  // namespace

Executor::Executor(const Schedule& schedule, Program& program, const kernels::Communicator& world, Probe probe,
                   TradeLinks* servers)
    : program_(program),
      probe_(std::move(probe)),
      servers_(servers),
      times_(program.steps().size()),
      starts_(program.device() == nullptr ? 0 : times_.size()),
      ends_(starts_.size()),
      awaited_(program.steps().size()),
      done_(program.steps().size()) {
    const std::span<ReadyStep> steps = program.steps();
    for (const ReadyStep& ready : steps) {
        for (const int before : ready.step->after) {
            const auto index = static_cast<std::size_t>(before);
            if (steps[index].step->stream != ready.step->stream) awaited_[index] = true;
        }
    }
    make_edges(schedule, world);
    make_wires(schedule, world);
    const Collective agreement{CollectiveKind::all_reduce, {.name = "doubling"}, {world.size(), world.size()}, 1};
    agreement_rounds_ = {agreement, world.rank()};
    std::map<Stream, Lane> by_stream;
    for (const auto& [index, wire] : wires_) {
        Lane& lane = by_stream[steps[index].step->stream];
        lane.steps.push_back(index);
        lane.room.resize(std::max(lane.room.size(), wire.room));
    }
    for (auto& [stream, lane] : by_stream) lanes_.push_back(std::move(lane));
    if (program.scales() && program.may_differ()) agreement_.emplace(world.split(0, world.rank()));
    if (!lanes_.empty() || agreement_) thread_ = std::thread{[this] { communicate(); }};
}

Executor::~Executor() {
    {
        const std::lock_guard lock{mutex_};
        stop_ = true;
        stopping_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
}

void Executor::run(int iteration, std::uint64_t seed, std::int64_t first_sample) {
    program_.begin_step();
    {
        const std::lock_guard lock{mutex_};
        done_.assign(done_.size(), false);
        iteration_ = iteration;
    }
    changed_.notify_all();
    if (program_.device() != nullptr) {
        program_.device()->record(begun_);
        begun_at_ = Clock::now();
    }
    const std::span<ReadyStep> steps = program_.steps();
    bool decided = !program_.scales();  // whether this step updates anything
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (steps[i].step->stream != Stream::compute) continue;
        for (const int before : steps[i].step->after) wait_for(static_cast<std::size_t>(before));
        time(i, [&] {
            if (!decided && std::holds_alternative<Update>(steps[i].step->action)) {
                program_.skip_updates(agreed(program_.has_overflowed()));
                decided = true;
            }
            if (probe_) probe_(iteration, *steps[i].step);
            program_.compute(steps[i], seed, first_sample);
        });
    }
    if (!decided) program_.skip_updates(agreed(false));  // without weights it has a voice none the less
    if (thread_.joinable()) {
        std::unique_lock lock{mutex_};
        set_idle();
        changed_.wait(lock, [&] { return communicated_ == iteration || failure_; });
        compute_is_idle_ = false;
        if (failure_) std::rethrow_exception(failure_);
    }
    program_.end_step();
    read_device_clock();
}

// When each step that was given to the device was computed there.
void Executor::read_device_clock() {
    kernels::Device* const device = program_.device();
    for (std::size_t i = 0; i < ends_.size(); ++i) {
        if (ends_[i] == nullptr) continue;
        const auto after = [&](const kernels::Device::Event& event) {
            const std::chrono::duration<double> seconds{device->seconds(begun_, event)};
            return begun_at_ + std::chrono::duration_cast<Clock::duration>(seconds);
        };
        times_[i] = {after(starts_[i]), after(ends_[i])};
    }
}

// A step of the compute stream has been given to the device: for the other thread.
void Executor::wait_for_device(std::size_t index) {
    if (program_.device() != nullptr && ends_[index] != nullptr) program_.device()->wait(ends_[index]);
}

void Executor::sum_kept_gradients() {
    for (const auto& [index, wire] : wires_) {
        ReadyStep& ready = program_.steps()[index];
        const auto* sum = std::get_if<Communicate>(&ready.step->action);
        if (sum == nullptr || !sum->of_bucket() || sum->kind == CollectiveKind::all_gather) continue;
        if (ready.before) ready.before();
        std::vector<std::byte> room(wire.room);
        wire.group->run(wire.rounds, operand_of(ready.data, room));
        Program::finish(ready);
    }
}

// The compute stream waits; the other thread does it, beside what is under way there.
bool Executor::agreed(bool overflow) {
    if (!agreement_) return overflow;
    std::unique_lock lock{mutex_};
    flag_ = overflow ? 1 : 0;
    flag_state_ = Flag::asked;
    set_idle();
    changed_.wait(lock, [&] { return flag_state_ == Flag::known || failure_ || stop_; });
    compute_is_idle_ = false;
    if (failure_) std::rethrow_exception(failure_);
    if (stop_) throw Stopped{};
    flag_state_ = Flag::none;
    return flag_ > 0;
}

// One step of it; whether anything has happened.
bool Executor::go_on_agreeing() {
    if (!agreement_ || agreed_) return false;
    if (agreeing_ == nullptr) {
        {
            const std::lock_guard lock{mutex_};
            if (flag_state_ != Flag::asked) return false;
        }
        agreeing_ = std::make_unique<kernels::Operation>(*agreement_, agreement_rounds_, kernels::floats({&flag_, 1}));
    }
    if (!agreeing_->test()) return false;
    agreeing_.reset();
    agreed_ = true;
    {
        const std::lock_guard lock{mutex_};
        flag_state_ = Flag::known;
    }
    changed_.notify_all();
    return true;
}

void Executor::communicate() {
    try {
        for (;;) {
            {
                std::unique_lock lock{mutex_};
                changed_.wait(lock, [&] { return stop_ || iteration_ > communicated_; });
                if (stop_) return;
            }
            communicate_once();
        }
    } catch (const Stopped&) {
    } catch (...) {
        fail(std::current_exception());
    }
    for (Lane& lane : lanes_) lane.under_way.reset();  // on the thread that calls MPI
    agreeing_.reset();
}

void Executor::communicate_once() {
    for (Lane& lane : lanes_) lane.next = 0;
    agreed_ = !agreement_;
    const auto over = [](const Lane& lane) { return lane.next == lane.steps.size(); };
    while (!std::ranges::all_of(lanes_, over) || !agreed_) {
        bool moved = go_on_agreeing();
        for (Lane& lane : lanes_) moved = go_on(lane) || moved;
        if (moved) {
            nothing_has_moved_.reset();
            continue;
        }
        if (agreeing_ || std::ranges::any_of(lanes_, [](const Lane& lane) { return lane.waits(); })) {
            give_way();
        } else {
            wait_for_work();
        }
    }
    {
        const std::lock_guard lock{mutex_};
        communicated_ = iteration_;
    }
    changed_.notify_all();
}

bool Executor::go_on(Lane& lane) {
    if (lane.next == lane.steps.size()) return false;
    const std::size_t index = lane.steps[lane.next];
    ReadyStep& ready = program_.steps()[index];
    if (!lane.waits() && !start(lane, index)) return false;
    if (lane.summing != nullptr ? !lane.summing->test() : !lane.under_way->test()) {
        const std::size_t moved = lane.summing != nullptr ? 0 : lane.under_way->moved();
        return std::exchange(lane.moved, moved) != moved;
    }
    lane.moved = 0;
    if (lane.summing == nullptr) Program::finish(ready);
    lane.under_way.reset();
    lane.summing = nullptr;
    times_[index].end = Clock::now();
    if (awaited_[index]) finish(index);
    ++lane.next;
    return true;
}

bool Executor::start(Lane& lane, std::size_t index) {
    {
        const std::lock_guard lock{mutex_};
        if (!is_free(lane)) return false;
    }
    ReadyStep& ready = program_.steps()[index];
    for (const int before : ready.step->after) wait_for_device(static_cast<std::size_t>(before));
    times_[index].start = Clock::now();
    if (probe_) probe_(iteration_, *ready.step);
    const Wire& wire = wires_.at(index);
    if (wire.devices != nullptr) {
        lane.summing = wire.devices;
        lane.summing->all_reduce(ready.on_device);
        return true;
    }
    if (ready.before) ready.before();
    const std::span<std::byte> room = ready.room.empty() ? std::span{lane.room} : ready.room;
    lane.under_way = std::make_unique<kernels::Operation>(*wire.group, wire.rounds, operand_of(ready.data, room));
    return true;
}

// What its next step waits for is done. Guarded by the mutex.
bool Executor::is_free(const Lane& lane) const {
    if (lane.next == lane.steps.size()) return false;
    const Step& step = *program_.steps()[lane.steps[lane.next]].step;
    return std::ranges::all_of(step.after, [&](int before) {
        const auto index = static_cast<std::size_t>(before);
        return program_.steps()[index].step->stream == step.stream || done_[index];
    });
}

void Executor::wait_for_work() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] {
        if (!agreed_ && flag_state_ == Flag::asked) return true;
        return failure_ || stop_ || std::ranges::any_of(lanes_, [&](const Lane& lane) { return is_free(lane); });
    });
    if (failure_) std::rethrow_exception(failure_);
    if (stop_) throw Stopped{};
}

template <typename Work>
void Executor::time(std::size_t index, const Work& work) {
    kernels::Device* const device = program_.device();
    if (device != nullptr) device->record(starts_[index]);
    times_[index].start = Clock::now();
    work();
    times_[index].end = Clock::now();
    if (device != nullptr) device->record(ends_[index]);
    if (awaited_[index]) finish(index);
}

// For the compute stream.
void Executor::wait_for(std::size_t index) {
    if (program_.steps()[index].step->stream == Stream::compute) return;  // done: it is earlier on this very thread
    std::unique_lock lock{mutex_};
    if (!done_[index]) set_idle();
    changed_.wait(lock, [&] { return done_[index] || failure_ || stop_; });
    compute_is_idle_ = false;
    if (failure_) std::rethrow_exception(failure_);
    if (stop_) throw Stopped{};
}

// The compute stream waits from now on, which the communication thread shall know at once.
void Executor::set_idle() {
    compute_is_idle_ = true;
    changed_.notify_all();
}

void Executor::finish(std::size_t index) {
    {
        const std::lock_guard lock{mutex_};
        done_[index] = true;
    }
    changed_.notify_all();
}

void Executor::fail(std::exception_ptr why) {
    {
        const std::lock_guard lock{mutex_};
        if (!failure_) failure_ = std::move(why);
    }
    changed_.notify_all();
}

// Beside computation it sleeps until the next look, or until the compute stream has done something: it may wait now.
void Executor::give_way() {
    if (stopping_) throw Stopped{};
    const Clock::time_point now = Clock::now();
    if (!nothing_has_moved_) {
        nothing_has_moved_ = now;
        attentive_ = kernels::attentive();
    }
    if (compute_is_idle_) return attentive_();
    std::unique_lock lock{mutex_};
    if (!compute_is_idle_) changed_.wait_for(lock, kernels::nap_beside(now - *nothing_has_moved_));
}

}  // namespace rehearse::run
