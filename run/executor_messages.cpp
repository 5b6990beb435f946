// SPDX-License-Identifier: Apache-2.0
// The executor's second thread: it works on every stream's first message that is not over.
#include <algorithm>
#include <utility>

#include "run/executor.hpp"

namespace rehearse::run {

// One step of it; whether anything has happened.
bool Executor::go_on_agreeing() {
    if (!agreement_.ranks || agreement_.reached) return false;
    if (agreement_.under_way == nullptr) {
        {
            const std::lock_guard lock{mutex_};
            if (agreement_.state != Agreement::Flag::asked) return false;
        }
        agreement_.under_way = std::make_unique<kernels::Operation>(*agreement_.ranks, agreement_.rounds,
                                                                    kernels::floats({&agreement_.flag, 1}));
    }
    if (!agreement_.under_way->test()) return false;
    agreement_.under_way.reset();
    agreement_.reached = true;
    {
        const std::lock_guard lock{mutex_};
        agreement_.state = Agreement::Flag::known;
    }
    changed_.notify_all();
    return true;
}

void Executor::communicate() {
    try {
        for (;;) {
            {
                std::unique_lock lock{mutex_};
                changed_.wait(lock, [&] { return progress_.stop || progress_.iteration > progress_.communicated; });
                if (progress_.stop) return;
            }
            communicate_once();
        }
    } catch (const Stopped&) {
    } catch (...) {
        fail(std::current_exception());
    }
    for (Lane& lane : lanes_) lane.under_way.reset();  // on the thread that calls MPI
    agreement_.under_way.reset();
}

void Executor::communicate_once() {
    for (Lane& lane : lanes_) lane.next = 0;
    agreement_.reached = !agreement_.ranks;
    const auto over = [](const Lane& lane) { return lane.next == lane.steps.size(); };
    while (!std::ranges::all_of(lanes_, over) || !agreement_.reached) {
        bool moved = go_on_agreeing();
        for (Lane& lane : lanes_) moved = go_on(lane) || moved;
        if (moved) {
            wait_.nothing_has_moved.reset();
            continue;
        }
        if (agreement_.under_way || std::ranges::any_of(lanes_, [](const Lane& lane) { return lane.waits(); })) {
            give_way();
        } else {
            wait_for_work();
        }
    }
    {
        const std::lock_guard lock{mutex_};
        progress_.communicated = progress_.iteration;
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
    if (lane.summing == nullptr) run::finish(ready);
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
    if (probe_) probe_(progress_.iteration, *ready.step);
    const Wire& wire = wires_.steps().at(index);
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
        return program_.steps()[index].step->stream == step.stream || progress_.done[index];
    });
}

void Executor::wait_for_work() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] {
        if (!agreement_.reached && agreement_.state == Agreement::Flag::asked) return true;
        return progress_.failure || progress_.stop ||
               std::ranges::any_of(lanes_, [&](const Lane& lane) { return is_free(lane); });
    });
    if (progress_.failure) std::rethrow_exception(progress_.failure);
    if (progress_.stop) throw Stopped{};
}

// Beside computation it sleeps until the next look, or until the compute stream has done something: it may wait now.
void Executor::give_way() {
    if (stopping_) throw Stopped{};
    const Clock::time_point now = Clock::now();
    if (!wait_.nothing_has_moved) {
        wait_.nothing_has_moved = now;
        wait_.attentive = kernels::attentive();
    }
    if (compute_is_idle_) return wait_.attentive();
    std::unique_lock lock{mutex_};
    if (!compute_is_idle_) changed_.wait_for(lock, kernels::nap_beside(now - *wait_.nothing_has_moved));
}

}  // namespace rehearse::run
