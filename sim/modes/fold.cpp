// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/fold.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "core/index.hpp"

namespace rehearse::sim {

namespace {

constexpr double rounding = 1e-9;  // relative: times nearer to each other are equal

/// Of times by rank, the last of which is `last`; nothing where they are all alike, or are those of something else.
Earlier earlier_than(double last, const std::vector<double>& times) {
    if (times.empty()) return nullptr;
    const auto [first, latest] = std::ranges::minmax(times);
    if (last - first <= rounding * last || last - latest > rounding * last) return nullptr;
    std::vector<double> earlier(times.size());
    std::ranges::transform(times, earlier.begin(), [latest = latest](double time) { return time - latest; });
    return std::make_shared<const std::vector<double>>(std::move(earlier));
}

}  // namespace

Fold::Fold(const KindSteps& steps, Collectives& collectives, Calls& calls, Traffic* traffic)
    : steps_(steps), collectives_(collectives), calls_(calls), active_(calls.aggregates()), traffic_(traffic) {
    for (int c = 0; c < static_cast<int>(steps.count()); ++c) classes_.emplace_back(steps.program(c));
    touched_.resize(classes_.size());
    std::iota(touched_.begin(), touched_.end(), 0);
    is_touched_.resize(classes_.size(), 1);
    if (classes_.size() > 1) return;
    rank_by_rank_ = calls.several() && steps.ranks() <= Collectives::followed_ranks;
    for (RankIndex rank{0}; rank < steps.ranks(); ++rank) {
        crowding_ = std::max(crowding_, steps.cores().crowding(rank));
    }
}

void Fold::run() {
    const auto left = [this](const ActiveCollective& active, const FlowPhase& phase, double when) {
        if (traffic_ == nullptr || computes(active) || classes_.size() == 1) return;
        const Bytes of_one{phase.bytes / calls_.aggregates().size(phase.aggregate)};
        traffic_->add(calls_.tracked(phase.aggregate), of_one, Seconds{active.start}, Seconds{when});
    };
    const auto arrived = [this](const ActiveCollective& active, double when) { arrive(active, when); };
    do {
        take_what_can_be();
    } while (active_.next(left, arrived));
    for (const ClassState& state : classes_) {
        require(std::ranges::count(state.done, 0) == 0, "no step waits for ever");
    }
}

std::vector<Event> Fold::events(int c) const {
    const ClassState& state = classes_[at(c)];
    std::vector<int> order(state.steps->size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](int step) { return state.start[at(step)]; });
    std::vector<Event> events;
    events.reserve(order.size());
    for (const int step : order) {
        Event& event = events.emplace_back(steps_.event(c, step));
        event.rank = steps_.first_rank(c);
        event.start = Seconds{state.start[at(step)]};
        event.end = Seconds{state.end[at(step)]};
        event.flow = state.flow[at(step)];
        if (std::holds_alternative<Communicate>((*state.steps)[at(step)].action)) {
            event.bytes = calls_.sent(c, step);
        }
    }
    return events;
}

Seconds Fold::length() const {
    double first = std::numeric_limits<double>::infinity(), last = 0;
    for (const ClassState& state : classes_) {
        for (const double start : state.start) first = std::min(first, start);
        for (const double end : state.end) last = std::max(last, end);
    }
    return Seconds{last > first ? last - first : 0};
}

void Fold::touch(int c) {
    const auto add = [this](int touched) {
        if (std::exchange(is_touched_[at(touched)], 1) == 0) touched_.push_back(touched);
    };
    add(c);
    for (const int sender : calls_.senders_to(c)) add(sender);
}

void Fold::take_what_can_be() {
    while (!touched_.empty()) {
        const int c = touched_.back();
        touched_.pop_back();
        is_touched_[at(c)] = 0;
        for (StreamState& stream : classes_[at(c)].streams) {
            while (take_next(c, stream)) {
            }
        }
    }
}

void Fold::end(int c, int step, double start, double end, Earlier earlier) {
    ClassState& state = classes_[at(c)];
    StreamState& stream = state.of_step(step);
    state.start[at(step)] = start;
    state.end[at(step)] = stream.free = end;
    state.done[at(step)] = 1;
    state.earlier[at(step)] = stream.earlier = std::move(earlier);
    ++stream.next;
    touch(c);
}

