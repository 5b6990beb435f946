// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/asynchronous.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "core/error.hpp"
#include "core/index.hpp"
#include "sim/check/bounds.hpp"
#include "sim/collective/collectives.hpp"
#include "sim/modes/program.hpp"
#include "sim/network/zone.hpp"

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

namespace {

/// Ranks that are in step, those of them that trade, and how far each stream's steps are.
struct Group {
    std::vector<std::int64_t> ranks, traders;
    std::vector<double> pace;              // by iteration
    std::vector<s4u::SemaphorePtr> ended;  // by step; only where another stream waits
    s4u::BarrierPtr iteration;
    std::map<int, std::int64_t> version;  // by bucket: of the weights that it has
};

struct Request {
    const Trade* trade = nullptr;
    Group* group = nullptr;
    int iteration = 0;
    bool counts = true;  // of several pieces of one bucket the first
    s4u::SemaphorePtr done;
};

struct Server {
    std::int64_t device = 0;
    std::deque<Request> queue{};
    s4u::SemaphorePtr waiting = s4u::Semaphore::create(0);
    std::int64_t requests = 0;  // that will come in all
    std::vector<s4u::CommPtr> copying{};
};

class Run {
public:
    Run(const Steps& steps, const Wiring& wiring, const Options& options)
        : steps_(steps),
          schedule_(steps.schedule()),
          wiring_(wiring),
          iterations_(options.iterations == 1 ? settling_steps : options.iterations),
          program_(program_of(schedule_.classes.front())),
          collectives_(schedule_.mesh, wiring, 0),
          simulation_(wiring, last_device() + 1, shared_wires()) {
        require(schedule_.classes.size() == 1, "ranks that trade have one program");
        make_groups(options);
        for (std::int64_t s = 0; s < schedule_.servers.count; ++s) {
            servers_.push_back({.device = device_of_server(schedule_, s)});
        }
        for (const Step& step : schedule_.classes.front().steps) {
            const auto* trade = std::get_if<Trade>(&step.action);
            if (trade == nullptr) continue;
            std::int64_t traders = 0;
            for (const Group& group : groups_) traders += traders_of(group, *trade);
            servers_[at(trade->server)].requests += traders * iterations_;
        }
        price_collectives();
    }

    Prediction run() {
        for (Group& group : groups_) start(group);
        for (std::size_t s = 0; s < servers_.size(); ++s) {
            simulation_.start(servers_[s].device, [this, s] { serve(static_cast<std::int64_t>(s)); });
        }
        simulation_.run();
        std::ranges::stable_sort(timeline_.events, [](const Event& a, const Event& b) {
            return std::tuple{a.iteration, a.rank, a.start} < std::tuple{b.iteration, b.rank, b.start};
        });
        timeline_.ranks = all_ranks(schedule_);
        return {.timeline = std::move(timeline_), .mode = Mode::exact, .flows = flows_, .staleness = stale_};
    }

private:
    /// Ranks with the same coordinate on it are a group: `groups`, or, without groups, `data`; -1: all are one.
    int group_axis() const {
        const int named = axis_index(schedule_.mesh, "groups");
        return named >= 0 ? named : axis_index(schedule_.mesh, "data");
    }
    std::int64_t group_count() const {
        const int axis = group_axis();
        return axis < 0 ? 1 : size_of(schedule_.mesh, axis);
    }
    /// For each group, where it has several communicators: they are taken to share all links all the time.
    std::vector<std::int64_t> shared_wires() const {
        const bool several = std::ranges::count_if(program_.streams_used, is_communicator) > 1;
        return std::vector<std::int64_t>(several ? at(group_count()) : 0, 1);
    }

    std::int64_t last_device() const {
        std::int64_t last = steps_.ranks() - 1;
        for (std::int64_t s = 0; s < schedule_.servers.count; ++s) {
            last = std::max(last, device_of_server(schedule_, s));
        }
        return last;
    }

    std::int64_t traders_of(const Group& group, const Trade& trade) const {
        return std::ranges::count_if(group.ranks, [&](std::int64_t rank) { return trades(rank, trade); });
    }
    bool trades(std::int64_t rank, const Trade& trade) const {
        return trade.group < 0 || place_on(schedule_.mesh, trade.group, rank) == 0;
    }

    void make_groups(const Options& options) {
        const int axis = group_axis();
        groups_.resize(at(group_count()));
        for (std::int64_t rank = 0; rank < steps_.ranks(); ++rank) {
            groups_[at(axis < 0 ? 0 : place_on(schedule_.mesh, axis, rank))].ranks.push_back(rank);
        }
        for (int iteration = 0; iteration < iterations_; ++iteration) {
            std::vector<double> drawn(at(steps_.ranks()), 1);
            if (options.noise.sigma > 0) {
                drawn = paces(steps_.ranks(), wiring_.machine(), {}, options.noise, iteration);
            }
            for (Group& group : groups_) group.pace.push_back(slowest(group, drawn));
        }
    }

