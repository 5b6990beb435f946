// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "core/collectives/between_nodes.hpp"
#include "core/error.hpp"
#include "core/index.hpp"
#include "sim/collective/exchanges.hpp"
#include "sim/modes/mail.hpp"
#include "sim/modes/program_chains.hpp"
#include "sim/modes/program_meetings.hpp"
#include "sim/network/zone.hpp"
#include "sim/rank_programs.hpp"

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

namespace {

using Kind = ProgramNode::Kind;

Event event_of(const ProgramNode& node, RankIndex rank) {
    Event event;
    event.rank = rank;
    event.step = node.name;
    const std::size_t colon = node.name.rfind(':');
    event.layer = node.name.substr(0, colon);
    if (colon != std::string::npos) event.pass = node.name.substr(colon + 1);
    event.flops = node.flops;
    switch (node.kind) {
        case Kind::compute:
            event.bytes = node.bytes;
            break;
        case Kind::load:
            event.stream = Stream::io;
            event.pass = computes_on_host(node) ? "host" : "load";
            event.bytes = node.bytes;
            break;
        case Kind::collective:
            event.stream = Stream::communication;
            event.pass = pass_of(node.collective);
            break;
        case Kind::send:
            event.stream = node.tag == 1 ? Stream::send_gradients : Stream::send_activations;
            event.pass = "send";
            break;
        case Kind::receive:
            event.stream = node.tag == 1 ? Stream::receive_gradients : Stream::receive_activations;
            event.pass = "recv";
            break;
    }
    return event;
}

// As a plan chooses it (schedule/mesh.cpp, schedule/layer_steps.cpp).
Algorithm usual_algorithm(const Call& call, const std::vector<RankIndex>& members, const Wiring& wiring) {
    const CollectiveKind kind = call.kind;
    if (kind == CollectiveKind::all_to_all) return Algorithm{.name = "pairwise"};
    if (kind == CollectiveKind::broadcast) return Algorithm{.name = "chain"};
    const bool all_reduce = kind == CollectiveKind::all_reduce;
    const Groups groups = groups_among(members, Algorithm{}, wiring);
    const std::int64_t mates = groups.shape.per_node;
    if (mates == groups.shape.size) {
        const bool sums = mates > 2 && !wiring.switch_sums(members.front()).rate.source.empty();
        return Algorithm{.name = all_reduce && sums ? "direct" : "ring"};
    }
    const bool alone = mates < 2 && members.size() < at(device_count(wiring.machine()));
    if (!fills_nodes(groups, wiring) || alone) return Algorithm{};
    if (!all_reduce || groups.shape.size % mates != 0) return Algorithm{.name = mates > 1 ? "rings" : "ring"};
    const Bytes whole = size_of(call.type) * static_cast<double>(call.elements);
    return Algorithm{.name = "hierarchical",
                     .inside = "ring",
                     .across = usual_between_nodes(wiring.machine(), groups.shape.size / mates, mates, whole)};
}

Call call_of(const ProgramNode& node, std::int64_t members) {
    Call call;
    call.kind = node.collective;
    call.root = node.root;
    const double parts = node.collective == CollectiveKind::all_gather ? static_cast<double>(members) : 1;
    const double bytes = node.bytes.value * parts;
    const auto whole = static_cast<std::int64_t>(bytes);
    const bool words = whole % 4 == 0 && whole >= 4 * members;
    call.type = words ? DataType::f32 : DataType::fp8;  // the type counts for its size alone
    // Ranks wait for each other also where there is nothing to move (a barrier) or less than a byte for each of them.
    call.elements = words ? whole / 4 : std::max(whole, members);
    return call;
}

class ProgramRun {
public:
    ProgramRun(const RankPrograms& programs, const Wiring& wiring, const ProgramOptions& options)
        : programs_(programs),
          wiring_(wiring),
          options_(options),
          meetings_(meetings_of(programs)),
          simulation_(wiring, std::ssize(programs.ranks)),
          traffic_(wiring),
          mail_(simulation_, options.links ? &traffic_ : nullptr) {
        std::int64_t count = 0;
        for (RankIndex rank{0}; rank < std::ssize(programs.ranks); ++rank) {
            ranks_.push_back(std::make_unique<RankState>());
            ranks_.back()->chains = chains_of(programs.ranks[at(rank)], meetings_, rank);
            count += std::ssize(ranks_.back()->chains.chains);
        }
        if (count > most_chains) {
            throw InputError(
                fmt::format("{} sequences of nodes go on at the same time, at most {} are simulated: "
                            "nodes that follow on each other say so by their dependencies",
                            count, most_chains));
        }
        for (const Rendezvous& meeting : meetings_.all) add_collective(meeting);
    }

    Prediction run() {
        for (RankIndex rank{0}; rank < std::ssize(ranks_); ++rank) start(rank);
        simulation_.run();
        std::ranges::stable_sort(timeline_.events, [](const Event& a, const Event& b) {
            return std::tuple{a.rank, a.start} < std::tuple{b.rank, b.start};
        });
        timeline_.ranks = std::ssize(ranks_);
        if (options_.links) traffic_.report(timeline_);
        return {.timeline = std::move(timeline_), .mode = Mode::exact, .flows = mail_.count()};
    }

private:
    struct RankState {
        RankChains chains;
        std::vector<s4u::SemaphorePtr> ended;  // by node; only where another chain waits
        std::array<s4u::MutexPtr, 2> turns;    // of the device and of its host
    };
    using CallKey = std::tuple<std::int64_t, CollectiveKind, std::int64_t, double>;  // group, kind, root, bytes

