// SPDX-License-Identifier: Apache-2.0
#include "sim/host/overlap.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "core/collectives/library.hpp"
#include "prices/tile_model.hpp"
#include "sim/collective/groups.hpp"
#include "sim/collective/libraries/library_times.hpp"

namespace rehearse::sim {

namespace {

/// Of one step on one rank, if the core computed all the while.
struct Toll {
    Seconds core;       // taken from the computation
    Seconds delay;      // of the communication
    double rounds = 0;  // that this is the delay of, one after the other
};

bool given(const Overlap& overlap) { return !overlap.core_rate.source.empty(); }

double processors_of(const DeviceClass& device) { return device.tiles ? device.tiles->processors.value : 0; }

class Tolls {
public:
    Tolls(const Steps& steps, const Wiring& wiring)
        : steps_(steps), wiring_(wiring), library_(wiring, [&steps](RankIndex rank) { return steps.class_of(rank); }) {}

    /// `alone`: what the step takes without a delay.
    Toll of(const Step& step, RankIndex rank, Seconds alone) {
        const Mesh& mesh = steps_.schedule().mesh;
        if (const auto* send = std::get_if<Send>(&step.action))
            return of_message(rank, rank + send->offset * stride(mesh, send->axis), send->bytes);
        if (const auto* recv = std::get_if<Recv>(&step.action))
            return of_message(rank, rank + recv->offset * stride(mesh, recv->axis), recv->bytes);
        if (const auto* communicate = std::get_if<Communicate>(&step.action)) return of_call(*communicate, rank, alone);
        return {};
    }

private:
    // Half of a message out and one in, as it was measured.
    Toll of_message(std::int64_t from, std::int64_t to, Bytes bytes) const {
        const Machine& machine = wiring_.machine();
        const Overlap& overlap = wiring_.across(from, to) ? machine.across.overlap : machine.inside.overlap;
        if (!given(overlap)) return {};
        return {(overlap.core_time.value + bytes / overlap.core_rate.value) * 0.5, overlap.delay.value, 1};
    }

    // A round is late once, however many messages the rank has in it.
    Toll of_call(const Communicate& communicate, RankIndex rank, Seconds alone) {
        const Call call = call_of(communicate);
        if (of_library(call.algorithm)) {
            const double all = processors_of(class_of(wiring_.machine(), rank));
            const double held = static_cast<double>(library_.price(call, steps_.schedule().mesh, rank).blocks);
            return {alone * (all > 0 ? std::min(1.0, held / all) : 0), {}, 0};
        }
        const Groups groups = groups_along(steps_.schedule().mesh, call.axis, call.algorithm, wiring_);
        const Collective rounds = rounds_of(call, groups);
        const std::int64_t own = groups.member_of(rank), group = groups.group_of(rank);
        Toll sum;
        for (const Phase& phase : rounds.phases()) {
            Toll of_round;
            for (const Message& message : rounds.messages(phase.first_round)) {
                if (message.from != own && message.to != own) continue;
                const Toll one = of_message(groups.rank(group, message.from), groups.rank(group, message.to),
                                            bytes_of(message, call.type));
                of_round = {of_round.core + one.core, std::max(of_round.delay, one.delay), 1};
            }
            const auto times = static_cast<double>(phase.repeats);
            sum = {sum.core + of_round.core * times, sum.delay + of_round.delay * times,
                   sum.rounds + of_round.rounds * times};
        }
        return sum;
    }

