// SPDX-License-Identifier: Apache-2.0
#include "sim/collective/follower.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::sim {

namespace {

constexpr double precision = 1e-12;  // relative: times nearer to each other are equal

constexpr std::int64_t tag_of(std::size_t stage, std::int32_t message) {
    return static_cast<std::int64_t>(stage) << 32 | message;
}

}  // namespace

FollowedRow::FollowedRow(Tracks& tracks, std::vector<double> ready)
    : tracks_(tracks), origin_(std::ranges::min(ready)) {
    state_.ranks.resize(ready.size());
    for (std::size_t rank = 0; rank < ready.size(); ++rank) {
        come(state_, static_cast<std::int32_t>(rank), ready[rank] - origin_);
    }
}

FollowedRow::SizedStage FollowedRow::sized(const Stage& stage, Bytes whole, double earliest) {
    const Pattern& pattern = *stage.pattern;
    const Tracks::Track& track = tracks_.of(pattern, std::ssize(state_.ranks));
    SizedStage made{
        .track = &track, .repeats = stage.repeats, .earliest = earliest, .bytes = {}, .sent = {}, .received = {}};
    const Bytes mean = whole * stage.share;
    for (std::size_t i = 0; i < pattern.costs.size(); ++i) {
        const MessageCost& cost = pattern.costs[i];
        const bool equal = pattern.sizes.empty();
        const Bytes bytes = equal ? mean : mean * pattern.sizes[i];
        const Wiring& wiring = tracks_.wiring();
        const Seconds after =
            stage.sums ? stage.sums->stretched(wiring)
                       : cost.latency + wiring.beyond(cost.across, bytes, equal ? cost.alone : track.alone[i]);
        const double sent = after.value;
        made.bytes.push_back(bytes.value);
        made.sent.push_back(sent);
        made.received.push_back(sent + stage.passes * (cost.combine * mean).value);
    }
    return made;
}

std::optional<std::vector<double>> FollowedRow::append(const std::vector<Stage>& stages, Bytes whole, Seconds earliest,
                                                       std::int64_t& work) {
    for (const Stage& stage : stages) stages_.push_back(sized(stage, whole, earliest.value - origin_));
    const std::vector<double>& capacities = tracks_.capacities();
    while (state_.flows.links() < capacities.size()) state_.flows.add_link(capacities[state_.flows.links()]);
    if (!run(state_, true, work)) return std::nullopt;
    State tail = state_;
    if (!run(tail, false, work)) return std::nullopt;
    std::vector<double> ready;
    for (const Rank& rank : tail.ranks) {
        require(rank.stage == stages_.size(), "every rank comes to the end of a collective");
        ready.push_back(rank.when + origin_);
    }
    return ready;
}

// Until nothing is under way, or the first rank ends the row; false when the work is used up before.
bool FollowedRow::run(State& state, bool until_first_ends, std::int64_t& work) {
    constexpr double never = std::numeric_limits<double>::infinity();
    for (std::int64_t done = state.flows.work(); work > 0; done = state.flows.work()) {
        const double comes = state.coming.empty() ? never : state.coming.front().time;
        const double time = std::min(state.flows.next(), comes);
        if (time == never) return true;
        ended_.clear();
        state.flows.pass(time, ended_);
        for (const std::int64_t tag : ended_) {
            over(state, static_cast<std::size_t>(tag >> 32), static_cast<std::int32_t>(tag & 0xffffffff), time);
        }
        while (!state.coming.empty() && state.coming.front().time <= time * (1 + precision)) {
            const std::int32_t rank = state.coming.front().rank;
            const bool ends = state.ranks[at(rank)].stage == stages_.size();
            if (ends && until_first_ends) return true;
            std::ranges::pop_heap(state.coming, later);
            state.coming.pop_back();
            if (!ends) enter(state, rank);
        }
        work -= state.flows.work() - done;
    }
    return false;
}

void FollowedRow::come(State& state, std::int32_t rank, double when) {
    state.ranks[at(rank)].when = when;
    state.coming.push_back({when, rank});
    std::ranges::push_heap(state.coming, later);
}

// A message starts when the second of its ends comes to its round.
void FollowedRow::enter(State& state, std::int32_t number) {
    Rank& rank = state.ranks[at(number)];
    std::span<const std::int32_t> messages;
    for (; rank.stage < stages_.size(); ++rank.stage) {
        if (rank.round == 0 && stages_[rank.stage].earliest > rank.when) {
            return come(state, number, stages_[rank.stage].earliest);
        }
        messages = stages_[rank.stage].track->messages_of(RankIndex{number});
        if (!messages.empty()) break;
    }
    if (messages.empty()) return come(state, number, rank.when);  // to the end
    rank.pending = static_cast<std::int32_t>(messages.size());
    const std::size_t here = rank.stage;
    const SizedStage& stage = stages_[here];
    for (const std::int32_t i : messages) {
        const PatternMessage& message = stage.track->pattern->messages[at(i)];
        const Rank& other = state.ranks[at(message.from == number ? message.to : message.from)];
        if (other.pending == 0 || other.stage != here || other.round != rank.round) continue;
        const double bytes = stage.bytes[at(message.cost)];
        if (bytes > 0) {
            state.flows.begin({stage.track->route(i)}, bytes, tag_of(here, i));
        } else {
            over(state, here, i, rank.when);
        }
    }
}

void FollowedRow::over(State& state, std::size_t stage, std::int32_t number, double time) {
    const PatternMessage& message = stages_[stage].track->pattern->messages[at(number)];
    free(state, message.from, time + stages_[stage].sent[at(message.cost)]);
    free(state, message.to, time + stages_[stage].received[at(message.cost)]);
}

void FollowedRow::free(State& state, std::int32_t number, double when) {
    Rank& rank = state.ranks[at(number)];
    rank.when = std::max(rank.when, when);
    if (--rank.pending > 0) return;
    if (++rank.round == stages_[rank.stage].repeats) {
        rank.round = 0;
        ++rank.stage;
    }
    come(state, number, rank.when);
}

}  // namespace rehearse::sim
