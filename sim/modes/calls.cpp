// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/collectives/library.hpp"
#include "core/index.hpp"
#include "sim/collective/in_switch.hpp"

namespace rehearse::sim {

namespace {

bool same(const Call& a, const Communicate& b) {
    return a.elements == b.elements && a.kind == b.kind && a.axis == b.axis && a.type == b.type &&
           a.algorithm == b.algorithm && a.root == b.root;
}

// Whether a library's kernels of one device are in several streams, so that they may be due at once.
bool by_several_streams(const RankClass& rank_class) {
    std::set<Stream> streams;
    for (const Step& step : rank_class.steps) {
        const auto* communicate = std::get_if<Communicate>(&step.action);
        if (communicate != nullptr && of_library(communicate->algorithm)) streams.insert(step.stream);
    }
    return streams.size() > 1;
}

// What differs by rounding alone gets the size of the largest.
void level(std::vector<Message>& of_round) {
    const std::int64_t largest = std::ranges::max(of_round, {}, &Message::elements).elements;
    for (Message& message : of_round) message.elements = largest;
}

}  // namespace

Calls::Calls(const KindSteps& steps, const Wiring& wiring, Collectives& collectives, Traffic* traffic)
    : steps_(steps),
      wiring_(wiring),
      collectives_(collectives),
      library_(wiring, [&steps](RankIndex rank) { return steps.of_classes().class_of(rank); }),
      traffic_(traffic),
      aggregates_(wiring) {
    const std::vector<RankClass>& classes = steps.schedule().classes;
    const int kinds = static_cast<int>(steps.count());
    senders_.resize(steps.count());
    kernels_meet_ = std::ranges::any_of(classes, by_several_streams);
    several_ = kinds == 1 && std::ranges::count_if(streams_of(classes.front().steps), is_communicator) > 1;
    for (int c = 0; c < kinds; ++c) {
        const std::vector<Step>& of_class = steps.program(c);
        messages_.emplace_back(of_class.size(), nullptr);
        call_of_.emplace_back(of_class.size(), -1);
        for (int i = 0; i < static_cast<int>(of_class.size()); ++i) {
            const Action& action = of_class[at(i)].action;
            if (const auto* send = std::get_if<Send>(&action)) add_message(c, i, *send);
            if (const auto* communicate = std::get_if<Communicate>(&action)) add_call(c, i, *communicate);
        }
    }
    work_.resize(steps.count());
    for (int c = 0; c < kinds; ++c) add_work(c);
    stretch_library_calls();
    if (several_) find_shared();
}

/// Whether communicators of the only class share links. Among very many ranks, whose rounds are not looked at one by
/// one, they are taken to share all of them all the time.
void Calls::find_shared() {
    const std::vector<Step>& steps = steps_.program(0);
    if (steps_.ranks() <= Collectives::many_ranks) {
        shares_ = communicators_meet();
        return;
    }
    shares_ = true;
    for (const Stream stream : streams_of(steps)) {
        if (is_communicator(stream)) filling_[stream] = aggregates_.add_filling();
    }
}

bool Calls::communicators_meet() {
    const std::vector<Step>& steps = steps_.program(0);
    std::set<std::pair<int, Stream>> aggregates;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (call_of_.front()[i] < 0) continue;
        for (const FlowPhase& phase : call(0, static_cast<int>(i)).of_class.front().phases) {
            aggregates.insert({phase.aggregate, steps[i].stream});
        }
    }
    return std::ranges::any_of(aggregates, [&](const auto& a) {
        return std::ranges::any_of(
            aggregates, [&](const auto& b) { return a.second != b.second && aggregates_.meet(a.first, b.first); });
    });
}

std::vector<FlowPhase> Calls::shared_phases(int rank_class, int step, Seconds alone) {
    if (!shares_ || !(alone > Seconds{0})) return {};
    const Stream stream = steps_.program(rank_class)[at(step)].stream;
    if (!filling_.empty()) return {{filling_.at(stream), alone.value, Seconds{0}}};
    std::vector<FlowPhase> phases = call(rank_class, step).of_class[at(rank_class)].phases;
    double counted = 0;
    for (const FlowPhase& phase : phases)
        counted += phase.bytes / aggregates_.rate_alone(phase.aggregate) + phase.afterwards.value;
    for (FlowPhase& phase : phases)
        phase = {phase.aggregate, phase.bytes * (alone.value / counted), phase.afterwards * (alone.value / counted)};
    return phases;
}