bool Fold::take_next(int c, StreamState& stream) {
    const ClassState& state = classes_[at(c)];
    const std::optional<int> step = stream.head();
    if (!step || stream.on_the_way) return false;
    const Action& action = (*state.steps)[at(*step)].action;
    if (std::holds_alternative<Recv>(action)) return false;  // its Send takes it along
    const std::optional<double> from = state.needed(*step);
    if (!from) return false;
    const double start = std::max(*from, stream.free);
    if (const auto* send = std::get_if<Send>(&action)) return take_send(c, *step, *send, start);
    if (std::holds_alternative<Communicate>(action)) return take_collective(c, stream, *step, *from);
    const bool computes = stream.stream == Stream::compute;
    if (const std::span<const FlowPhase> work = calls_.work(c, *step);
        computes && !work.empty() && classes_.size() > 1) {
        set_out({.rank_class = c, .step = *step, .phases = work}, start);
        return true;
    }
    const double until = start + steps_.slowest(c, *step).value * (computes ? crowding_ : 1);
    Collectives::occupy(stream.progress, Seconds{until});
    end(c, *step, start, until, waited_for(*step, &stream));
    return true;
}

bool Fold::take_send(int c, int step, const Send& send, double start) {
    const bool gradients = (*classes_[at(c)].steps)[at(step)].stream == Stream::send_gradients;
    const Stream receiving = gradients ? Stream::receive_gradients : Stream::receive_activations;
    const Calls::Message& message = calls_.message(c, step);
    const ClassState& peer = classes_[at(message.to_class)];
    const std::optional<int> other = peer.waiting(receiving);
    if (!other) return false;
    const auto* recv = std::get_if<Recv>(&(*peer.steps)[at(*other)].action);
    require(recv != nullptr && recv->axis == send.axis, "a receive meets a send");
    if (recv->offset != -send.offset) return false;  // another copy of the stage comes first
    require(recv->bytes == send.bytes, "a receive meets the send of its tensor");
    const std::optional<double> from = peer.needed(*other);
    if (!from) return false;
    set_out({c, step, message.to_class, *other, -1, {&message.phase, 1}},
            std::max({start, *from, peer.streams[at(peer.index_of(receiving))].free}));
    flows_ += static_cast<std::int64_t>(steps_.ranks_of(c).size());
    return true;
}

bool Fold::take_collective(int c, StreamState& stream, int step, double needed) {
    Calls::OneCall& call = calls_.call(c, step);
    const Calls::OfClass& own = call.of_class[at(c)];
    const double start = std::max(needed, stream.free);
    if (own.with.size() > 1) return take_together(c, stream.stream, step, own);
    flows_ += own.messages;
    if (classes_.size() == 1) {
        take_only(stream, call, step, needed);
    } else if (own.phases.empty()) {
        end(c, step, start, start);
    } else {
        set_out({.rank_class = c, .step = step, .phases = own.phases}, start);
    }
    return true;
}

void Fold::take_only(StreamState& stream, Calls::OneCall& call, int step, double needed) {
    const double start = std::max(needed, stream.free);
    const double until = together(stream, call, step, needed);
    stream.phases = calls_.shared_phases(0, step, Seconds{until - start});
    if (stream.phases.empty()) return end_only(stream, step, start, until);
    stream.unhindered = until;
    set_out({.rank_class = 0, .step = step, .phases = stream.phases}, start);
}

void Fold::end_only(StreamState& stream, int step, double start, double until) {
    until += steps_.extra(0, step).value;
    if (until > stream.over) {
        if (rank_by_rank_) Collectives::delay(stream.progress, Seconds{stream.over}, Seconds{until});
        Collectives::catch_up(stream.progress, Seconds{until});
        stream.over = until;
    }
    end(0, step, start, until, rank_by_rank_ ? earlier_than(until, stream.progress.ready) : nullptr);
    if (traffic_ == nullptr) return;
    const Seconds whole{until - start};
    for (const auto& [span, aggregate] : calls_.spans(calls_.call(0, step))) {
        traffic_->add(aggregate, span.each, Seconds{start} + whole * span.begin, Seconds{start} + whole * span.end);
    }
}

