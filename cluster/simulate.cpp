// SPDX-License-Identifier: Apache-2.0
#include "cluster/simulate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "cluster/allocate.hpp"
#include "cluster/devices.hpp"
#include "core/error.hpp"

namespace rehearse::cluster {

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

enum class State { absent, waiting, running, gone };

struct Live {
    State state = State::absent;
    std::vector<Share> shares;  // by devices, under the policy
    double one_device = 1;      // samples a second of one device at its best: the unit of the scaling factor
    Share share;
    double busy_from = 0;  // trains from then on, as of `since`
    double since = 0;      // its span began
    double left = 0;       // samples
    std::vector<std::int64_t> devices;
};

class Simulation {
public:
    Simulation(const std::vector<Job>& jobs, const SpeedTable& speeds, const Options& options)
        : jobs_(jobs), live_(jobs.size()), devices_(options.devices) {
        outcome_.options = options;
        outcome_.jobs.resize(jobs.size());
        for (std::size_t j = 0; j < jobs.size(); ++j) prepare(j, speeds.at(jobs[j].model));
    }

    Outcome run() {
        const double last = options().end ? options().end->value : never;
        for (double now = 0;; now = next(now)) {
            if (now > last || now == never) break;
            finish(now);
            arrive(now);
            if (decides_at(now)) decide(now);
        }
        const double end = std::isfinite(last) ? last : latest_;
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            if (live_[j].state == State::running) close(j, end);
        }
        outcome_.end = Seconds{end};
        return std::move(outcome_);
    }

private:
    const Options& options() const { return outcome_.options; }

    void prepare(std::size_t j, const Speeds& speeds) {
        const Job& job = jobs_[j];
        Live& live = live_[j];
        live.left = job.samples;
        const bool fixed = options().policy != Policy::elastic;
        const BatchRange batches = fixed ? BatchRange{job.batch, job.batch} : job.batches;
        const std::int64_t most = std::min(job.most_devices, options().devices);
        for (std::int64_t k = 0; k <= most; ++k) live.shares.push_back(speeds.best(k, batches));
        if (options().policy == Policy::fifo) {
            live.share = {job.devices, job.batch, speeds.samples_per_s(job.devices, job.batch)};
        }
        // Where one device cannot hold even the smallest batch: a share of what the fewest that can make of it.
        for (std::int64_t k = 1; k <= most; ++k) {
            const Share share = speeds.best(k, job.batches);
            if (share.samples_per_s <= 0) continue;
            live.one_device = share.samples_per_s / static_cast<double>(k);
            break;
        }
    }

    double end_of(const Live& live) const { return live.busy_from + live.left / live.share.samples_per_s; }

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

