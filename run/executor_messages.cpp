// SPDX-License-Identifier: Apache-2.0
// The executor's messages: on its second thread beside computation, on the first one where that waits.
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
    const std::lock_guard lock{mutex_};
    agreement_.state = Agreement::Flag::known;
    return true;
}

void Executor::communicate() {
    try {
        for (;;) {
            {
                std::unique_lock lock{mutex_};
                changed_.wait(lock, [&] { return progress_.stop || progress_.news; });
                if (progress_.stop) break;
                progress_.news = false;
            }
            communicate_beside();
        }
    } catch (...) {  // Stopped, or what look() has kept for the other thread
    }
}

// Until nothing is under way that does not wait for computation.
void Executor::communicate_beside() {
    for (Clock::time_point moved = Clock::now();;) {
        bool something = false;
        {
            const std::lock_guard messages{messages_};
            something = look();
            if (!something && !anything_under_way()) return;
        }
        if (something)
            moved = Clock::now();
        else
            give_way(moved);
    }
}

bool Executor::anything_under_way() const {
    return agreement_.under_way != nullptr || std::ranges::any_of(lanes_, &Lane::waits);
}

bool Executor::all_over() const {
    return agreement_.reached &&
           std::ranges::all_of(lanes_, [](const Lane& lane) { return lane.next == lane.steps.size(); });
}

bool Executor::look() try {
    bool moved = go_on_agreeing();
    for (Lane& lane : lanes_) moved = go_on(lane) || moved;
    return moved;
} catch (...) {
    fail(std::current_exception());  // before the other thread may look
    throw;
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
    if (probe_) probe_(iteration_, *ready.step);
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

// Sleeps until the next look, or until computation has done something that a message may wait for.
void Executor::give_way(Clock::time_point moved) {
    std::unique_lock lock{mutex_};
    changed_.wait_for(lock, kernels::nap_beside(Clock::now() - moved),
                      [&] { return progress_.stop || progress_.news; });
    if (progress_.stop) throw Stopped{};
    progress_.news = false;
}

}  // namespace rehearse::run
