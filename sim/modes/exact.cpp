// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/exact.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "core/collectives/library.hpp"
#include "sim/collective/exchanges.hpp"
#include "sim/collective/libraries/library_times.hpp"
#include "sim/modes/core_work.hpp"
#include "sim/modes/mail.hpp"
#include "sim/modes/program.hpp"
#include "sim/modes/shared_links.hpp"
#include "sim/network/zone.hpp"

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

namespace {

struct RankState {
    RankIndex rank{0};
    int rank_class = 0;
    std::vector<s4u::SemaphorePtr> ended;  // by step; only where another stream waits
    s4u::BarrierPtr iteration;
};

/// A collective, by the first rank of its group, or a message, by its ends.
struct FlowKey {
    enum class Kind : std::uint8_t { none, collective, activations, gradients } kind = Kind::none;
    int axis = 0;              // of a collective
    RankIndex from{0}, to{0};  // of a collective the first rank, twice
    std::int64_t number = 0;   // how many of the same kind, axis and ranks there were, with it
    auto operator<=>(const FlowKey&) const = default;
};

class Run {
public:
    Run(const Steps& steps, const Wiring& wiring, int iterations, bool links)
        : steps_(steps),
          wiring_(wiring),
          iterations_(iterations),
          simulation_(wiring, steps.ranks(), core_counts(steps.cores())),
          traffic_(links ? std::optional<Traffic>{wiring} : std::nullopt),
          mail_(simulation_, traffic_ ? &*traffic_ : nullptr) {
        const Schedule& schedule = steps.schedule();
        for (std::size_t c = 0; c < schedule.classes.size(); ++c) {
            programs_.push_back(program_of(schedule.classes[c]));
            for (std::size_t s = 0; s < schedule.classes[c].steps.size(); ++s) {
                const auto* bucket = std::get_if<Communicate>(&schedule.classes[c].steps[s].action);
                if (bucket == nullptr) continue;
                if (of_library(bucket->algorithm)) {
                    // What is wrong is said before actors start.
                    library_.price(call_of(*bucket), schedule.mesh, steps.first_rank(static_cast<int>(c)));
                    continue;
                }
                const auto visitors = static_cast<std::int64_t>(steps.ranks_of(static_cast<int>(c)).size());
                exchanges_.emplace(std::pair{static_cast<int>(c), static_cast<int>(s)},
                                   Exchanges{schedule.mesh, call_of(*bucket), wiring, visitors});
            }
        }
    }

    Prediction run() {
        std::vector<RankState> ranks(static_cast<std::size_t>(steps_.ranks()));
        for (RankIndex rank{0}; rank < steps_.ranks(); ++rank) start(ranks[static_cast<std::size_t>(rank)], rank);
        simulation_.run();
        std::ranges::stable_sort(timeline_.events, [](const Event& a, const Event& b) {
            return std::tuple{a.iteration, a.rank, a.start} < std::tuple{b.iteration, b.rank, b.start};
        });
        if (traffic_) traffic_->report(timeline_);
        return {.timeline = std::move(timeline_), .mode = Mode::exact, .flows = mail_.count()};
    }

private:
    void start(RankState& state, RankIndex rank) {
        state.rank = rank;
        state.rank_class = steps_.class_of(rank);
        const Program& program = programs_[static_cast<std::size_t>(state.rank_class)];
        for (const int waiters : program.waiters) {
            state.ended.push_back(waiters > 0 ? s4u::Semaphore::create(0) : nullptr);
        }
        state.iteration = s4u::Barrier::create(static_cast<unsigned>(program.streams_used.size()));
        for (const Stream stream : program.streams_used) {
            simulation_.start(rank, [this, &state, stream] { work(state, stream); });
        }
    }

    // `when` is the actor's own clock: it runs ahead of SimGrid's while nobody else can see the difference.
    void work(const RankState& state, Stream stream) {
        const std::vector<Step>& steps = steps_.schedule().classes[static_cast<std::size_t>(state.rank_class)].steps;
        Seconds when;
        for (int iteration = 0; iteration < iterations_; ++iteration) {
            for (std::size_t i = 0; i < steps.size(); ++i) {
                if (steps[i].stream == stream) when = take(state, static_cast<int>(i), iteration, when);
            }
            simulation_.sleep_until(when);
            state.iteration->wait();
            when = std::max(when, simulation_.now());
        }
    }

