// SPDX-License-Identifier: Apache-2.0
#include "cluster/simulate.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "cluster/scheduler.hpp"

namespace rehearse::cluster {

namespace {

/// Jobs train at the speeds that they are said to have, and stop at once.
class SimulatedWorld : public World {
public:
    explicit SimulatedWorld(const Options& options) : options_(options) {}

    Seconds now() const override { return Seconds{now_}; }

    void start(const Assignment& assignment) override {
        const Seconds idle = assignment.again ? options_.restart : options_.start;
        at_work_.push_back({assignment.job, now_, now_ + idle.value, assignment.samples, assignment.share});
    }

    void stop(int job) override {
        const auto found = std::ranges::find(at_work_, job, &AtWork::job);
        stopped_.push_back(left(*found, false));
        at_work_.erase(found);
    }

    std::vector<Stopped> wait(Seconds until) override {
        if (stopped_.empty()) {
            double next = until.value;
            for (const AtWork& work : at_work_) next = std::min(next, end_of(work));
            now_ = std::max(now_, next);
            std::erase_if(at_work_, [&](const AtWork& work) {
                if (end_of(work) > now_) return false;
                stopped_.push_back(left(work, true));
                return true;
            });
        }
        return std::exchange(stopped_, {});
    }

private:
    struct AtWork {
        int job;
        double since, busy_from, samples;
        Share share;
    };

    static double end_of(const AtWork& work) { return work.busy_from + work.samples / work.share.samples_per_s; }

    Stopped left(const AtWork& work, bool complete) const {
        const double trained = std::max(0.0, now_ - work.busy_from) * work.share.samples_per_s;
        return {work.job, complete, std::min(work.samples, trained),
                Seconds{std::min(now_, work.busy_from) - work.since}};
    }

    const Options& options_;
    double now_ = 0;
    std::vector<AtWork> at_work_;
    std::vector<Stopped> stopped_;
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
    SimulatedWorld world{options};
    return run_policy(jobs, speeds, options, world);
}

}  // namespace rehearse::cluster
