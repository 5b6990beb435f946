// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/active.hpp"

#include <algorithm>
#include <limits>

#include "core/index.hpp"

namespace rehearse::sim {

namespace {

constexpr std::int64_t tag_of(std::int32_t slot, std::size_t phase) {
    return std::int64_t{slot} << 32 | static_cast<std::int64_t>(phase);
}

}  // namespace

void ActiveCollectives::wait(std::int32_t slot, double start) {
    slots_[at(slot)].active.start = start;
    waiting_.push_back({start, count_++, slot});
    std::ranges::push_heap(waiting_, std::greater{});
}

void ActiveCollectives::set_out(const ActiveCollective& active, double start) {
    if (free_.empty()) {
        free_.push_back(static_cast<std::int32_t>(slots_.size()));
        slots_.emplace_back();
    }
    const std::int32_t slot = free_.back();
    free_.pop_back();
    slots_[at(slot)] = {.active = active};
    slots_[at(slot)].active.begun = start;
    wait(slot, start);
}

bool ActiveCollectives::next(const std::function<void(const ActiveCollective&, const FlowPhase&, double)>& left,
                             const std::function<void(const ActiveCollective&, double)>& arrived) {
    begin_those_due();
    const double ends = flows_.next();
    if (waiting_.empty() && ends == std::numeric_limits<double>::infinity()) return false;
    // What waits begins when all that are due at that time are known.
    now_ = waiting_.empty() ? ends : std::min(ends, waiting_.front().start);
    ended_.clear();
    flows_.pass(now_, ended_);
    for (const std::int64_t tag : ended_) {
        const auto number = static_cast<std::int32_t>(tag >> 32);
        Slot& slot = slots_[at(number)];
        const FlowPhase& phase = slot.active.phases[at(tag & 0xffffffff)];
        left(slot.active, phase, now_);
        slot.until = std::max(slot.until, now_ + phase.afterwards.value);
        if (--slot.pending > 0) continue;
        if (slot.next < slot.active.phases.size()) {
            wait(number, slot.until);
        } else {
            const ActiveCollective active = slot.active;  // what it lets set out may take its slot
            const double until = slot.until;
            free_.push_back(number);
            arrived(active, until);
        }
    }
    return true;
}

void ActiveCollectives::begin_those_due() {
    while (!waiting_.empty() && waiting_.front().start <= now_) {
        std::ranges::pop_heap(waiting_, std::greater{});
        const std::int32_t slot = waiting_.back().slot;
        waiting_.pop_back();
        begin_phases(slot);
    }
}

void ActiveCollectives::begin_phases(std::int32_t number) {
    while (flows_.links() < aggregates_.links()) flows_.add_link(1);
    Slot& slot = slots_[at(number)];
    slot.until = now_;
    do {
        const FlowPhase& phase = slot.active.phases[slot.next];
        flows_.begin(aggregates_.route(phase.aggregate), phase.bytes, tag_of(number, slot.next));
        ++slot.pending;
        ++slot.next;
    } while (slot.next < slot.active.phases.size() && slot.active.phases[slot.next].beside);
}

}  // namespace rehearse::sim
