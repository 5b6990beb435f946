// SPDX-License-Identifier: Apache-2.0
#include "cluster/scheduler.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "cluster/devices.hpp"
#include "cluster/policies.hpp"
#include "core/error.hpp"

namespace rehearse::cluster {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

enum class State { absent, waiting, running, stopping, gone };

struct Live {
    State state = State::absent;
    Prospects prospects;
    Share share;   // it runs with; while it stops: that it ran with
    Share target;  // that it has from the last decision
    double since = 0;
    double left = 0;  // samples
    std::vector<std::int64_t> devices;
};

class Scheduler {
public:
    Scheduler(const std::vector<Job>& jobs, const SpeedTable& speeds, const Options& options, World& world)
        : jobs_(jobs), world_(world), live_(jobs.size()), devices_(options.devices) {
        outcome_.options = options;
        outcome_.jobs.resize(jobs.size());
        for (std::size_t j = 0; j < jobs.size(); ++j) {
            live_[j].left = jobs[j].samples;
            live_[j].prospects = prospects(jobs[j], speeds.at(jobs[j].model), options);
        }
    }

    Outcome run() {
        const double last = options().end ? options().end->value : never;
        for (;;) {
            arrive();
            if (due_ && now() >= *due_) decide();
            const double event = next_event();
            if (event == never && !anyone_works()) break;
            const std::vector<Stopped> ended = world_.wait(Seconds{std::min(event, last)});
            take(ended);
            if (world_.is_over() || (event > last && now() >= last && ended.empty())) break;
        }
        stop_all();
        outcome_.end = Seconds{std::isfinite(last) && anyone_is_left() ? last : latest_};
        return std::move(outcome_);
    }

private:
    const Options& options() const { return outcome_.options; }
    double now() const { return world_.now().value; }
    JobResult& result_of(std::size_t j) { return outcome_.jobs[j]; }

    bool anyone_works() const {
        return std::ranges::any_of(
            live_, [](const Live& live) { return live.state == State::running || live.state == State::stopping; });
    }

    bool anyone_is_left() const {
        return std::ranges::any_of(live_, [](const Live& live) { return live.state != State::gone; });
    }

    double ready_at(std::size_t j) const {
        double ready = jobs_[j].arrival.value;
        for (const int before : jobs_[j].after) {
            const JobResult& result = outcome_.jobs[static_cast<std::size_t>(before)];
            if (result.turned_away) return 0;  // told in arrive()
            if (!result.end) return never;
            ready = std::max(ready, result.end->value);
        }
        return ready;
    }

    double next_event() const {
        double next = due_.value_or(never);
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            if (live_[j].state != State::absent) continue;
            if (const double ready = ready_at(j); ready > now()) next = std::min(next, ready);
        }
        return next;
    }

    /// Something has changed: decides at once, or at the next multiple of the interval.
    void change() {
        if (due_) return;
        const double interval = options().interval.value;
        due_ = now();
        if (options().policy == Policy::fifo || interval <= 0) return;
        const double ticks = *due_ / interval;
        if (std::abs(ticks - std::round(ticks)) <= 1e-9 * std::max(1.0, ticks)) return;
        due_ = interval * (std::floor(ticks * (1 + 1e-12)) + 1);
    }

    // Several times, as one that is turned away turns away those after it.
    void arrive() {
        for (bool again = true; again;) {
            again = false;
            for (std::size_t j = 0; j < jobs_.size(); ++j) {
                if (live_[j].state != State::absent || ready_at(j) > now()) continue;
                result_of(j).ready = Seconds{now()};
                live_[j].state = State::waiting;
                again = true;
                for (const int before : jobs_[j].after) {
                    if (result_of(static_cast<std::size_t>(before)).turned_away) turn_away(j);
                }
                if (live_[j].state == State::waiting) change();
            }
        }
    }

    void turn_away(std::size_t j) {
        live_[j].state = State::gone;
        result_of(j).turned_away = true;
    }