    const Steps& steps_;
    const Wiring& wiring_;
    LibraryCalls library_;
};

Seconds common(const Event& a, const Event& b) {
    return std::max(Seconds{0}, std::min(a.end, b.end) - std::max(a.start, b.start));
}

using Events = std::vector<const Event*>;

// The steps of one class as the timeline shows them on one rank, in the order of the steps.
Events events_of(const RankClass& rank_class, RankIndex rank, const Timeline& timeline) {
    using Key = std::pair<Stream, std::string_view>;
    std::map<Key, const Event*> by_name;
    for (const Event& event : timeline.events) {
        if (event.rank == rank && event.iteration == 0) by_name.emplace(Key{event.stream, event.step}, &event);
    }
    Events events;
    for (const Step& step : rank_class.steps) events.push_back(by_name.at({step.stream, step.name}));
    return events;
}

struct Interval {
    Seconds start, end;
};
constexpr Seconds no_gap{1e-9};

// When the core of a rank computes, or all those that it shares with others do; without the steps of its class from
// `waiting` on. `events` by class.
std::vector<Interval> busy_times(const Steps& steps, const std::vector<Events>& events, RankIndex rank,
                                 std::size_t waiting) {
    const int pool = steps.cores().pool_of(rank);
    const std::vector<RankIndex> own{rank};
    const std::vector<RankIndex>& ranks = pool < 0 ? own : steps.cores().pools()[static_cast<std::size_t>(pool)].ranks;
    const std::int64_t cores = pool < 0 ? 1 : steps.cores().pools()[static_cast<std::size_t>(pool)].cores;
    std::vector<std::pair<Seconds, int>> changes;
    for (const RankIndex each : ranks) {
        const Events& of_rank = events[static_cast<std::size_t>(steps.class_of(each))];
        const std::size_t count = steps.class_of(each) == steps.class_of(rank) ? waiting : of_rank.size();
        for (std::size_t i = 0; i < count; ++i) {
            if (of_rank[i]->stream != Stream::compute || of_rank[i]->end <= of_rank[i]->start) continue;
            changes.emplace_back(of_rank[i]->start, 1);
            changes.emplace_back(of_rank[i]->end, -1);
        }
    }
    std::ranges::sort(changes);
    std::vector<Interval> busy;
    std::int64_t computing = 0;
    for (const auto& [when, change] : changes) {
        const bool before = computing >= cores;
        computing += change;
        if (before == (computing >= cores)) continue;
        if (before) {
            busy.back().end = when;
        } else if (busy.empty() || when > busy.back().end + no_gap) {
            busy.push_back({when, when});
        }
    }
    return busy;
}

// The first step of the compute stream that waits for this one, or for what waits for it.
std::size_t first_dependent(const std::vector<Step>& steps, std::size_t on) {
    std::vector<bool> depends(steps.size());
    depends[on] = true;
    for (std::size_t i = on + 1; i < steps.size(); ++i) {
        depends[i] =
            std::ranges::any_of(steps[i].after, [&](int before) { return depends[static_cast<std::size_t>(before)]; });
        if (depends[i] && steps[i].stream == Stream::compute) return i;
    }
    return steps.size();
}

// How long the core computes from `start` on: `alone`, and as long as it goes on then without a pause, to `end` at
// most.
Seconds busy_from(const std::vector<Interval>& busy, Seconds start, Seconds alone, Seconds end) {
    Seconds sum;
    for (const Interval& interval : busy) {
        const Seconds until = interval.start + no_gap < start + alone ? end : start + alone;
        sum += std::max(Seconds{0}, std::min(interval.end, until) - std::max(interval.start, start));
    }
    return sum;
}

// Each round is late by its share of the delay while the core computes, which it does for `busy` from the first one on;
// what is awaited when the computation ends is there at once.
Seconds delay_of(const Toll& toll, Seconds alone, Seconds busy) {
    const Seconds round = alone * (1 / toll.rounds), late = toll.delay * (1 / toll.rounds);
    const double whole = std::floor(busy / (round + late) + 1e-9);
    if (whole >= toll.rounds) return toll.delay;
    return whole * late + std::clamp(busy - whole * (round + late) - round, Seconds{0}, late);
}

/// What one class loses.
std::vector<Seconds> losses_of(const Steps& steps, int c, const std::vector<Events>& all, Tolls& tolls) {
    const std::vector<Step>& program = steps.schedule().classes[static_cast<std::size_t>(c)].steps;
    const Events& events = all[static_cast<std::size_t>(c)];
    const RankIndex rank = steps.first_rank(c);
    std::vector<Seconds> extra(program.size());
    for (std::size_t i = 0; i < program.size(); ++i) {
        const Seconds start = events[i]->start, length = events[i]->end - start;
        const Seconds alone = length - steps.lengthened(c, static_cast<int>(i));
        if (program[i].stream == Stream::compute || alone <= Seconds{0}) continue;
        const Toll toll = tolls.of(program[i], rank, alone);
        for (std::size_t k = 0; k < program.size() && toll.core > Seconds{0}; ++k) {
            if (program[k].stream == Stream::compute) extra[k] += toll.core * (common(*events[i], *events[k]) / length);
        }
        if (!(toll.delay > Seconds{0})) continue;
        const std::vector<Interval> busy = busy_times(steps, all, rank, first_dependent(program, i));
        extra[i] += delay_of(toll, alone, busy_from(busy, start, alone, start + alone + toll.delay));
    }
    return extra;
}

// A message is as late at both its ends as at the one where it is later. The n-th to a rank is the n-th that it
// receives on the stream of these tensors.
void join_ends(const Steps& steps, std::vector<std::vector<Seconds>>& extra) {
    using Channel = std::tuple<int, int, std::int64_t, bool>;  // of the receiver: class, axis, offset; gradients?
    const std::vector<RankClass>& classes = steps.schedule().classes;
    std::map<Channel, std::vector<Seconds*>> received;
    for (std::size_t c = 0; c < classes.size(); ++c) {
        for (std::size_t i = 0; i < classes[c].steps.size(); ++i) {
            const Step& step = classes[c].steps[i];
            const auto* recv = std::get_if<Recv>(&step.action);
            if (recv == nullptr) continue;
            received[{static_cast<int>(c), recv->axis, recv->offset, step.stream == Stream::receive_gradients}]
                .push_back(&extra[c][i]);
        }
    }
    for (std::size_t c = 0; c < classes.size(); ++c) {
        std::map<Channel, std::size_t> sent;
        for (std::size_t i = 0; i < classes[c].steps.size(); ++i) {
            const Step& step = classes[c].steps[i];
            const auto* send = std::get_if<Send>(&step.action);
            if (send == nullptr) continue;
            const RankIndex peer =
                neighbour(steps.schedule().mesh, send->axis, steps.first_rank(static_cast<int>(c)), send->offset);
            const Channel channel{steps.class_of(peer), send->axis, -send->offset,
                                  step.stream == Stream::send_gradients};
            Seconds& other = *received.at(channel).at(sent[channel]++);
            other = extra[c][i] = std::max(extra[c][i], other);
        }
    }
}

}  // namespace

bool loses_to_messages(const Machine& machine) {
    return given(machine.inside.overlap) || given(machine.across.overlap);
}

int overlap_rounds(const Machine& machine, const Schedule& schedule) {
    if (loses_to_messages(machine)) return 4;
    const auto known = [](const DeviceClass& device) { return processors_of(device) > 0; };
    if (std::ranges::none_of(machine.classes, known)) return 0;
    for (const RankClass& each : schedule.classes) {
        for (const Step& step : each.steps) {
            const auto* communicate = std::get_if<Communicate>(&step.action);
            if (communicate != nullptr && step.stream != Stream::compute && of_library(communicate->algorithm))
                return 2;
        }
    }
    return 0;
}

std::vector<std::vector<Seconds>> losses(const Steps& steps, const Wiring& wiring, const Timeline& timeline) {
    const std::vector<RankClass>& classes = steps.schedule().classes;
    std::vector<Events> events;
    for (std::size_t c = 0; c < classes.size(); ++c) {
        events.push_back(events_of(classes[c], steps.first_rank(static_cast<int>(c)), timeline));
    }
    Tolls tolls{steps, wiring};
    std::vector<std::vector<Seconds>> extra;
    for (std::size_t c = 0; c < classes.size(); ++c) {
        extra.push_back(losses_of(steps, static_cast<int>(c), events, tolls));
    }
    join_ends(steps, extra);
    return extra;
}

}  // namespace rehearse::sim
