// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/collectives/library.hpp"
#include "core/index.hpp"
#include "sim/collective/in_switch.hpp"

namespace rehearse::sim {

namespace {

bool same(const Call& a, const Communicate& b) {
    return a.elements == b.elements && a.kind == b.kind && a.axis == b.axis && a.type == b.type &&
           a.algorithm == b.algorithm && a.root == b.root;
}

}  // namespace

Calls::Calls(const Steps& steps, const Wiring& wiring, Collectives& collectives, Traffic* traffic)
    : steps_(steps), wiring_(wiring), collectives_(collectives), traffic_(traffic), bundles_(wiring) {
    const std::vector<RankClass>& classes = steps.schedule().classes;
    senders_.resize(classes.size());
    several_ = classes.size() == 1 && std::ranges::count_if(streams_of(classes.front().steps), is_communicator) > 1;
    for (int c = 0; c < static_cast<int>(classes.size()); ++c) {
        const std::vector<Step>& of_class = classes[at(c)].steps;
        messages_.emplace_back(of_class.size(), nullptr);
        call_of_.emplace_back(of_class.size(), -1);
        for (int i = 0; i < static_cast<int>(of_class.size()); ++i) {
            const Action& action = of_class[at(i)].action;
            if (const auto* send = std::get_if<Send>(&action)) add_message(c, i, *send);
            if (const auto* communicate = std::get_if<Communicate>(&action)) add_call(c, i, *communicate);
        }
    }
    work_.resize(classes.size());
    for (int c = 0; c < static_cast<int>(classes.size()); ++c) add_work(c);
    stretch_library_calls();
    if (several_) find_shared();
}

/// Whether communicators of the only class share links. Among very many ranks, whose rounds are not looked at one by
/// one, they are taken to share all of them all the time.
void Calls::find_shared() {
    const std::vector<Step>& steps = steps_.schedule().classes.front().steps;
    if (steps_.ranks() <= Collectives::many_ranks) {
        shares_ = communicators_meet();
        return;
    }
    shares_ = true;
    for (const Stream stream : streams_of(steps)) {
        if (is_communicator(stream)) filling_[stream] = bundles_.add_filling();
    }
}

bool Calls::communicators_meet() {
    const std::vector<Step>& steps = steps_.schedule().classes.front().steps;
    std::set<std::pair<int, Stream>> bundles;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (call_of_.front()[i] < 0) continue;
        for (const Leg& leg : call(0, static_cast<int>(i)).of_class.front().legs) {
            bundles.insert({leg.bundle, steps[i].stream});
        }
    }
    return std::ranges::any_of(bundles, [&](const auto& a) {
        return std::ranges::any_of(
            bundles, [&](const auto& b) { return a.second != b.second && bundles_.meet(a.first, b.first); });
    });
}

std::vector<Leg> Calls::shared_legs(int rank_class, int step, Seconds alone) {
    if (!shares_ || !(alone > Seconds{0})) return {};
    const Stream stream = steps_.schedule().classes[at(rank_class)].steps[at(step)].stream;
    if (!filling_.empty()) return {{filling_.at(stream), alone.value, Seconds{0}}};
    std::vector<Leg> legs = call(rank_class, step).of_class[at(rank_class)].legs;
    double counted = 0;
    for (const Leg& leg : legs) counted += leg.bytes / bundles_.rates({leg.bundle}).front() + leg.afterwards.value;
    for (Leg& leg : legs)
        leg = {leg.bundle, leg.bytes * (alone.value / counted), leg.afterwards * (alone.value / counted)};
    return legs;
}

// Behind all bundles of messages, whose numbers are those of their flows in the traffic.
void Calls::add_work(int c) {
    const Cores& cores = steps_.cores();
    const std::vector<std::int64_t>& ranks = steps_.ranks_of(c);
    if (std::ranges::none_of(ranks, [&](std::int64_t rank) { return cores.pool_of(rank) >= 0; })) return;
    const int bundle = bundles_.add_work(cores, ranks);
    for (int step = 0; step < std::ssize(steps_.schedule().classes[at(c)].steps); ++step) {
        work_[at(c)].push_back({bundle, steps_.slowest(c, step).value, Seconds{0}});
    }
}

int Calls::add_bundle(const std::vector<Flow>& flows) {
    std::uint64_t hash = 14695981039346656037U;  // FNV-1a, a pair at a time
    for (const Flow& flow : flows)
        hash = (hash ^ static_cast<std::uint64_t>(flow.from << 32 ^ flow.to)) * 1099511628211U;
    for (auto [it, end] = known_.equal_range(hash); it != end; ++it) {
        if (it->second.first == flows) return it->second.second;
    }
    if (traffic_ != nullptr) tracked_.push_back(traffic_->bundle(flows));
    return known_.emplace(hash, std::pair{flows, bundles_.add(flows)})->second.second;
}

void Calls::add_message(int c, int step, const Send& send) {
    const auto [known, fresh] = bundle_of_.try_emplace({c, send.axis, send.offset});
    if (fresh) {
        std::vector<Flow> flows;
        const std::int64_t apart = send.offset * stride(steps_.schedule().mesh, send.axis);
        for (const std::int64_t rank : steps_.ranks_of(c)) flows.push_back({rank, rank + apart});
        known->second = {steps_.class_of(steps_.first_rank(c) + apart), add_bundle(flows)};
        tell(known->second.first, c);
    }
    const auto [peer, bundle] = known->second;
    const auto entry =
        message_of_.try_emplace({c, send.axis, send.offset, send.bytes.value},
                                Message{peer, {bundle, send.bytes.value, bundles_.latency(bundle, send.bytes)}});
    messages_[at(c)][at(step)] = &entry.first->second;
}