    // Waits for what the step waits for, takes it, and tells those who wait for it.
    Seconds take(const RankState& state, int step, int iteration, Seconds when) {
        const auto i = static_cast<std::size_t>(step);
        const Program& program = programs_[static_cast<std::size_t>(state.rank_class)];
        for (const int before : program.waits[i]) {
            state.ended[static_cast<std::size_t>(before)]->acquire();
            when = std::max(when, simulation_.now());
        }
        Event event = steps_.event(state.rank_class, step);
        event.rank = state.rank;
        event.iteration = iteration;
        const Mail::Moved taken = act(state, step, when, event.bytes);
        event.start = taken.start;
        event.end = when = taken.end;
        if (traffic_) event.flow = flow_of(state, step);
        timeline_.events.push_back(std::move(event));
        if (program.waiters[i] == 0) return when;
        simulation_.sleep_until(when);
        for (int waiter = 0; waiter < program.waiters[i]; ++waiter) state.ended[i]->release();
        return when;
    }

    /// The n-th Send to a rank and its n-th Recv get the same number, and the n-th collective on all ranks of its
    /// group.
    std::int64_t flow_of(const RankState& state, int step) {
        const Schedule& schedule = steps_.schedule();
        const Step& of =
            schedule.classes[static_cast<std::size_t>(state.rank_class)].steps[static_cast<std::size_t>(step)];
        FlowKey key;
        const auto message = [&](const auto& m, bool sends) {
            const RankIndex peer = neighbour(schedule.mesh, m.axis, state.rank, m.offset);
            const bool gradients = of.stream == Stream::send_gradients || of.stream == Stream::receive_gradients;
            key.kind = gradients ? FlowKey::Kind::gradients : FlowKey::Kind::activations;
            key.from = sends ? state.rank : peer;
            key.to = sends ? peer : state.rank;
        };
        if (const auto* send = std::get_if<Send>(&of.action)) message(*send, true);
        if (const auto* recv = std::get_if<Recv>(&of.action)) message(*recv, false);
        if (const auto* communicate = std::get_if<Communicate>(&of.action)) {
            const RankIndex first = group_of(schedule.mesh, communicate->axis, state.rank).front();
            key = {FlowKey::Kind::collective, communicate->axis, first, first};
        }
        if (key.kind == FlowKey::Kind::none) return 0;
        key.number = ++taken_[{state.rank, key}];
        return numbers_.try_emplace(key, static_cast<std::int64_t>(numbers_.size()) + 1).first->second;
    }

    /// Until a message's other end comes to it, nothing goes on.
    Mail::Moved act(const RankState& state, int step, Seconds when, Bytes& sent) {
        const Schedule& schedule = steps_.schedule();
        const Step& of =
            schedule.classes[static_cast<std::size_t>(state.rank_class)].steps[static_cast<std::size_t>(step)];
        const bool gradients = of.stream == Stream::send_gradients || of.stream == Stream::receive_gradients;
        const auto one = [&](const auto& message) {
            const std::array messages{point_to_point(schedule.mesh, wiring_, state.rank, message)};
            const Stream channel = gradients ? Stream::send_gradients : Stream::send_activations;
            Mail::Moved moved = exchange(state, messages, channel, when);
            moved.end += steps_.extra(state.rank_class, step);
            return moved;
        };
        if (const auto* send = std::get_if<Send>(&of.action)) return one(*send);
        if (const auto* recv = std::get_if<Recv>(&of.action)) return one(*recv);
        if (!std::holds_alternative<Communicate>(of.action)) return compute(of, step, state.rank, when);
        if (const auto& bucket = std::get<Communicate>(of.action); of_library(bucket.algorithm))
            return library(state, step, bucket, when, sent);
        Exchanges& exchanges = exchanges_.at({state.rank_class, step});
        const Seconds start = when;
        for (std::int64_t round = 0; round < exchanges.rounds(); ++round) {
            const std::vector<Exchange> messages = exchanges.of(round, state.rank);
            for (const Exchange& message : messages) sent += message.sends ? message.bytes : Bytes{0};
            when = exchange(state, messages, of.stream, when).end;
        }
        return {start, when + steps_.extra(state.rank_class, step)};
    }

