// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/asynchronous.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "core/error.hpp"
#include "core/index.hpp"
#include "core/methods/servers.hpp"
#include "sim/check/bounds.hpp"
#include "sim/collective/collectives.hpp"
#include "sim/modes/program.hpp"
#include "sim/modes/servers.hpp"
#include "sim/network/traffic.hpp"
#include "sim/network/zone.hpp"

namespace rehearse::sim {

namespace s4u = simgrid::s4u;

namespace {

std::vector<Program> programs_of(const Schedule& schedule) {
    std::vector<Program> programs;
    for (const RankClass& rank_class : schedule.classes) programs.push_back(sim::program_of(rank_class));
    return programs;
}

/// Ranks with the same coordinate on `groups`, or, without groups, `data`, are in step (all, where there is neither),
/// those of each stage of a pipeline by themselves.
std::vector<WorkerGroup> groups_of(const Steps& steps) {
    const Mesh& mesh = steps.schedule().mesh;
    const int named = axis_index(mesh, "groups"), pipe = axis_index(mesh, "pipe");
    const int axis = named >= 0 ? named : axis_index(mesh, "data");
    std::map<std::pair<std::int64_t, int>, WorkerGroup> found;
    for (RankIndex rank{0}; rank < steps.ranks(); ++rank) {
        const int rank_class = steps.class_of(rank);
        WorkerGroup& group = found[{axis < 0 ? 0 : place_on(mesh, axis, rank), rank_class}];
        group.ranks.push_back(rank);
        group.rank_class = rank_class;
        group.stage = pipe < 0 ? 0 : place_on(mesh, pipe, rank);
    }
    std::vector<WorkerGroup> groups;
    for (auto& [place, group] : found) groups.push_back(std::move(group));
    return groups;
}

class Run {
public:
    Run(const Steps& steps, const Wiring& wiring, const Options& options, int iterations)
        : steps_(steps),
          schedule_(steps.schedule()),
          wiring_(wiring),
          iterations_(iterations),
          traffic_(options.links ? std::optional<Traffic>{wiring} : std::nullopt),
          programs_(programs_of(schedule_)),
          groups_(groups_of(steps)),
          collectives_(schedule_.mesh, wiring, 0),
          simulation_(wiring, last_device() + 1, pools()),
          cores_(steps.cores(), simulation_, shared_wires()),
          servers_(steps, wiring, simulation_, cores_, options.server_pace, timeline_,
                   traffic_ ? &*traffic_ : nullptr) {
        find_paces(options);
        for (const WorkerGroup& group : groups_) {
            for (const Step& step : steps_of(group)) {
                const auto* push_pull = std::get_if<PushPull>(&step.action);
                if (push_pull != nullptr) servers_.expect(group, *push_pull, iterations_);
            }
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
        if (traffic_) traffic_->report(timeline_);
        return {.timeline = std::move(timeline_),
                .mode = Mode::exact,
                .flows = servers_.flows(),
                .staleness = servers_.staleness()};
    }

private:
    /// For each group, where it has several communicators: they are taken to share all links all the time.
    std::size_t shared_wires() const {
        const bool several = std::ranges::any_of(programs_, [](const Program& program) {
            return std::ranges::count_if(program.streams_used, is_communicator) > 1;
        });
        return several ? groups_.size() : 0;
    }
    /// These, then the cores that ranks share.
    std::vector<std::int64_t> pools() const {
        std::vector<std::int64_t> all(shared_wires(), 1);
        const std::vector<std::int64_t> cores = core_counts(steps_.cores());
        all.insert(all.end(), cores.begin(), cores.end());
        return all;
    }
    const std::vector<Step>& steps_of(const WorkerGroup& group) const {
        return schedule_.classes[at(group.rank_class)].steps;
    }
    const Program& program_of(const WorkerGroup& group) const { return programs_[at(group.rank_class)]; }

    std::int64_t last_device() const {
        std::int64_t last = steps_.ranks() - 1;
        for (std::int64_t s = 0; s < schedule_.methods.get<rehearse::Servers>().count; ++s) {
            last = std::max(last, device_of_server(schedule_, s));
        }
        return last;
    }

    void find_paces(const Options& options) {
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
        for (std::size_t c = 0; c < schedule_.classes.size(); ++c) {
            const std::vector<Step>& steps = schedule_.classes[c].steps;
            std::vector<Seconds>& times = collective_time_.emplace_back(steps.size());
            for (std::size_t i = 0; i < steps.size(); ++i) {
                const auto* communicate = std::get_if<Communicate>(&steps[i].action);
                if (communicate == nullptr) continue;
                Collectives::Progress progress;
                progress.ready.resize(at(steps_.ranks()));
                collectives_.run(call_of(*communicate), Seconds{0}, progress);
                times[i] =
                    Seconds{std::ranges::max(progress.ready)} + steps_.extra(static_cast<int>(c), static_cast<int>(i));
            }
        }
    }

    void start(WorkerGroup& group) {
        const Program& program = program_of(group);
        for (const int waiters : program.waiters) {
            group.ended.push_back(waiters > 0 ? s4u::Semaphore::create(0) : nullptr);
        }
        group.iteration = s4u::Barrier::create(static_cast<unsigned>(program.streams_used.size()));
        for (const Stream stream : program.streams_used) {
            simulation_.start(group.ranks.front(), [this, &group, stream] { work(group, stream); });
        }
    }

    void work(WorkerGroup& group, Stream stream) {
        const std::vector<Step>& steps = steps_of(group);
        Seconds when;
        for (int iteration = 0; iteration < iterations_; ++iteration) {
            for (std::size_t i = 0; i < steps.size(); ++i) {
                if (steps[i].stream == stream) when = take(group, static_cast<int>(i), iteration, when);
            }
            simulation_.sleep_until(when);
            group.iteration->wait();
            when = std::max(when, simulation_.now());
            if (stream == Stream::compute) when = unpacked(group, when);
        }
    }

    Seconds unpacked(const WorkerGroup& group, Seconds when) const {
        const Seconds alone = servers_.unpacking(group);
        std::vector<CoreWork::Work> works;
        for (const RankIndex rank : group.ranks) works.push_back({rank, alone});
        return cores_.run(works, when);
    }

    Seconds take(WorkerGroup& group, int step, int iteration, Seconds when) {
        const auto i = at(step);
        const Program& program = program_of(group);
        for (const int before : program.waits[i]) {
            group.ended[at(before)]->acquire();
            when = std::max(when, simulation_.now());
        }
        Event event = steps_.event(group.rank_class, step);
        event.rank = group.ranks.front();
        event.iteration = iteration;
        event.start = when;
        const Action& action = steps_of(group)[i].action;
        if (const auto* push_pull = std::get_if<PushPull>(&action)) {
            when = servers_.exchange(group, *push_pull, iteration, when);
        } else if (const auto* communicate = std::get_if<Communicate>(&action)) {
            event.bytes = collectives_.sent(call_of(*communicate), group.ranks.front());
            when = after_collective(group, collective_time_[at(group.rank_class)][i], when);
        } else if (const auto* send = std::get_if<Send>(&action)) {
            when = sent(group, *send, steps_of(group)[i].stream, when);
        } else if (const auto* recv = std::get_if<Recv>(&action)) {
            channel(neighbour(schedule_.mesh, recv->axis, group.ranks.front(), recv->offset), group.ranks.front(),
                    steps_of(group)[i].stream == Stream::receive_gradients)
                .acquire();
            when = std::max(when, simulation_.now());
        } else {
            when = computed(group, step, group.pace[at(iteration)], when);
        }
        event.end = when;
        timeline_.events.push_back(std::move(event));
        if (program.waiters[i] == 0) return when;
        simulation_.sleep_until(when);
        for (int waiter = 0; waiter < program.waiters[i]; ++waiter) group.ended[i]->release();
        return when;
    }

    /// From each rank of a stage to its neighbour in another one, which takes it when it comes to it.
    Seconds sent(const WorkerGroup& group, const Send& send, Stream stream, Seconds when) {
        simulation_.sleep_until(when);
        std::vector<std::pair<std::int64_t, std::int64_t>> ways;
        for (const RankIndex rank : group.ranks)
            ways.emplace_back(rank, neighbour(schedule_.mesh, send.axis, rank, send.offset));
        const Seconds end = servers_.move(ways, send.bytes);
        const RankIndex from = group.ranks.front();
        channel(from, neighbour(schedule_.mesh, send.axis, from, send.offset), stream == Stream::send_gradients)
            .release();
        return end;
    }

    s4u::Semaphore& channel(RankIndex from, RankIndex to, bool gradients) {
        s4u::SemaphorePtr& arrived = channels_[{from, to, gradients}];
        if (arrived == nullptr) arrived = s4u::Semaphore::create(0);
        return *arrived;
    }

    Seconds after_collective(const WorkerGroup& group, Seconds alone, Seconds when) {
        if (shared_wires() == 0) return when + alone;
        simulation_.sleep_until(when);
        simulation_.compute(static_cast<int>(&group - groups_.data()), alone);
        return simulation_.now();
    }

    /// On all of them, until the slowest is through; what is read takes no core.
    Seconds computed(const WorkerGroup& group, int step, double pace, Seconds when) {
        const Step& of = steps_of(group)[at(step)];
        if (of.stream != Stream::compute || steps_.cores().pools().empty())
            return when + std::max(duration(group, step) * pace, least(group, of.action));
        std::vector<CoreWork::Work> works;
        for (const RankIndex rank : group.ranks)
            works.push_back(
                {rank, std::max(steps_.duration(steps_.class_of(rank), step, rank) * pace, least(group, of.action))});
        return cores_.run(works, when);
    }

    Seconds duration(const WorkerGroup& group, int step) {
        const auto known = durations_.try_emplace({group.ranks.front(), step});
        if (!known.second) return known.first->second;
        Seconds most;
        for (const RankIndex rank : group.ranks)
            most = std::max(most, steps_.duration(steps_.class_of(rank), step, rank));
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
    std::optional<Traffic> traffic_;  // where it is asked for
    std::vector<Program> programs_;   // by class
    std::vector<WorkerGroup> groups_;
    Collectives collectives_;
    Simulation simulation_;
    CoreWork cores_;
    Timeline timeline_;
    Servers servers_;
    std::map<std::tuple<RankIndex, RankIndex, bool>, s4u::SemaphorePtr> channels_;  // what has come, and not been taken
    std::vector<std::vector<Seconds>> collective_time_;                             // by class and step
    std::map<std::pair<std::int64_t, int>, Seconds> durations_;                     // by first rank of a group and step
};

/// By how much the rate of the second half of the steps that count differs from that of the first (a share of it), of
/// all ranks together: 0 of a steady state.
double drift(const Timeline& timeline, std::int64_t ranks) {
    std::map<RankIndex, std::vector<double>> ends;  // by iteration
    for (const Event& event : timeline.events) {
        if (event.rank >= ranks) continue;
        std::vector<double>& own = ends[event.rank];
        if (own.size() <= at(event.iteration)) own.resize(at(event.iteration) + 1);
        own[at(event.iteration)] = std::max(own[at(event.iteration)], event.end.value);
    }
    double first = 0, second = 0;
    for (const auto& [rank, own] : ends) {
        const std::size_t all = own.size(), begin = all / 4, middle = (begin + all) / 2;
        const double half = own[middle - 1], start = begin == 0 ? 0 : own[begin - 1];
        first += static_cast<double>(middle - begin) / (half - start);
        second += static_cast<double>(all - middle) / (own.back() - half);
    }
    return first > 0 ? std::abs(second / first - 1) : 0;
}

}  // namespace

Prediction simulate_asynchronous(const Steps& steps, const Wiring& wiring, const Options& options) {
    for (int iterations = std::max(settling_steps, options.iterations);; iterations *= 2) {
        Prediction prediction = Run{steps, wiring, options, iterations}.run();
        prediction.drift = drift(prediction.timeline, steps.ranks());
        const bool enough =
            2 * iterations > most_settling_steps || 2 * prediction.timeline.events.size() > most_settling_events;
        if (prediction.drift < settled_drift || enough) return prediction;
    }
}

Seconds least_trading(const Steps& steps, const Wiring& wiring) {
    const Schedule& schedule = steps.schedule();
    std::map<std::int64_t, Bytes> into;  // by node
    for (RankIndex rank{0}; rank < steps.ranks(); ++rank) {
        for (const Step& step : schedule.classes[at(steps.class_of(rank))].steps) {
            const auto* trade = std::get_if<PushPull>(&step.action);
            if (trade == nullptr || (trade->group >= 0 && place_on(schedule.mesh, trade->group, rank) != 0)) continue;
            const std::int64_t server = device_of_server(schedule, trade->server);
            if (wiring.across(rank, server))
                into[wiring.node_of(server)] += size_of(trade->type) * static_cast<double>(trade->sent);
        }
    }
    Seconds least;
    for (const auto& [node, bytes] : into) least = std::max(least, bytes / wiring.node_ingress(node));
    return least;
}

}  // namespace rehearse::sim