    double slowest(const Group& group, const std::vector<double>& drawn) const {
        double most = 0;
        for (const std::int64_t rank : group.ranks) most = std::max(most, drawn[at(rank)]);
        return most;
    }

    void price_collectives() {
        const std::vector<Step>& steps = schedule_.classes.front().steps;
        collective_time_.resize(steps.size());
        for (std::size_t i = 0; i < steps.size(); ++i) {
            const auto* communicate = std::get_if<Communicate>(&steps[i].action);
            if (communicate == nullptr) continue;
            Collectives::Progress progress;
            progress.ready.resize(at(steps_.ranks()));
            collectives_.run(call_of(*communicate), Seconds{0}, progress);
            collective_time_[i] = Seconds{std::ranges::max(progress.ready)} + steps_.extra(0, static_cast<int>(i));
        }
    }

    void start(Group& group) {
        for (const int waiters : program_.waiters) {
            group.ended.push_back(waiters > 0 ? s4u::Semaphore::create(0) : nullptr);
        }
        group.iteration = s4u::Barrier::create(static_cast<unsigned>(program_.streams_used.size()));
        for (const Stream stream : program_.streams_used) {
            simulation_.start(group.ranks.front(), [this, &group, stream] { work(group, stream); });
        }
    }

    void work(Group& group, Stream stream) {
        const std::vector<Step>& steps = schedule_.classes.front().steps;
        Seconds when;
        for (int iteration = 0; iteration < iterations_; ++iteration) {
            for (std::size_t i = 0; i < steps.size(); ++i) {
                if (steps[i].stream == stream) when = take(group, static_cast<int>(i), iteration, when);
            }
            simulation_.sleep_until(when);
            group.iteration->wait();
            when = std::max(when, simulation_.now());
        }
    }

    Seconds take(Group& group, int step, int iteration, Seconds when) {
        const auto i = at(step);
        for (const int before : program_.waits[i]) {
            group.ended[at(before)]->acquire();
            when = std::max(when, simulation_.now());
        }
        Event event = steps_.event(0, step);
        event.rank = group.ranks.front();
        event.iteration = iteration;
        event.start = when;
        const Action& action = schedule_.classes.front().steps[i].action;
        if (const auto* trade = std::get_if<Trade>(&action)) {
            when = exchange(group, *trade, iteration, when);
        } else if (const auto* communicate = std::get_if<Communicate>(&action)) {
            event.bytes = collectives_.sent(call_of(*communicate), group.ranks.front());
            when = after_collective(group, collective_time_[i], when);
        } else {
            when += std::max(duration(group, step) * group.pace[at(iteration)], least(group, action));
        }
        event.end = when;
        timeline_.events.push_back(std::move(event));
        if (program_.waiters[i] == 0) return when;
        simulation_.sleep_until(when);
        for (int waiter = 0; waiter < program_.waiters[i]; ++waiter) group.ended[i]->release();
        return when;
    }

    Seconds after_collective(const Group& group, Seconds alone, Seconds when) {
        if (shared_wires().empty()) return when + alone;
        simulation_.sleep_until(when);
        simulation_.compute(static_cast<int>(&group - groups_.data()), alone);
        return simulation_.now();
    }

    Seconds duration(const Group& group, int step) {
        const auto known = durations_.try_emplace({group.ranks.front(), step});
        if (!known.second) return known.first->second;
        Seconds most;
        const bool computes = schedule_.classes.front().steps[at(step)].stream == Stream::compute;
        for (const std::int64_t rank : group.ranks) {
            const double crowding = computes ? steps_.cores().crowding(rank) : 1;
            most = std::max(most, steps_.duration(step, rank) * crowding);
        }
        return known.first->second = most;
    }

    // Noise does not make a device faster than it can be.
    Seconds least(const Group& group, const Action& action) const {
        const auto* compute = std::get_if<Compute>(&action);
        return compute == nullptr ? Seconds{} : least_time(compute->problem, wiring_.device_class(group.ranks.front()));
    }

    /// A flow by itself on its way, and the latency after its last byte. Nothing within a device.
    Seconds latency(std::int64_t from, std::int64_t to, Bytes bytes) const {
        std::vector<Hop> hops;
        const Seconds route = wiring_.route(from, to, hops);
        PerByte slowest;
        for (const Hop& hop : hops) slowest = std::max(slowest, hop.cost);
        return route + wiring_.beyond(wiring_.across(from, to), bytes, slowest);
    }
    s4u::CommPtr send(std::int64_t from, std::int64_t to, Bytes bytes) {
        ++flows_;
        return s4u::Comm::sendto_async(simulation_.host(from), simulation_.host(to),
                                       static_cast<std::uint64_t>(bytes.value));
    }