// Behind all aggregates of messages, whose numbers are those of their flows in the traffic.
void Calls::add_work(int c) {
    const Cores& cores = steps_.cores();
    const std::vector<RankIndex>& ranks = steps_.ranks_of(c);
    if (std::ranges::none_of(ranks, [&](RankIndex rank) { return cores.pool_of(rank) >= 0; })) return;
    const int aggregate = aggregates_.add_work(cores, ranks);
    for (int step = 0; step < std::ssize(steps_.program(c)); ++step) {
        work_[at(c)].push_back({aggregate, steps_.slowest(c, step).value, Seconds{0}});
    }
}

/// `filled_by`: classes of which a library's kernel has all links of a device that others of its kernels wait for.
int Calls::add_aggregate(const std::vector<Flow>& flows, const std::vector<int>& filled_by) {
    auto& known = known_[filled_by];
    std::uint64_t hash = 14695981039346656037U;  // FNV-1a, a pair at a time
    for (const Flow& flow : flows)
        hash = (hash ^ static_cast<std::uint64_t>(flow.from << 32 ^ flow.to)) * 1099511628211U;
    for (auto [it, end] = known.equal_range(hash); it != end; ++it) {
        if (it->second.first == flows) return it->second.second;
    }
    if (traffic_ != nullptr) tracked_.push_back(traffic_->aggregate(flows));
    const int made = aggregates_.add(flows);
    for (const int c : filled_by) aggregates_.fill(made, c);
    return known.emplace(hash, std::pair{flows, made})->second.second;
}

void Calls::add_message(int c, int step, const Send& send) {
    const auto [known, fresh] = aggregate_of_.try_emplace({c, send.axis, send.offset});
    if (fresh) {
        std::vector<Flow> flows;
        const std::int64_t apart = send.offset * stride(steps_.schedule().mesh, send.axis);
        for (const RankIndex rank : steps_.ranks_of(c)) flows.push_back({rank, rank + apart});
        const RankIndex peer = neighbour(steps_.schedule().mesh, send.axis, steps_.first_rank(c), send.offset);
        known->second = {steps_.kind_of(peer), add_aggregate(flows)};
        tell(known->second.first, c);
    }
    const auto [peer, aggregate] = known->second;
    const auto entry = message_of_.try_emplace(
        {c, send.axis, send.offset, send.bytes.value},
        Message{peer, {aggregate, send.bytes.value, aggregates_.latency(aggregate, send.bytes)}});
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
        made.of_class.resize(steps_.count());
        found = std::prev(calls_.end());
    }
    call_of_[at(c)][at(step)] = static_cast<int>(found - calls_.begin());
    OfClass& of = found->of_class[at(c)];
    if (of.known) return;
    of.known = true;
    if (steps_.count() > 1) return add_phases(c, communicate, of);
    of.messages = collectives_.messages(found->call);
    if (!several_ || steps_.ranks() > Collectives::many_ranks) return;
    OfClass all;
    add_phases(c, communicate, all);
    of.phases = std::move(all.phases);
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
        classes.insert(steps_.kind_of(groups.rank(group, member)));
    }
    return {classes.begin(), classes.end()};
}

/// Messages of one round between the same classes, which go at one pace.
struct Calls::Messages {
    std::vector<Flow> flows;  // whose sizes are relative to the largest
    double largest = 0;       // elements
    PerByte combine;          // by byte of the largest

    /// Sizes were elements until here.
    void relate_sizes() {
        for (Flow& flow : flows) flow.size /= largest;
        combine = combine / largest;
    }
};

/// Messages of a round that is not repeated go at the pace of others only where these are between the same two classes:
/// what has come from one class may be over while what goes to it is held up by the class's own messages. Of rounds
/// that follow on each other, which wait for the slowest, all go at one.
std::map<std::pair<int, int>, Calls::Messages> Calls::messages_of(const Phase& phase,
                                                                  const std::vector<rehearse::Message>& of_round,
                                                                  const Groups& groups, int lead) const {
    std::map<std::pair<int, int>, Messages> by_classes;
    for (std::int64_t group = 0; group < groups.count; ++group) {
        if (steps_.kind_of(groups.rank(group, 0)) != lead) continue;
        for (const rehearse::Message& message : of_round) {
            const RankIndex from = groups.rank(group, message.from), to = groups.rank(group, message.to);
            const auto size = static_cast<double>(message.elements);
            const bool apart = phase.repeats == 1;
            Messages& messages =
                by_classes[apart ? std::pair{steps_.kind_of(from), steps_.kind_of(to)} : std::pair{lead, lead}];
            messages.flows.push_back({from, to, size});
            messages.largest = std::max(messages.largest, size);
            messages.combine = std::max(messages.combine, wiring_.combine(from, to) * (passes(message.combine) * size));
        }
    }
    for (auto& [classes, messages] : by_classes) messages.relate_sizes();
    return by_classes;
}

