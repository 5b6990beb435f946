// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/rounds.hpp"

#include <algorithm>

namespace rehearse::sim {

namespace {

constexpr std::int32_t none = -1;

// A link that the same flows share as a slower (or an equal, earlier) one says nothing new.
void drop_repeated(RoundCosts& costs) {
    std::vector<std::int32_t> best(costs.flows.size(), none);  // by first member: the meeting that stays
    std::vector<Meeting> kept;
    const auto members = [&](const Meeting& m) {
        return std::span{costs.members}.subspan(static_cast<std::size_t>(m.first),
                                                static_cast<std::size_t>(m.last - m.first));
    };
    for (const Meeting& meeting : costs.meetings) {
        std::int32_t& stays = best[static_cast<std::size_t>(members(meeting).front())];
        if (stays != none && std::ranges::equal(members(kept[static_cast<std::size_t>(stays)]), members(meeting))) {
            Meeting& other = kept[static_cast<std::size_t>(stays)];
            if (meeting.cost > other.cost) other = meeting;
            continue;
        }
        stays = static_cast<std::int32_t>(kept.size());
        kept.push_back(meeting);
    }
    costs.meetings = std::move(kept);
}

}  // namespace

RoundCounter::RoundCounter(const Wiring& wiring) : wiring_(wiring) {}

void RoundCounter::walk(std::span<const Flow> flows, RoundCosts& costs) {
    hops_.clear();
    ends_.clear();
    costs.flows.resize(flows.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
        const std::size_t first = hops_.size();
        costs.flows[i].latency = wiring_.limiting_route(flows[i].from, flows[i].to, hops_);
        for (std::size_t h = first; h < hops_.size(); ++h) ++load_[static_cast<std::size_t>(hops_[h].link)];
        ends_.push_back(hops_.size());
    }
    wiring_.spread(hops_);
}

// Costs of flows, and a meeting for each link that holds some flow up most.
void RoundCounter::weigh(RoundCosts& costs) {
    std::size_t first = 0;
    for (std::size_t i = 0; i < costs.flows.size(); ++i) {
        const auto hops = std::span{hops_}.subspan(first, ends_[i] - first);
        first = ends_[i];
        double most = 0, alone = 0;
        double worst_alone = 0;  // of the worst links: the slowest, whose flows feel each other most when out of step
        for (const Hop& hop : hops) {
            const double cost = hop.cost.value, shared = cost * load_[static_cast<std::size_t>(hop.link)];
            if (shared > most * (1 + 1e-9)) {
                worst_alone = cost;
            } else if (shared >= most * (1 - 1e-9)) {
                worst_alone = std::max(worst_alone, cost);
            }
            most = std::max(most, shared);
            alone = std::max(alone, cost);
        }
        costs.flows[i].shared = PerByte{most};
        costs.flows[i].alone = PerByte{alone};
        const double least = most * (1 - 1e-9);
        for (const Hop& hop : hops) {
            if (hop.cost.value != worst_alone) continue;
            const auto link = static_cast<std::size_t>(hop.link);
            if (meeting_[link] != none || hop.cost.value * load_[link] < least) continue;
            meeting_[link] = static_cast<std::int32_t>(costs.meetings.size());
            costs.meetings.push_back({hop.link, hop.cost, 0, 0});
        }
    }
}

// Every flow of a link that is a meeting is its member, held up most there or not.
void RoundCounter::collect(RoundCosts& costs) {
    std::int32_t total = 0;
    for (Meeting& meeting : costs.meetings) {
        meeting.first = meeting.last = total;
        total += load_[static_cast<std::size_t>(meeting.link)];
    }
    costs.members.resize(static_cast<std::size_t>(total));
    std::size_t h = 0;
    for (std::size_t i = 0; i < costs.flows.size() && total > 0; ++i) {
        for (; h < ends_[i]; ++h) {
            const std::int32_t number = meeting_[static_cast<std::size_t>(hops_[h].link)];
            if (number == none) continue;
            std::int32_t& last = costs.meetings[static_cast<std::size_t>(number)].last;
            costs.members[static_cast<std::size_t>(last++)] = static_cast<std::int32_t>(i);
        }
    }
}

RoundCosts RoundCounter::count(std::span<const Flow> flows) {
    load_.resize(static_cast<std::size_t>(wiring_.link_count()), 0);
    meeting_.resize(static_cast<std::size_t>(wiring_.link_count()), none);
    RoundCosts costs;
    walk(flows, costs);
    weigh(costs);
    collect(costs);
    for (const Hop& hop : hops_) load_[static_cast<std::size_t>(hop.link)] = 0;
    for (const Meeting& meeting : costs.meetings) meeting_[static_cast<std::size_t>(meeting.link)] = none;
    drop_repeated(costs);
    return costs;
}

std::vector<MessageKind> RoundCounter::kinds(std::span<const Flow> flows) {
    sizes_.resize(static_cast<std::size_t>(wiring_.link_count()), 0);
    hops_.clear();
    ends_.clear();
    std::vector<Seconds> latencies;
    std::vector<double> weights;  // by hop
    latencies.reserve(flows.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
        const std::size_t first = hops_.size();
        latencies.push_back(wiring_.limiting_route(flows[i].from, flows[i].to, hops_));
        const double size = flows[i].size;
        for (std::size_t h = first; h < hops_.size(); ++h) sizes_[static_cast<std::size_t>(hops_[h].link)] += size;
        ends_.push_back(hops_.size());
        weights.resize(hops_.size(), size);
    }
    wiring_.spread(hops_, weights);
    std::vector<MessageKind> kinds;
    std::size_t h = 0;
    for (std::size_t i = 0; i < flows.size(); ++i) {
        const auto [from, to, size] = flows[i];
        MessageKind kind{.latency = latencies[i],
                         .alone = {},
                         .shared = {},
                         .combine = size * wiring_.combine(from, to),
                         .across = wiring_.across(from, to)};
        for (; h < ends_[i]; ++h) {
            kind.alone = std::max(kind.alone, size * hops_[h].cost);
            kind.shared = std::max(kind.shared, sizes_[static_cast<std::size_t>(hops_[h].link)] * hops_[h].cost);
        }
        const bool like_last = !kinds.empty() && kinds.back() == kind;
        if (!like_last && std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
    }
    for (const Hop& hop : hops_) sizes_[static_cast<std::size_t>(hop.link)] = 0;
    return kinds;
}

Seconds round_time(std::span<const FlowCost> costs, Bytes bytes) {
    Seconds last;
    for (const FlowCost& cost : costs) last = std::max(last, cost.latency + cost.shared * bytes);
    return last;
}

}  // namespace rehearse::sim