    // Who is there, the first to be ready first.
    std::vector<std::size_t> present() const {
        std::vector<std::size_t> present;
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            if (live_[j].state != State::absent && live_[j].state != State::gone) present.push_back(j);
        }
        std::ranges::stable_sort(present, {}, [&](std::size_t j) { return outcome_.jobs[j].ready.value; });
        return present;
    }

    void decide() {
        due_.reset();
        ++outcome_.decisions;
        const std::vector<std::size_t> order = present();
        std::vector<Standing> standing;
        for (const std::size_t j : order) standing.push_back({&live_[j].prospects, live_[j].target});
        const std::vector<Share> shares = cluster::decide(standing, options());
        for (std::size_t i = 0; i < order.size(); ++i) {
            Live& live = live_[order[i]];
            live.target = shares[i];
            if (live.state != State::running || live.share == live.target) continue;
            live.state = State::stopping;
            world_.stop(static_cast<int>(order[i]));
        }
        take(world_.wait(world_.now()));
        settle();
        if (options().queue) return;
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            if (live_[j].state == State::waiting && live_[j].target.devices == 0) turn_away(j);
        }
        arrive();
    }

    /// Those that have ended: what they have trained, and what they leave to others.
    void take(const std::vector<Stopped>& ended) {
        for (const Stopped& stopped : ended) {
            const auto j = static_cast<std::size_t>(stopped.job);
            close(j, stopped);
            if (stopped.complete) {
                finish(j);
            } else {
                live_[j].state = State::waiting;
                live_[j].share = {};
            }
        }
        if (!closing_ && (!due_ || *due_ > now())) settle();
    }

    void finish(std::size_t j) {
        Live& live = live_[j];
        live.left = 0;
        live.state = State::gone;
        devices_.resize(live.devices, 0);
        result_of(j).end = Seconds{now()};
        result_of(j).trained = jobs_[j].samples;
        latest_ = std::max(latest_, now());
        change();
    }

    // Whoever has other devices than it was given gets those, as far as they are free: first those that give some back.
    void settle() {
        for (const bool grows : {false, true}) {
            for (const std::size_t j : present()) {
                Live& live = live_[j];
                if (live.state != State::waiting || live.share == live.target) continue;
                const auto held = static_cast<std::int64_t>(live.devices.size());
                if ((live.target.devices > held) != grows || live.target.devices - held > devices_.free()) continue;
                begin(j);
            }
            for (const std::size_t j : present()) {  // who has nothing from now on
                Live& live = live_[j];
                if (live.state != State::waiting || live.target.devices > 0 || live.devices.empty()) continue;
                devices_.resize(live.devices, 0);
                ++result_of(j).restarts;
            }
        }
    }

    void begin(std::size_t j) {
        Live& live = live_[j];
        JobResult& result = result_of(j);
        const bool again = result.start.has_value();
        devices_.resize(live.devices, live.target.devices);
        live.share = live.target;
        live.state = State::running;
        live.since = now();
        if (again) ++result.restarts;
        if (!again) result.start = Seconds{now()};
        world_.start({static_cast<int>(j), live.share, live.devices, live.left, again});
    }

    // Ends a job's span: what it has trained until now.
    void close(std::size_t j, const Stopped& stopped) {
        Live& live = live_[j];
        live.left -= stopped.trained;
        result_of(j).trained += stopped.trained;
        if (now() <= live.since) return;
        outcome_.spans.push_back(
            {static_cast<int>(j), Seconds{live.since}, world_.now(), stopped.idle, live.share, live.devices});
    }

    void stop_all() {
        closing_ = true;
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            if (live_[j].state != State::running) continue;
            live_[j].state = State::stopping;
            live_[j].target = {};
            world_.stop(static_cast<int>(j));
        }
        while (anyone_works()) take(world_.wait(Seconds{never}));
    }

    const std::vector<Job>& jobs_;
    World& world_;
    std::vector<Live> live_;
    Devices devices_;
    Outcome outcome_;
    double latest_ = 0;
    std::optional<double> due_;  // when the next decision is made
    bool closing_ = false;       // nobody begins any more
};

}  // namespace

Outcome run_policy(const std::vector<Job>& jobs, const SpeedTable& speeds, const Options& options, World& world) {
    if (options.devices < 1) throw InputError("a cluster has one device or more");
    check(jobs, speeds, options.devices);
    return Scheduler(jobs, speeds, options, world).run();
}

}  // namespace rehearse::cluster
