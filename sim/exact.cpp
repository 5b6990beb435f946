// SPDX-License-Identifier: Apache-2.0
#include "sim/exact.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <unordered_map>

#include "core/error.hpp"
#include "sim/exchanges.hpp"
#include "sim/zone.hpp"

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

namespace {

constexpr std::array all_streams{Stream::compute, Stream::communication, Stream::io};

// Which steps wait for which on another stream: one's own stream is in order anyway.
struct Program {
    std::vector<std::vector<int>> waits;  // by step: steps of other streams
    std::vector<int> waiters;             // by step: how many steps of other streams wait for it
    std::vector<int> streams_used;
};

Program program_of(const RankClass& rank_class) {
    Program program;
    const std::vector<Step>& steps = rank_class.steps;
    program.waits.resize(steps.size());
    program.waiters.resize(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        for (const int before : steps[i].after) {
            const auto b = static_cast<std::size_t>(before);
            if (steps[b].stream == steps[i].stream) continue;
            program.waits[i].push_back(before);
            ++program.waiters[b];
        }
    }
    for (const Stream stream : all_streams) {
        if (std::ranges::count(steps, stream, &Step::stream) > 0) {
            program.streams_used.push_back(static_cast<int>(stream));
        }
    }
    return program;
}

struct RankState {
    std::int64_t rank = 0;
    int rank_class = 0;
    std::vector<s4u::SemaphorePtr> ended;  // by step; only where another stream waits
    s4u::BarrierPtr iteration;
};

class Run {
public:
    Run(const Steps& steps, const Wiring& wiring, int iterations)
        : steps_(steps),
          wiring_(wiring),
          iterations_(iterations),
          simulation_(wiring, steps.ranks()),
          exchanges_(steps.schedule(), wiring) {
        for (const RankClass& rank_class : steps.schedule().classes) programs_.push_back(program_of(rank_class));
    }

    Prediction run() {
        std::vector<RankState> ranks(static_cast<std::size_t>(steps_.ranks()));
        for (std::int64_t rank = 0; rank < steps_.ranks(); ++rank) start(ranks[static_cast<std::size_t>(rank)], rank);
        simulation_.run();
        std::ranges::stable_sort(timeline_.events, [](const Event& a, const Event& b) {
            return std::tuple{a.iteration, a.rank, a.start} < std::tuple{b.iteration, b.rank, b.start};
        });
        return {.timeline = std::move(timeline_), .mode = Mode::exact, .flows = flows_};
    }

private:
    // An actor's own clock runs ahead of SimGrid's while nobody else can see the difference.
    struct Clock {
        Seconds when;
    };

    void start(RankState& state, std::int64_t rank) {
        state.rank = rank;
        state.rank_class = steps_.class_of(rank);
        const Program& program = programs_[static_cast<std::size_t>(state.rank_class)];
        for (const int waiters : program.waiters) {
            state.ended.push_back(waiters > 0 ? s4u::Semaphore::create(0) : nullptr);
        }
        state.iteration = s4u::Barrier::create(static_cast<unsigned>(program.streams_used.size()));
        for (const int stream : program.streams_used) {
            s4u::Actor::create("rank", simulation_.host(rank),
                               [this, &state, stream] { work(state, static_cast<Stream>(stream)); });
        }
    }

    void work(const RankState& state, Stream stream) {
        const std::vector<Step>& steps = steps_.schedule().classes[static_cast<std::size_t>(state.rank_class)].steps;
        Clock clock;
        for (int iteration = 0; iteration < iterations_; ++iteration) {
            for (std::size_t i = 0; i < steps.size(); ++i) {
                if (steps[i].stream == stream) take(state, static_cast<int>(i), iteration, clock);
            }
            catch_up(clock);
            state.iteration->wait();
            clock.when = std::max(clock.when, simulation_.now());
        }
    }