    const ProgramNode& node_at(const NodePlace& place) const { return programs_.ranks[at(place.rank)][at(place.node)]; }
    static CallKey key_of(const ProgramNode& node) {
        return {node.group, node.collective, node.root, node.bytes.value};
    }

    // What an algorithm cannot do is said before actors start.
    void add_collective(const Rendezvous& meeting) {
        const ProgramNode& node = node_at(meeting.places.front());
        if (node.kind != Kind::collective || exchanges_.contains(key_of(node))) return;
        const std::vector<RankIndex>& members = programs_.groups[at(node.group)];
        const auto size = std::ssize(members);
        Call call = call_of(node, size);
        call.algorithm = call.kind == CollectiveKind::all_reduce && options_.all_reduce
                             ? *options_.all_reduce
                             : usual_algorithm(call, members, wiring_);
        exchanges_.emplace(key_of(node),
                           Exchanges{groups_among(members, call.algorithm, wiring_), call, wiring_, size});
    }

    void start(RankIndex rank) {
        RankState& state = *ranks_[at(rank)];
        for (const int waiters : state.chains.waiters)
            state.ended.push_back(waiters > 0 ? s4u::Semaphore::create(0) : nullptr);
        for (std::size_t unit = 0; unit < state.turns.size(); ++unit)
            if (state.chains.taken_in_turn.at(unit)) state.turns.at(unit) = s4u::Mutex::create();
        for (const std::vector<int>& chain : state.chains.chains) {
            simulation_.start(rank, [this, rank, &state, &chain] {
                Seconds when;
                for (const int node : chain) when = take(state, rank, node, when);
                simulation_.sleep_until(when);
            });
        }
    }

    // `when` is the actor's own clock, which runs ahead of SimGrid's while nobody else can see the difference.
    Seconds take(const RankState& state, RankIndex rank, int index, Seconds when) {
        const ProgramNode& node = programs_.ranks[at(rank)][at(index)];
        for (const int before : state.chains.waits[at(index)]) {
            state.ended[at(before)]->acquire();
            when = std::max(when, simulation_.now());
        }
        Event event = event_of(node, rank);
        const int meeting = meetings_.of_node[at(rank)][at(index)];
        const Mail::Moved taken = meeting == Meetings::none ? work(state, node, when)
                                                            : meet(node, rank, meetings_.all[at(meeting)], when, event);
        event.start = taken.start;
        event.end = when = taken.end;
        event.flow = meeting + 1;
        if (event.end > event.start || meeting != Meetings::none) timeline_.events.push_back(std::move(event));
        const int waiters = state.chains.waiters[at(index)];
        if (waiters == 0) return when;
        simulation_.sleep_until(when);
        for (int waiter = 0; waiter < waiters; ++waiter) state.ended[at(index)]->release();
        return when;
    }

    Mail::Moved work(const RankState& state, const ProgramNode& node, Seconds when) {
        const s4u::MutexPtr& turn = state.turns.at(node.kind == Kind::load ? 1 : 0);
        if (turn == nullptr) return {when, when + node.time};
        simulation_.sleep_until(when);
        turn->lock();
        const Seconds start = std::max(when, simulation_.now()), end = start + node.time;
        simulation_.sleep_until(end);
        turn->unlock();
        return {start, end};
    }

    Mail::Moved meet(const ProgramNode& node, RankIndex rank, const Rendezvous& meeting, Seconds when, Event& event) {
        if (node.kind != Kind::collective) {
            const bool sends = node.kind == Kind::send;
            if (sends) event.bytes = node.bytes;
            const std::array one{point_to_point(wiring_, rank, node.peer, node.bytes, sends)};
            return mail_.exchange(rank, one, meeting.channel, when);
        }
        Exchanges& exchanges = exchanges_.at(key_of(node));
        const Seconds start = when;
        for (std::int64_t round = 0; round < exchanges.rounds(); ++round) {
            const std::vector<Exchange> messages = exchanges.of(round, rank);
            for (const Exchange& message : messages) event.bytes += message.sends ? message.bytes : Bytes{0};
            when = mail_.exchange(rank, messages, meeting.channel, when).end;
        }
        return {start, when};
    }

    const RankPrograms& programs_;
    const Wiring& wiring_;
    const ProgramOptions& options_;
    Meetings meetings_;
    Simulation simulation_;
    Traffic traffic_;
    Mail mail_;
    std::vector<std::unique_ptr<RankState>> ranks_;
    std::map<CallKey, Exchanges> exchanges_;
    Timeline timeline_;
};

}  // namespace

Prediction simulate_programs(const RankPrograms& programs, const Machine& machine, const ProgramOptions& options) {
    check_devices(programs, machine);
    const Wiring wiring{machine, options.messages};
    return ProgramRun{programs, wiring, options}.run();
}

}  // namespace rehearse::sim
