// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/asynchronous.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/servers.hpp"
#include "sim/check/bounds.hpp"
#include "sim/collective/collectives.hpp"
#include "sim/modes/program.hpp"
#include "sim/modes/servers.hpp"
#include "sim/network/zone.hpp"

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

namespace {

class Run {
public:
    Run(const Steps& steps, const Wiring& wiring, const Options& options)
        : steps_(steps),
          schedule_(steps.schedule()),
          wiring_(wiring),
          iterations_(options.iterations == 1 ? settling_steps : options.iterations),
          program_(program_of(schedule_.classes.front())),
          collectives_(schedule_.mesh, wiring, 0),
          simulation_(wiring, last_device() + 1, shared_wires()),
          servers_(steps, wiring, simulation_, timeline_) {
        require(schedule_.classes.size() == 1, "ranks that trade have one program");
        make_groups(options);
        for (const Step& step : schedule_.classes.front().steps) {
            const auto* push_pull = std::get_if<PushPull>(&step.action);
            if (push_pull == nullptr) continue;
            for (const WorkerGroup& group : groups_) servers_.expect(group, *push_pull, iterations_);
        }
        price_collectives();
    }

    Prediction run() {
        for (WorkerGroup& group : groups_) start(group);
        servers_.start();
        simulation_.run();
        std::ranges::stable_sort(timeline_.events, [](const Event& a, const Event& b) {
            return std::tuple{a.iteration, a.rank, a.start} < std::tuple{b.iteration, b.rank, b.start};
        });
        timeline_.ranks = all_ranks(schedule_);
        return {.timeline = std::move(timeline_),
                .mode = Mode::exact,
                .flows = servers_.flows(),
                .staleness = servers_.staleness()};
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
        for (std::int64_t s = 0; s < schedule_.methods.get<rehearse::Servers>().count; ++s) {
            last = std::max(last, device_of_server(schedule_, s));
        }
        return last;
    }

    void make_groups(const Options& options) {
        const int axis = group_axis();
        groups_.resize(at(group_count()));
        for (RankIndex rank{0}; rank < steps_.ranks(); ++rank) {
            groups_[at(axis < 0 ? 0 : place_on(schedule_.mesh, axis, rank))].ranks.push_back(rank);
        }
        for (int iteration = 0; iteration < iterations_; ++iteration) {
            std::vector<double> drawn(at(steps_.ranks()), 1);
            if (options.noise.sigma > 0) {
                drawn = paces(steps_.ranks(), wiring_.machine(), {}, options.noise, iteration);
            }
            for (WorkerGroup& group : groups_) group.pace.push_back(slowest(group, drawn));
        }
    }

    double slowest(const WorkerGroup& group, const std::vector<double>& drawn) const {
        double most = 0;
        for (const RankIndex rank : group.ranks) most = std::max(most, drawn[at(rank)]);
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

    void start(WorkerGroup& group) {
        for (const int waiters : program_.waiters) {
            group.ended.push_back(waiters > 0 ? s4u::Semaphore::create(0) : nullptr);
        }
        group.iteration = s4u::Barrier::create(static_cast<unsigned>(program_.streams_used.size()));
        for (const Stream stream : program_.streams_used) {
            simulation_.start(group.ranks.front(), [this, &group, stream] { work(group, stream); });
        }
    }

    void work(WorkerGroup& group, Stream stream) {
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

    Seconds take(WorkerGroup& group, int step, int iteration, Seconds when) {
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
        if (const auto* push_pull = std::get_if<PushPull>(&action)) {
            when = servers_.exchange(group, *push_pull, iteration, when);
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

    Seconds after_collective(const WorkerGroup& group, Seconds alone, Seconds when) {
        if (shared_wires().empty()) return when + alone;
        simulation_.sleep_until(when);
        simulation_.compute(static_cast<int>(&group - groups_.data()), alone);
        return simulation_.now();
    }

    Seconds duration(const WorkerGroup& group, int step) {
        const auto known = durations_.try_emplace({group.ranks.front(), step});
        if (!known.second) return known.first->second;
        Seconds most;
        const bool computes = schedule_.classes.front().steps[at(step)].stream == Stream::compute;
        for (const RankIndex rank : group.ranks) {
            const double crowding = computes ? steps_.cores().crowding(rank) : 1;
            most = std::max(most, steps_.duration(step, rank) * crowding);
        }
        return known.first->second = most;
    }

    // Noise does not make a device faster than it can be.
    Seconds least(const WorkerGroup& group, const Action& action) const {
        const auto* compute = std::get_if<Compute>(&action);
        return compute == nullptr ? Seconds{} : least_time(compute->problem, wiring_.device_class(group.ranks.front()));
    }

    const Steps& steps_;
    const Schedule& schedule_;
    const Wiring& wiring_;
    int iterations_;
    Program program_;
    Collectives collectives_;
    Simulation simulation_;
    Timeline timeline_;
    Servers servers_;
    std::vector<WorkerGroup> groups_;
    std::vector<Seconds> collective_time_;                       // by step
    std::map<std::pair<std::int64_t, int>, Seconds> durations_;  // by first rank of a group and step
};

}  // namespace

Prediction simulate_asynchronous(const Steps& steps, const Wiring& wiring, const Options& options) {
    return Run{steps, wiring, options}.run();
}

}  // namespace rehearse::sim