    void take(const RankState& state, int step, int iteration, Clock& clock) {
        const auto i = static_cast<std::size_t>(step);
        const Program& program = programs_[static_cast<std::size_t>(state.rank_class)];
        for (const int before : program.waits[i]) {
            state.ended[static_cast<std::size_t>(before)]->acquire();
            clock.when = std::max(clock.when, simulation_.now());
        }
        Event event = steps_.event(state.rank_class, step);
        event.rank = state.rank;
        event.iteration = iteration;
        event.start = clock.when;
        const Action& action = steps_.schedule().classes[static_cast<std::size_t>(state.rank_class)].steps[i].action;
        if (std::holds_alternative<AllReduceBucket>(action)) {
            const std::int64_t rounds = exchanges_.rounds(state.rank_class, step);
            for (std::int64_t round = 0; round < rounds; ++round) {
                event.bytes +=
                    exchange(state.rank, exchanges_.of(state.rank_class, step, round, state.rank), "", clock);
            }
        } else if (const auto* send = std::get_if<Send>(&action)) {
            exchange(state.rank, {exchanges_.peer(state.rank, send->axis, send->offset, send->bytes, true)}, "p",
                     clock);
        } else if (const auto* recv = std::get_if<Recv>(&action)) {
            exchange(state.rank, {exchanges_.peer(state.rank, recv->axis, recv->offset, recv->bytes, false)}, "p",
                     clock);
        } else {
            clock.when += steps_.duration(step, state.rank);
        }
        event.end = clock.when;
        timeline_.events.push_back(std::move(event));
        if (program.waiters[i] == 0) return;
        catch_up(clock);
        for (int w = 0; w < program.waiters[i]; ++w) state.ended[i]->release();
    }

    // One rank's messages of one round; returns what it sent.
    Bytes exchange(std::int64_t rank, const std::vector<Exchange>& messages, std::string_view kind, Clock& clock) {
        if (messages.empty()) return Bytes{0};
        catch_up(clock);
        Bytes sent;
        std::vector<s4u::CommPtr> comms;
        std::vector<char*> received(messages.size());
        for (std::size_t i = 0; i < messages.size(); ++i) {
            const Exchange& m = messages[i];
            if (m.sends) {
                comms.push_back(
                    mailbox(kind, rank, m.peer)->put_async(&payload_, static_cast<std::uint64_t>(m.bytes.value)));
                sent += m.bytes;
                ++flows_;
            } else {
                comms.push_back(mailbox(kind, m.peer, rank)->get_async(&received[i]));
            }
        }
        for (std::size_t i = 0; i < messages.size(); ++i) {
            comms[i]->wait();
            const Seconds left = Seconds{comms[i]->get_finish_time()} - simulation_.origin();
            clock.when = std::max(clock.when, left + messages[i].afterwards);
        }
        return sent;
    }

    // Kept by pair: looking a mailbox up by name is the dearest part of a message.
    s4u::Mailbox* mailbox(std::string_view kind, std::int64_t from, std::int64_t to) {
        s4u::Mailbox*& found = mailboxes_[{kind.empty() ? 0 : 1, from, to}];
        if (found == nullptr) found = s4u::Mailbox::by_name(fmt::format("{}{}>{}", kind, from, to));
        return found;
    }

    void catch_up(const Clock& clock) const {
        if (clock.when > simulation_.now()) s4u::this_actor::sleep_until((clock.when + simulation_.origin()).value);
    }

    const Steps& steps_;
    const Wiring& wiring_;
    int iterations_;
    Simulation simulation_;
    Exchanges exchanges_;
    std::vector<Program> programs_;
    std::map<std::tuple<int, std::int64_t, std::int64_t>, s4u::Mailbox*> mailboxes_;
    Timeline timeline_;
    std::int64_t flows_ = 0;
    char payload_ = 0;  // SimGrid wants an address to send
};

}  // namespace

Prediction simulate_exact(const Steps& steps, const Wiring& wiring, int iterations) {
    return Run{steps, wiring, iterations}.run();
}

}  // namespace rehearse::sim
