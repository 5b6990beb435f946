// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/transits.hpp"

#include <algorithm>
#include <utility>

namespace rehearse::sim {

bool Transits::later(const Waiting& a, const Waiting& b) {
    return std::pair{a.transit.start, a.number} > std::pair{b.transit.start, b.number};
}

void Transits::set_out(Transit transit, double start) {
    transit.begun = transit.start = start;
    transit.leg = 0;
    waiting_.push_back({transit, count_++});
    std::ranges::push_heap(waiting_, later);
}

bool Transits::next(const std::function<void(const Transit&, double)>& left,
                    const std::function<void(const Transit&, double)>& arrived) {
    begin_those_due();
    if (!touched_.empty()) share(std::exchange(touched_, {}));
    const auto first = std::ranges::min_element(moving_, {}, &Moving::end);
    const bool moves = first != moving_.end();
    if (!moves && waiting_.empty()) return false;
    if (!waiting_.empty() && (!moves || waiting_.front().transit.start < first->end)) {
        now_ = waiting_.front().transit.start;
        return true;  // it begins when all that are due at this time are known
    }
    now_ = first->end;
    Transit gone = first->transit;
    touched_.push_back(gone.bundle());
    *first = std::move(moving_.back());
    moving_.pop_back();
    left(gone, now_);
    const double until = now_ + gone.legs[gone.leg].afterwards.value;
    if (++gone.leg == gone.legs.size()) {
        arrived(gone, until);
        return true;
    }
    gone.start = until;
    waiting_.push_back({gone, count_++});
    std::ranges::push_heap(waiting_, later);
    return true;
}

void Transits::begin_those_due() {
    while (!waiting_.empty() && waiting_.front().transit.start <= now_) {
        std::ranges::pop_heap(waiting_, later);
        const Transit transit = waiting_.back().transit;
        waiting_.pop_back();
        moving_.push_back({.transit = transit, .left = transit.legs[transit.leg].bytes, .since = now_});
        touched_.push_back(transit.bundle());
    }
}

// New rates for the companies of what came or went.
void Transits::share(std::vector<int> touched) {
    seen_.assign(moving_.size(), false);
    std::vector<std::size_t> company;
    for (const int bundle : touched) {
        for (std::size_t first = 0; first < moving_.size(); ++first) {
            if (seen_[first] || !bundles_.meet(bundle, moving_[first].transit.bundle())) continue;
            company.assign(1, first);
            seen_[first] = true;
            for (std::size_t i = 0; i < company.size(); ++i) {
                const int one = moving_[company[i]].transit.bundle();
                for (std::size_t other = 0; other < moving_.size(); ++other) {
                    if (seen_[other] || !bundles_.meet(one, moving_[other].transit.bundle())) continue;
                    seen_[other] = true;
                    company.push_back(other);
                }
            }
            regroup(company);
        }
    }
}

void Transits::regroup(const std::vector<std::size_t>& company) {
    std::vector<std::size_t> order = company;
    std::ranges::sort(order, {}, [&](std::size_t i) { return moving_[i].transit.bundle(); });
    std::vector<int> key;
    for (const std::size_t i : order) key.push_back(moving_[i].transit.bundle());
    const std::vector<double>& rates = bundles_.rates(key);
    for (std::size_t i = 0; i < order.size(); ++i) {
        Moving& moving = moving_[order[i]];
        moving.left -= moving.rate * (now_ - moving.since);
        moving.since = now_;
        moving.rate = rates[i];
        moving.end = now_ + std::max(moving.left, 0.0) / moving.rate;
    }
}

}  // namespace rehearse::sim