    /// Notes what the messages take of the device's links, where a library's kernel may be at work there.
    Mail::Moved exchange(const RankState& state, std::span<const Exchange> messages, Stream channel, Seconds when) {
        if (!shared_links_.matter(state.rank_class)) return mail_.exchange(state.rank, messages, channel, when);
        simulation_.sleep_until(when);
        const SharedLinks::Takes takes = shared_links_.begin(state.rank, messages);
        const Mail::Moved moved = mail_.exchange(state.rank, messages, channel, when);
        shared_links_.end(state.rank, takes);
        return moved;
    }

    /// One step of the time that the library takes, from when the last rank of the group has come to it, and this one's
    /// device has ended its kernel before, of another communicator: each would have all links of the device.
    Mail::Moved library(const RankState& state, int step, const Communicate& bucket, Seconds when, Bytes& sent) {
        const Mesh& mesh = steps_.schedule().mesh;
        const std::vector<RankIndex> group = group_of(mesh, bucket.axis, state.rank);
        const auto [known, fresh] = gathered_.try_emplace({bucket.axis, group.front()});
        if (fresh) known->second = s4u::Barrier::create(static_cast<unsigned>(group.size()));
        simulation_.sleep_until(when);
        known->second->wait();
        const Call call = call_of(bucket);
        sent += library_sent(call, mesh);
        const Seconds alone = library_.price(call, mesh, state.rank).time;
        const Seconds extra = steps_.extra(state.rank_class, step);
        if (shared_links_.matter(state.rank_class))
            return {when, shared_links_.end_of_library(state.rank, alone, crosses(group)) + extra};
        Seconds& free = free_.try_emplace(state.rank).first->second;
        free = std::max({free, when, simulation_.now()}) + alone;
        const Seconds end = free;
        return {when, end + extra};
    }

    bool crosses(const std::vector<RankIndex>& group) const {
        return std::ranges::any_of(group, [&](RankIndex rank) { return wiring_.across(group.front(), rank); });
    }

    Mail::Moved compute(const Step& of, int step, RankIndex rank, Seconds when) {
        const Seconds duration = steps_.duration(steps_.class_of(rank), step, rank);
        const int pool = of.stream == Stream::compute ? steps_.cores().pool_of(rank) : -1;
        if (pool < 0) return {when, when + duration};
        simulation_.sleep_until(when);
        simulation_.compute(pool, duration);
        return {when, simulation_.now()};
    }

    const Steps& steps_;
    const Wiring& wiring_;
    int iterations_;
    Simulation simulation_;
    std::optional<Traffic> traffic_;  // where it is asked for
    Mail mail_;
    std::map<FlowKey, std::int64_t> numbers_;
    std::map<std::pair<RankIndex, FlowKey>, std::int64_t> taken_;  // by rank and key without its number: the last one
    std::map<std::pair<int, int>, Exchanges> exchanges_;           // by class and step
    LibraryCalls library_{wiring_, [this](RankIndex rank) { return steps_.class_of(rank); }};
    std::map<std::pair<int, std::int64_t>, s4u::BarrierPtr> gathered_;  // by axis and first rank of a group
    std::map<RankIndex, Seconds> free_;  // when a rank's device has ended the library's kernel before
    SharedLinks shared_links_{steps_.schedule(), wiring_, simulation_};
    std::vector<Program> programs_;
    Timeline timeline_;
};

}  // namespace

Prediction simulate_exact(const Steps& steps, const Wiring& wiring, int iterations, bool links) {
    return Run{steps, wiring, iterations, links}.run();
}

}  // namespace rehearse::sim
