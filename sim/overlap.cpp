// SPDX-License-Identifier: Apache-2.0
#include "sim/overlap.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "sim/groups.hpp"

namespace rehearse::sim {

namespace {

/// Of one step on one rank, if the core computed all the while.
struct Toll {
    Seconds core;   // taken from the computation
    Seconds delay;  // of the communication
};

bool given(const Overlap& overlap) { return !overlap.core_rate.source.empty(); }

class Tolls {
public:
    Tolls(const Steps& steps, const Wiring& wiring) : steps_(steps), wiring_(wiring) {}

    Toll of(const Step& step, std::int64_t rank) {
        const Mesh& mesh = steps_.schedule().mesh;
        if (const auto* send = std::get_if<Send>(&step.action))
            return of_message(rank, rank + send->offset * stride(mesh, send->axis), send->bytes);
        if (const auto* recv = std::get_if<Recv>(&step.action))
            return of_message(rank, rank + recv->offset * stride(mesh, recv->axis), recv->bytes);
        if (const auto* communicate = std::get_if<Communicate>(&step.action)) return of_call(*communicate, rank);
        return {};
    }

private:
    // Half of a message out and one in, as it was measured.
    Toll of_message(std::int64_t from, std::int64_t to, Bytes bytes) const {
        const Machine& machine = wiring_.machine();
        const Overlap& overlap = wiring_.across(from, to) ? machine.across.overlap : machine.inside.overlap;
        if (!given(overlap)) return {};
        return {(overlap.core_time.value + bytes / overlap.core_rate.value) * 0.5, overlap.delay.value};
    }

    // A round is late once, however many messages the rank has in it.
    Toll of_call(const Communicate& communicate, std::int64_t rank) const {
        const Call call = call_of(communicate);
        const Groups groups = groups_along(steps_.schedule().mesh, call.axis, call.algorithm, wiring_);
        const Collective rounds = rounds_of(call, groups);
        const std::int64_t own = groups.member_of(rank), group = groups.group_of(rank);
        Toll sum;
        for (const Phase& phase : rounds.phases()) {
            Toll of_round;
            for (const Parcel& parcel : rounds.parcels(phase.first_round)) {
                if (parcel.from != own && parcel.to != own) continue;
                const Toll one = of_message(groups.rank(group, parcel.from), groups.rank(group, parcel.to),
                                            bytes_of(parcel, call.type));
                of_round = {of_round.core + one.core, std::max(of_round.delay, one.delay)};
            }
            const auto times = static_cast<double>(phase.repeats);
            sum = {sum.core + of_round.core * times, sum.delay + of_round.delay * times};
        }
        return sum;
    }

    const Steps& steps_;
    const Wiring& wiring_;
};

Seconds common(const Event& a, const Event& b) {
    return std::max(Seconds{0}, std::min(a.end, b.end) - std::max(a.start, b.start));
}

// The steps of one class as the timeline shows them on one rank, in the order of the steps.
std::vector<const Event*> events_of(const RankClass& rank_class, std::int64_t rank, const Timeline& timeline) {
    using Key = std::pair<Stream, std::string_view>;
    std::map<Key, const Event*> by_name;
    for (const Event& event : timeline.events) {
        if (event.rank == rank && event.iteration == 0) by_name.emplace(Key{event.stream, event.step}, &event);
    }
    std::vector<const Event*> events;
    for (const Step& step : rank_class.steps) events.push_back(by_name.at({step.stream, step.name}));
    return events;
}

}  // namespace

bool loses_by_overlap(const Machine& machine) { return given(machine.inside.overlap) || given(machine.across.overlap); }

std::vector<std::vector<Seconds>> losses(const Steps& steps, const Wiring& wiring, const Timeline& timeline) {
    std::vector<std::vector<Seconds>> by_class;
    Tolls tolls{steps, wiring};
    for (std::size_t c = 0; c < steps.schedule().classes.size(); ++c) {
        const RankClass& rank_class = steps.schedule().classes[c];
        const std::int64_t rank = steps.first_rank(static_cast<int>(c));
        const std::vector<const Event*> events = events_of(rank_class, rank, timeline);
        std::vector<Seconds>& extra = by_class.emplace_back(events.size());
        for (std::size_t i = 0; i < events.size(); ++i) {
            const Seconds length = events[i]->end - events[i]->start;
            if (rank_class.steps[i].stream == Stream::compute || length <= Seconds{0}) continue;
            const Toll toll = tolls.of(rank_class.steps[i], rank);
            for (std::size_t k = 0; k < events.size(); ++k) {
                if (rank_class.steps[k].stream != Stream::compute) continue;
                const double share = common(*events[i], *events[k]) / length;
                extra[k] += toll.core * share;
                extra[i] += toll.delay * share;
            }
        }
    }
    return by_class;
}

}  // namespace rehearse::sim