/// What happens in `c` may be what `other` waits for.
void Calls::tell(int c, int other) {
    std::vector<int>& senders = senders_[at(c)];
    if (std::ranges::find(senders, other) == senders.end()) senders.push_back(other);
}

void Calls::add_call(int c, int step, const Communicate& communicate) {
    auto found = std::ranges::find_if(calls_, [&](const OneCall& one) { return same(one.call, communicate); });
    if (found == calls_.end()) {
        OneCall& made = calls_.emplace_back();
        made.call = call_of(communicate);
        made.of_class.resize(steps_.schedule().classes.size());
        found = std::prev(calls_.end());
    }
    call_of_[at(c)][at(step)] = static_cast<int>(found - calls_.begin());
    OfClass& of = found->of_class[at(c)];
    if (of.known) return;
    of.known = true;
    if (steps_.schedule().classes.size() > 1) return add_legs(c, communicate, of);
    of.messages = collectives_.messages(found->call);
    if (!several_ || steps_.ranks() > Collectives::many_ranks) return;
    OfClass all;
    add_legs(c, communicate, all);
    of.legs = std::move(all.legs);
}

Bytes Calls::sent(int rank_class, int step) {
    OneCall& one = call(rank_class, step);
    std::optional<Bytes>& sent = one.of_class[at(rank_class)].sent;
    if (!sent) sent = collectives_.sent(one.call, steps_.first_rank(rank_class));
    return *sent;
}

/// Of the groups that have ranks of class `c`. As ranks of a class differ only along axes that are no class's, or in
/// which of equal shares is theirs, all its groups have ranks of the same classes.
std::vector<int> Calls::classes_with(int c, const Groups& groups) const {
    std::set<int> classes;
    const std::int64_t group = groups.group_of(steps_.first_rank(c));
    for (std::int64_t member = 0; member < groups.shape.size; ++member) {
        classes.insert(steps_.class_of(groups.rank(group, member)));
    }
    return {classes.begin(), classes.end()};
}

/// The rounds of a collective of this class's groups alone: other classes do theirs at other times, unless they are in
/// the same groups.
void Calls::add_legs(int c, const Communicate& communicate, OfClass& of) {
    const Groups groups = groups_along(steps_.schedule().mesh, communicate.axis, communicate.algorithm, wiring_);
    const Collective rounds = rounds_of(call_of(communicate), groups);
    const std::int64_t first = groups.member_of(steps_.first_rank(c));
    of.with = classes_with(c, groups);
    Bytes sent;
    const int lead = steps_.class_of(groups.rank(groups.group_of(steps_.first_rank(c)), 0));
    for (const int other : of.with) {
        if (other != c) tell(c, other);
    }
    const std::optional<InSwitch> summing = in_switch(call_of(communicate), groups, wiring_);
    for (const Phase& phase : rounds.phases()) {
        const std::vector<Parcel> parcels = rounds.parcels(phase.first_round);
        if (parcels.empty()) continue;
        std::vector<Flow> flows;
        Bytes bytes;
        PerByte combine;
        const auto times = static_cast<double>(phase.repeats);
        for (const Parcel& parcel : parcels) {
            bytes = std::max(bytes, bytes_of(parcel, communicate.type));
            if (parcel.from == first) sent += times * bytes_of(parcel, communicate.type);
        }
        if (summing) bytes = summing->bytes * bytes;
        for (std::int64_t group = 0; group < groups.count; ++group) {
            if (steps_.class_of(groups.rank(group, 0)) != lead) continue;
            for (const Parcel& parcel : parcels) {
                const Flow flow{groups.rank(group, parcel.from), groups.rank(group, parcel.to)};
                flows.push_back(flow);
                combine = std::max(combine, wiring_.combine(flow.from, flow.to) * passes(parcel.combine));
            }
        }
        const int bundle = add_bundle(flows);
        const Seconds after =
            summing ? wiring_.stretched_inside(summing->latency) : bundles_.latency(bundle, bytes) + combine * bytes;
        of.legs.push_back({bundle, times * bytes.value, times * after});
        of.messages += phase.repeats * static_cast<std::int64_t>(flows.size());
    }
    of.sent = summing ? summing->bytes * sent : sent;
}

/// Collectives of a library use their rings' links, for as long as the library's takes alone. Once all bundles are
/// there.
void Calls::stretch_library_calls() {
    for (OneCall& one : calls_) {
        if (!of_library(one.call.algorithm)) continue;
        for (OfClass& of : one.of_class) {
            double counted = 0;
            for (const Leg& leg : of.legs)
                counted += leg.bytes / bundles_.rates({leg.bundle}).front() + leg.afterwards.value;
            if (!(counted > 0)) continue;
            const double longer = collectives_.library_time(one.call).value / counted;
            for (Leg& leg : of.legs) leg = {leg.bundle, leg.bytes * longer, leg.afterwards * longer};
            of.sent = library_sent(one.call, steps_.schedule().mesh);
        }
    }
}

const std::vector<std::pair<Collectives::Span, int>>& Calls::spans(OneCall& call) {
    if (call.spans) return *call.spans;
    call.spans.emplace();
    std::vector<Flow> flows;
    for (const Collectives::Span& span : collectives_.spans(call.call)) {
        flows.clear();
        for (const sim::Message& m : span.pattern->messages) flows.push_back({m.from, m.to});
        call.spans->emplace_back(span, traffic_->bundle(flows));
    }
    return *call.spans;
}

}  // namespace rehearse::sim