bool Fold::take_together(int c, Stream stream, int step, const Calls::OfClass& own) {
    std::vector<Member> members;
    double begin = 0;
    for (const int other : own.with) {
        ClassState& state = classes_[at(other)];
        const std::optional<int> head = state.waiting(stream);
        if (!head || calls_.number(other, *head) != calls_.number(c, step)) return false;
        const std::optional<double> from = state.needed(*head);
        if (!from) return false;
        members.push_back({other, *head, std::max(*from, state.of_step(*head).free)});
        begin = std::max(begin, members.back().start);
    }
    flows_ += own.messages;
    if (own.phases.empty()) {
        for (const Member& each : members) end(each.rank_class, each.step, each.start, begin);
        return true;
    }
    for (const Member& each : members) classes_[at(each.rank_class)].of_step(each.step).on_the_way = true;
    set_out({.rank_class = c, .step = step, .together = static_cast<int>(together_.size()), .phases = own.phases},
            begin);
    together_.push_back(std::move(members));
    return true;
}

bool Fold::computes(const ActiveCollective& active) const {
    return (*classes_[at(active.rank_class)].steps)[at(active.step)].stream == Stream::compute;
}

void Fold::set_out(const ActiveCollective& active, double start) {
    classes_[at(active.rank_class)].of_step(active.step).on_the_way = true;
    active_.set_out(active, start);
}

void Fold::arrive(const ActiveCollective& active, double when) {
    ClassState& state = classes_[at(active.rank_class)];
    StreamState& stream = state.of_step(active.step);
    stream.on_the_way = false;
    if (active.together >= 0) return arrive_together(together_[at(active.together)], when);
    if (classes_.size() == 1) {
        const bool alone = when - stream.unhindered <= 1e-9 * (stream.unhindered - active.begun);
        return end_only(stream, active.step, active.begun, alone ? stream.unhindered : when);
    }
    if (!computes(active)) when += steps_.extra(active.rank_class, active.step).value;
    end(active.rank_class, active.step, active.begun, when);
    if (active.recv < 0) return;
    ClassState& peer = classes_[at(active.to_class)];
    end(active.to_class, active.recv, active.begun, when);
    state.flow[at(active.step)] = peer.flow[at(active.recv)] = ++arrows_;
}

void Fold::arrive_together(const std::vector<Member>& members, double when) {
    Seconds extra;
    for (const Member& each : members) extra = std::max(extra, steps_.extra(each.rank_class, each.step));
    for (const Member& each : members) {
        classes_[at(each.rank_class)].of_step(each.step).on_the_way = false;
        end(each.rank_class, each.step, each.start, when + extra.value);
    }
}

Earlier Fold::waited_for(int step, const StreamState* stream) const {
    if (!rank_by_rank_) return nullptr;
    const ClassState& state = classes_.front();
    std::vector<std::pair<double, const Earlier*>> unlike;
    double all = 0, last = 0;
    const auto wait_for = [&](double end, const Earlier& earlier) {
        last = std::max(last, end);
        if (earlier == nullptr) {
            all = std::max(all, end);
        } else {
            unlike.emplace_back(end, &earlier);
        }
    };
    for (const int before : (*state.steps)[at(step)].after) wait_for(state.end[at(before)], state.earlier[at(before)]);
    if (stream != nullptr) wait_for(stream->free, stream->earlier);
    if (all >= last) return nullptr;
    const auto latest = std::ranges::max_element(unlike);
    std::vector<double> times(at(steps_.ranks()), all);
    for (const auto& [end, earlier] : unlike) {
        if (end != latest->first && *earlier == *latest->second) continue;
        for (std::size_t rank = 0; rank < times.size(); ++rank)
            times[rank] = std::max(times[rank], end + (**earlier)[rank]);
    }
    Earlier made = earlier_than(last, times);
    const bool known = made != nullptr && *made == **latest->second;
    return known ? *latest->second : made;
}

double Fold::together(StreamState& stream, Calls::OneCall& call, int step, double needed) {
    const Earlier earlier = waited_for(step, nullptr);
    const bool fresh = needed >= stream.over && needed >= stream.free && earlier == nullptr;
    if (fresh && call.lasting) return stream.over = needed + *call.lasting;
    Collectives::Progress& progress = stream.progress;
    progress.ready.resize(static_cast<std::size_t>(steps_.ranks()), stream.free);
    if (stream.over > 0) Collectives::catch_up(progress, Seconds{stream.over});
    if (earlier == nullptr) {
        collectives_.run(call.call, Seconds{needed}, progress);
    } else {
        const double first = Collectives::hold(progress, Seconds{needed}, *earlier);
        collectives_.run(call.call, Seconds{first}, progress);
    }
    const auto [first, last] = std::ranges::minmax(progress.ready);
    stream.over = last;
    if (fresh && last - first <= 1e-9 * (last - needed)) call.lasting = last - needed;
    return last;
}

}  // namespace rehearse::sim