    double next(double now) const {
        double next = never;
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            if (live_[j].state == State::running) next = std::min(next, end_of(live_[j]));
            if (live_[j].state == State::absent) {
                if (const double ready = ready_at(j); ready > now) next = std::min(next, ready);
            }
        }
        if (changed_) next = std::min(next, tick_after(now));
        return next;
    }

    double tick_after(double now) const {
        const double interval = options().interval.value;
        return interval > 0 ? interval * (std::floor(now / interval * (1 + 1e-12)) + 1) : never;
    }

    bool decides_at(double now) const {
        if (!changed_) return false;
        const double interval = options().interval.value;
        if (options().policy == Policy::fifo || interval <= 0) return true;
        const double ticks = now / interval;
        return std::abs(ticks - std::round(ticks)) <= 1e-9 * std::max(1.0, ticks);
    }

    void finish(double now) {
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            if (live_[j].state != State::running || end_of(live_[j]) > now) continue;
            close(j, now);
            live_[j].left = 0;
            live_[j].state = State::gone;
            devices_.resize(live_[j].devices, 0);
            outcome_.jobs[j].end = Seconds{now};
            outcome_.jobs[j].trained = jobs_[j].samples;
            latest_ = std::max(latest_, now);
            changed_ = true;
        }
    }

    // Several times, as one that is turned away turns away those after it.
    void arrive(double now) {
        for (bool again = true; again;) {
            again = false;
            for (std::size_t j = 0; j < jobs_.size(); ++j) {
                if (live_[j].state != State::absent || ready_at(j) > now) continue;
                JobResult& result = outcome_.jobs[j];
                result.ready = Seconds{now};
                live_[j].state = State::waiting;
                changed_ = again = true;
                for (const int before : jobs_[j].after) {
                    if (outcome_.jobs[static_cast<std::size_t>(before)].turned_away) turn_away(j);
                }
            }
        }
    }

    void turn_away(std::size_t j) {
        live_[j].state = State::gone;
        outcome_.jobs[j].turned_away = true;
    }

    // Waiting and running, the first to be ready first.
    std::vector<std::size_t> present() const {
        std::vector<std::size_t> present;
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            if (live_[j].state == State::waiting || live_[j].state == State::running) present.push_back(j);
        }
        std::ranges::stable_sort(present, {}, [&](std::size_t j) { return outcome_.jobs[j].ready.value; });
        return present;
    }

    void decide(double now) {
        ++outcome_.decisions;
        changed_ = false;
        options().policy == Policy::fifo ? decide_fifo(now) : decide_elastic(now);
        if (options().queue) return;
        for (std::size_t j = 0; j < jobs_.size(); ++j) {
            if (live_[j].state == State::waiting) turn_away(j);
        }
        arrive(now);
    }

    void decide_fifo(double now) {
        std::int64_t left = devices_.free();
        for (const std::size_t j : present()) {
            if (live_[j].state == State::running) continue;
            if (live_[j].share.devices > left) {
                if (options().queue) return;
                continue;
            }
            left -= live_[j].share.devices;
            set(j, live_[j].share, now);
        }
    }

    void decide_elastic(double now) {
        const std::vector<std::size_t> order = present();
        std::vector<Candidate> candidates;
        for (const std::size_t j : order) {
            const Live& live = live_[j];
            candidates.push_back({live.shares, live.one_device, live.state == State::running ? live.share : Share{}});
        }
        const std::vector<Share> shares = elastic_shares(candidates, options().devices);
        // First those that give devices back.
        for (const bool grows : {false, true}) {
            for (std::size_t i = 0; i < order.size(); ++i) {
                if (shares[i] == candidates[i].has) continue;
                if ((shares[i].devices > candidates[i].has.devices) == grows) set(order[i], shares[i], now);
            }
        }
    }

    // From now on job j has this share; 0 devices: it waits, with what it has learnt saved.
    void set(std::size_t j, Share share, double now) {
        Live& live = live_[j];
        JobResult& result = outcome_.jobs[j];
        const bool ran = result.start.has_value();
        if (live.state == State::running) close(j, now);
        devices_.resize(live.devices, share.devices);
        live.share = share;
        live.state = share.devices > 0 ? State::running : State::waiting;
        live.since = now;
        live.busy_from = now + (ran ? options().restart.value : 0);
        if (ran) ++result.restarts;
        if (!ran) result.start = Seconds{now};
    }

    // Ends a job's span: what it has trained until now.
    void close(std::size_t j, double now) {
        Live& live = live_[j];
        const double trained = std::min(live.left, std::max(0.0, now - live.busy_from) * live.share.samples_per_s);
        live.left -= trained;
        outcome_.jobs[j].trained += trained;
        if (now <= live.since) return;
        const double idle = std::min(now, live.busy_from) - live.since;
        outcome_.spans.push_back(
            {static_cast<int>(j), Seconds{live.since}, Seconds{now}, Seconds{idle}, live.share, live.devices});
    }

    const std::vector<Job>& jobs_;
    std::vector<Live> live_;
    Devices devices_;
    Outcome outcome_;
    double latest_ = 0;
    bool changed_ = false;  // since the last decision
};

}  // namespace

std::string_view to_string(Policy policy) {
    switch (policy) {
        case Policy::fifo:
            return "fifo";
        case Policy::fixed_batch:
            return "fixed-batch";
        case Policy::elastic:
            return "elastic";
    }
    return "?";
}

std::span<const Policy> policies() {
    static constexpr std::array all{Policy::fifo, Policy::fixed_batch, Policy::elastic};
    return all;
}

Outcome simulate(const std::vector<Job>& jobs, const SpeedTable& speeds, const Options& options) {
    if (options.devices < 1) throw InputError("a cluster has one device or more");
    check(jobs, speeds, options.devices);
    return Simulation(jobs, speeds, options).run();
}

}  // namespace rehearse::cluster