    /// Of all ranks of the group that trade, until the last of them has its weights.
    Seconds exchange(Group& group, const Trade& trade, int iteration, Seconds when) {
        simulation_.sleep_until(when);
        Server& server = servers_[at(trade.server)];
        const Bytes each = size_of(trade.type);
        std::vector<s4u::CommPtr> comms;
        std::vector<std::int64_t> from;
        for (const std::int64_t rank : group.ranks) {
            if (!trades(rank, trade)) continue;
            from.push_back(rank);
            if (rank != server.device) {
                comms.push_back(send(rank, server.device, each * static_cast<double>(trade.sent)));
            }
        }
        const auto over = [&](Bytes bytes, bool back) {
            for (const s4u::CommPtr& comm : comms) comm->wait();
            Seconds last = simulation_.now();
            for (const std::int64_t rank : from) {
                if (rank == server.device) continue;
                const Seconds after = back ? latency(server.device, rank, bytes) : latency(rank, server.device, bytes);
                last = std::max(last, simulation_.now() + after);
            }
            simulation_.sleep_until(last);
            comms.clear();
        };
        over(each * static_cast<double>(trade.sent), false);
        const s4u::SemaphorePtr done = s4u::Semaphore::create(0);
        for (std::size_t i = 0; i < from.size(); ++i) {
            server.queue.push_back({&trade, &group, iteration, i == 0, done});
            server.waiting->release();
        }
        for (std::size_t i = 0; i < from.size(); ++i) done->acquire();
        for (const std::int64_t rank : from) {
            if (rank != server.device) {
                comms.push_back(send(server.device, rank, each * static_cast<double>(trade.received)));
            }
        }
        over(each * static_cast<double>(trade.received), true);
        return simulation_.now();
    }

    void serve(std::int64_t index) {
        Server& server = servers_[at(index)];
        const DeviceClass& device = wiring_.device_class(server.device);
        for (std::int64_t taken = 0; taken < server.requests; ++taken) {
            server.waiting->acquire();
            const Request request = server.queue.front();
            server.queue.pop_front();
            Event event;
            event.rank = steps_.ranks() + index;
            event.step = fmt::format("bucket{}:serve", request.trade->bucket);
            event.layer = fmt::format("bucket{}", request.trade->bucket);
            event.pass = "update";
            event.iteration = request.iteration;
            event.start = event.end = simulation_.now();
            for (const Problem& problem : request.trade->work) {
                event.end += std::max(price(problem, device).time, least_time(problem, device));
                event.flops += flops(problem.op, problem.pass, problem.batch);
                event.bytes += bytes_moved(problem.op, problem.pass, problem.type, problem.batch);
            }
            simulation_.sleep_until(event.end);
            timeline_.events.push_back(std::move(event));
            count(request);
            replicate(index, *request.trade);
            request.done->release();
        }
        for (const s4u::CommPtr& copy : server.copying) copy->wait();
    }

    void count(const Request& request) {
        if (!request.counts) return;
        std::int64_t& updates = updates_[request.trade->bucket];
        std::int64_t& has = request.group->version[request.trade->bucket];
        const auto stale = at(std::max<std::int64_t>(0, updates - has));
        if (stale_.size() <= stale) stale_.resize(stale + 1);
        ++stale_[stale];
        has = ++updates;
    }

    // The other servers that keep the bucket get its weights in the background.
    void replicate(std::int64_t index, const Trade& trade) {
        const std::int64_t count = schedule_.servers.count;
        for (int copy = 1; copy < schedule_.servers.copies; ++copy) {
            const std::int64_t other = servers_[at((index + copy) % count)].device;
            if (other == servers_[at(index)].device) continue;
            const Bytes bytes = size_of(trade.type) * static_cast<double>(trade.received);
            servers_[at(index)].copying.push_back(send(servers_[at(index)].device, other, bytes));
        }
    }

    const Steps& steps_;
    const Schedule& schedule_;
    const Wiring& wiring_;
    int iterations_;
    Program program_;
    Collectives collectives_;
    Simulation simulation_;
    std::vector<Group> groups_;
    std::vector<Server> servers_;
    std::vector<Seconds> collective_time_;                       // by step
    std::map<std::pair<std::int64_t, int>, Seconds> durations_;  // by first rank of a group and step
    std::map<int, std::int64_t> updates_;                        // by bucket
    std::vector<std::int64_t> stale_;
    std::int64_t flows_ = 0;
    Timeline timeline_;
};

}  // namespace

Prediction simulate_asynchronous(const Steps& steps, const Wiring& wiring, const Options& options) {
    return Run{steps, wiring, options}.run();
}

}  // namespace rehearse::sim