/// The rounds of a collective of this class's groups alone: other classes do theirs at other times, unless they are in
/// the same groups.
void Calls::add_phases(int c, const Communicate& communicate, OfClass& of) {
    const Groups groups = groups_along(steps_.schedule().mesh, communicate.axis, communicate.algorithm, wiring_);
    const std::optional<InSwitch> summing = in_switch(call_of(communicate), groups, wiring_);
    const Call call = call_of(communicate);
    const Collective rounds = rounds_of(summing ? summing->rounds(call) : call, groups);
    const bool fills = kernels_meet_ && of_library(call.algorithm);
    const std::int64_t first = groups.member_of(steps_.first_rank(c));
    of.with = classes_with(c, groups);
    Bytes sent;
    const int lead = steps_.kind_of(groups.rank(groups.group_of(steps_.first_rank(c)), 0));
    for (const int other : of.with) {
        if (other != c) tell(c, other);
    }
    for (const Phase& phase : phases_of(rounds, groups)) {
        std::vector<rehearse::Message> of_round = rounds.messages(phase.first_round);
        if (of_round.empty()) continue;
        const auto times = static_cast<double>(phase.repeats);
        const bool between = wiring_.across(groups.rank(0, of_round.front().from), groups.rank(0, of_round.front().to));
        const bool summed = summing && summing->covers(between);
        const Bytes element = size_of(communicate.type) * (summed ? summing->bytes : 1);
        for (const rehearse::Message& message : of_round) {
            if (message.from == first) sent += element * (times * static_cast<double>(message.elements));
        }
        if (equal_sizes(of_round, rounds.group())) level(of_round);
        bool beside = false;
        for (const auto& [classes, messages] : messages_of(phase, of_round, groups, lead)) {
            const int aggregate = add_aggregate(messages.flows, fills ? of.with : std::vector<int>{});
            const Bytes bytes = element * messages.largest;
            const Seconds after =
                summed ? summing->stretched(wiring_) : aggregates_.latency(aggregate, bytes) + messages.combine * bytes;
            of.phases.push_back({aggregate, times * bytes.value * aggregates_.size(aggregate), times * after, beside});
            of.messages += phase.repeats * static_cast<std::int64_t>(messages.flows.size());
            beside = true;
        }
    }
    of.sent = sent;
}

/// Collectives of a library use their rings' links, for as long as the library's takes alone. Once all aggregates are
/// there.
void Calls::stretch_library_calls() {
    for (OneCall& one : calls_) {
        if (!of_library(one.call.algorithm)) continue;
        for (std::size_t c = 0; c < one.of_class.size(); ++c) {
            OfClass& of = one.of_class[c];
            double counted = 0, longest = 0;  // of phases that begin together
            for (const FlowPhase& phase : of.phases) {
                const double alone = phase.bytes / aggregates_.rate_alone(phase.aggregate) + phase.afterwards.value;
                if (!phase.beside) counted += std::exchange(longest, 0.0);
                longest = std::max(longest, alone);
            }
            counted += longest;
            if (!(counted > 0)) continue;
            const Mesh& mesh = steps_.schedule().mesh;
            const LibraryPrice price = library_.price(one.call, mesh, steps_.first_rank(static_cast<int>(c)));
            const double longer = price.time.value / counted;
            for (FlowPhase& phase : of.phases) {
                phase.bytes *= longer;
                phase.afterwards = phase.afterwards * longer;
                // Then its kernel has the device to the end.
                if (kernels_meet_)
                    phase.bytes += std::exchange(phase.afterwards, {}).value * aggregates_.rate_alone(phase.aggregate);
            }
            of.sent = library_sent(one.call, mesh);
        }
    }
}

const std::vector<std::pair<Collectives::Span, int>>& Calls::spans(OneCall& call) {
    if (call.spans) return *call.spans;
    call.spans.emplace();
    std::vector<Flow> flows;
    for (const Collectives::Span& span : collectives_.spans(call.call)) {
        flows.clear();
        const std::vector<double>& sizes = span.pattern->sizes;
        for (std::size_t i = 0; i < span.pattern->messages.size(); ++i) {
            const PatternMessage& m = span.pattern->messages[i];
            flows.push_back({m.from, m.to, sizes.empty() ? 1 : sizes[i]});
        }
        call.spans->emplace_back(span, traffic_->aggregate(flows));
    }
    return *call.spans;
}

}  // namespace rehearse::sim
