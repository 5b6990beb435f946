// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/active.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/index.hpp"

namespace rehearse::sim {

bool ActiveCollectives::later(const Waiting& a, const Waiting& b) {
    return std::pair{a.active.start, a.number} > std::pair{b.active.start, b.number};
}

void ActiveCollectives::wait(const ActiveCollective& active) {
    waiting_.push_back({active, count_++});
    std::ranges::push_heap(waiting_, later);
}

void ActiveCollectives::set_out(ActiveCollective active, double start) {
    active.begun = active.start = start;
    active.phase = 0;
    wait(active);
}

bool ActiveCollectives::next(const std::function<void(const ActiveCollective&, double)>& left,
                             const std::function<void(const ActiveCollective&, double)>& arrived) {
    begin_those_due();
    const double ends = flows_.next();
    if (waiting_.empty() && ends == std::numeric_limits<double>::infinity()) return false;
    // What waits begins when all that are due at that time are known.
    now_ = waiting_.empty() ? ends : std::min(ends, waiting_.front().active.start);
    ended_.clear();
    flows_.pass(now_, ended_);
    for (const std::int64_t tag : ended_) {
        ActiveCollective active = moving_[at(tag)];
        free_.push_back(tag);
        left(active, now_);
        active.start = now_ + active.current().afterwards.value;
        if (++active.phase == active.phases.size()) {
            arrived(active, active.start);
        } else {
            wait(active);
        }
    }
    return true;
}

void ActiveCollectives::begin_those_due() {
    while (!waiting_.empty() && waiting_.front().active.start <= now_) {
        std::ranges::pop_heap(waiting_, later);
        const ActiveCollective active = waiting_.back().active;
        waiting_.pop_back();
        while (flows_.links() < aggregates_.links()) flows_.add_link(1);
        if (free_.empty()) {
            free_.push_back(std::ssize(moving_));
            moving_.emplace_back();
        }
        const std::int64_t tag = free_.back();
        free_.pop_back();
        moving_[at(tag)] = active;
        flows_.begin(aggregates_.route(active.current().aggregate), active.current().bytes, tag);
    }
}

}  // namespace rehearse::sim
