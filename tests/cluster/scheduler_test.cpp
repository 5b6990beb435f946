// SPDX-License-Identifier: Apache-2.0
// The live scheduler in a world whose clock the test moves: jobs that stop late, and what holds whatever they do.
#include "cluster/scheduler.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "cluster/report.hpp"
#include "cluster/workloads.hpp"

namespace rehearse::cluster {
namespace {

using namespace rehearse::literals;
using testing::ElementsAre;

/// Jobs train whole steps, as programs do: one that is asked to stop ends its step, then saves for `saving`. It holds
/// that devices are given to one job at a time.
class SteppedWorld : public World {
public:
    SteppedWorld(double start, double restart, double saving) : start_(start), restart_(restart), saving_(saving) {}

    Seconds now() const override { return Seconds{now_}; }

    void start(const Assignment& given) override {
        EXPECT_EQ(static_cast<std::int64_t>(given.devices.size()), given.share.devices);
        for (const std::int64_t d : given.devices) {
            EXPECT_TRUE(owners_.emplace(d, given.job).second) << "device " << d << " is in use";
        }
        const double step = static_cast<double>(given.share.batch) / given.share.samples_per_s;
        const double begins = now_ + (given.again ? restart_ : start_);
        const double steps = std::ceil(given.samples / static_cast<double>(given.share.batch) - 1e-9);
        at_work_[given.job] = {given, begins, step, steps, begins + steps * step};
        begun.push_back(given);
    }

    void stop(int job) override {
        Work& work = at_work_.at(job);
        const double done = std::max(1.0, std::ceil((now_ - work.begins) / work.step - 1e-9));
        if (done >= work.steps) return;  // it ends by itself
        work.steps = done;
        work.ends = std::max(now_, work.begins + done * work.step) + saving_;
    }

    std::vector<Stopped> wait(Seconds until) override {
        double next = until.value;
        for (const auto& [job, work] : at_work_) next = std::min(next, work.ends);
        now_ = std::max(now_, next);
        std::vector<Stopped> ended;
        for (auto it = at_work_.begin(); it != at_work_.end();) {
            const auto& [job, work] = *it;
            if (work.ends > now_) {
                ++it;
                continue;
            }
            const double samples = work.steps * static_cast<double>(work.given.share.batch);
            ended.push_back({job, samples >= work.given.samples - 1e-9, std::min(samples, work.given.samples),
                             Seconds{work.begins - (work.ends - work.steps * work.step)}});
            std::erase_if(owners_, [j = job](const auto& owner) { return owner.second == j; });
            it = at_work_.erase(it);
        }
        return ended;
    }

    std::vector<Assignment> begun;

private:
    struct Work {
        Assignment given;
        double begins = 0, step = 0, steps = 0, ends = 0;
    };
    double start_, restart_, saving_, now_ = 0;
    std::map<int, Work> at_work_;
    std::map<std::int64_t, int> owners_;
};

/// A sample a second a device, whatever the batch.
SpeedTable linear(std::int64_t most_devices) {
    std::vector<SpeedPoint> points;
    for (std::int64_t k = 1; k <= most_devices; ++k) {
        for (const std::int64_t b : {1, 64}) points.push_back({k, b, Seconds{static_cast<double>(b)}});
    }
    return {{"net", Speeds(points)}};
}

Job job(const char* name, double arrival, double samples, std::int64_t most_devices) {
    return {.name = name,
            .model = "net",
            .arrival = Seconds{arrival},
            .samples = samples,
            .devices = 1,
            .batch = 4,
            .batches = {4, 4},
            .most_devices = most_devices};
}

std::vector<double> ends(const Outcome& outcome) {
    std::vector<double> ends;
    for (const JobResult& each : outcome.jobs) ends.push_back(each.end ? each.end->value : -1);
    return ends;
}

TEST(Scheduler, WaitsForDevicesUntilWhoHasThemIsSaved) {
    // Steps of 4 samples take 2 s on two devices, 4 s on one. a begins at 1 (start: 1 s) with both; b comes at 4, when
    // a is half through its second step: it ends that at 5, saves until 6, and restarts on one until 8 with 40 - 8 = 32
    // samples left: 8 steps of 4 s, until 40. b begins at 6, trains from 7 on; 16 samples take it until 23. Then a is
    // half through its 4th step (20 to 24), saves until 25, restarts until 27 with 32 - 16 = 16 left: 4 steps of 2 s.
    SteppedWorld world{1, 2, 1};
    const Outcome outcome = run_policy({job("a", 0, 40, 2), job("b", 4, 16, 1)}, linear(2),
                                       {.policy = Policy::elastic, .devices = 2}, world);
    EXPECT_THAT(ends(outcome), ElementsAre(35, 23));
    EXPECT_EQ(outcome.jobs[0].restarts, 2);
    EXPECT_EQ(outcome.jobs[1].start, 6_s);
    ASSERT_EQ(world.begun.size(), 4U);
    EXPECT_THAT(world.begun[1].devices, ElementsAre(0));
    EXPECT_EQ(world.begun[1].samples, 32);
    EXPECT_TRUE(world.begun[1].again);
    EXPECT_THAT(world.begun[3].devices, ElementsAre(0, 1));
    EXPECT_DOUBLE_EQ(outcome.jobs[0].trained, 40);
}

TEST(Scheduler, DecidesAtMultiplesOfTheIntervalWhileJobsStopBetween) {
    // b comes at 4 and is let in at 10. a, on two devices from 1 on, is half through its fifth step (9 to 11), saves
    // until 12: from there both have one. c comes at 11, between two decisions: it waits until 20, and a does not.
    SteppedWorld world{1, 2, 1};
    const Outcome outcome = run_policy({job("a", 0, 400, 2), job("b", 4, 40, 1), job("c", 11, 4, 1)}, linear(2),
                                       {.policy = Policy::elastic, .devices = 2, .interval = 10_s}, world);
    ASSERT_GE(outcome.spans.size(), 2U);
    EXPECT_EQ(outcome.spans[0].end, 12_s);
    EXPECT_EQ(outcome.jobs[1].start, 12_s);
    EXPECT_GE(outcome.jobs[2].start, 20_s);
}

// Steps of one sample on one device each take a second: whole steps end when a simulated job's samples do.
TEST(Scheduler, DoesLiveWhatWasSimulated) {
    const SpeedTable speeds = linear(8);
    std::mt19937 bits(11);
    for (int round = 0; round < 60; ++round) {
        std::vector<Job> jobs;
        for (int j = 0; j < 8; ++j) {
            Job& each = jobs.emplace_back(job("", static_cast<double>(bits() % 90), 20.0 + bits() % 50, 1));
            each.name = fmt::format("job{}", j);
            each.batch = each.batches.least = each.batches.most = 1;
            if (j > 0 && bits() % 4 == 0) each.after = {static_cast<int>(bits() % static_cast<unsigned>(j))};
        }
        Options options{.policy = policies()[bits() % 3], .devices = 3, .interval = Seconds{7.0 * (bits() % 2)}};
        options.queue = bits() % 3 > 0;
        if (bits() % 2 == 0) options.end = 80_s;
        SteppedWorld world{0, 0, 0};
        const Outcome live = run_policy(jobs, speeds, options, world), simulated = simulate(jobs, speeds, options);
        EXPECT_EQ(ends(live), ends(simulated)) << to_string(options.policy);
        EXPECT_EQ(live.decisions, simulated.decisions);
        EXPECT_EQ(figures(live).turned_away, figures(simulated).turned_away);
    }
}

TEST(Scheduler, LosesNoSampleWheneverJobsStop) {
    const SpeedTable speeds{{"net", Speeds({{1, 1, 1_s}, {1, 64, 9_s}, {8, 1, 2_s}, {8, 64, 11_s}})}};
    for (const char* text : {"poisson:model=net:jobs=40:hourly=400:minutes=6:batch=8-64:most=8",
                             "search:model=net:jobs=9:minutes=5:batch=8-32:most=4",
                             "population:model=net:jobs=5:rounds=4:minutes=5:together=on:batch=8-32"}) {
        const std::vector<Job> jobs = make_jobs(parse_workload(text), speeds, 12, 5);
        for (const Policy policy : policies()) {
            for (const double interval : {0.0, 100.0}) {
                SCOPED_TRACE(fmt::format("{} {} {}", text, to_string(policy), interval));
                SteppedWorld world{3, 5, 2};
                const Options options{.policy = policy, .devices = 12, .interval = Seconds{interval}};
                const Outcome outcome = run_policy(jobs, speeds, options, world);
                EXPECT_EQ(figures(outcome).complete, static_cast<std::int64_t>(jobs.size()));
                for (const Span& span : outcome.spans) {
                    EXPECT_GE(span.start, outcome.jobs[static_cast<std::size_t>(span.job)].ready);
                    EXPECT_GT(span.end, span.start);
                }
                for (const Assignment& given : world.begun) {
                    EXPECT_GT(given.samples, 0);
                    EXPECT_EQ(given.again, &given != &*std::ranges::find(world.begun, given.job, &Assignment::job));
                }
            }
        }
    }
}

TEST(Scheduler, StopsAllAtTheEnd) {
    SteppedWorld world{0, 0, 1};
    const Outcome outcome = run_policy({job("a", 0, 400, 1), job("b", 0, 8, 1)}, linear(2),
                                       {.policy = Policy::elastic, .devices = 2, .end = 50_s}, world);
    EXPECT_THAT(ends(outcome), ElementsAre(-1, 8));
    EXPECT_DOUBLE_EQ(outcome.jobs[0].trained, 52) << "13 steps of 4 s, the last one ended";
}

// An end behind the last job is not the makespan; one before it is.
TEST(Scheduler, EndsWithItsLastJob) {
    for (const auto& [end, makespan] : {std::pair{1000_s, 12_s}, {12_s, 12_s}, {6_s, 6_s}}) {
        const Outcome outcome =
            simulate({job("a", 0, 12, 1)}, linear(1), {.policy = Policy::fifo, .devices = 1, .end = end});
        EXPECT_EQ(figures(outcome).makespan, makespan);
        EXPECT_DOUBLE_EQ(figures(outcome).utilisation, 1);
    }
}

// Two jobs that come late: nothing is in use before the first of them.
TEST(Scheduler, CountsFromItsFirstArrival) {
    const Outcome outcome =
        simulate({job("a", 1000, 100, 1), job("b", 1010, 100, 1)}, linear(2), {.policy = Policy::fifo, .devices = 2});
    EXPECT_EQ(figures(outcome).makespan, 110_s);
    EXPECT_DOUBLE_EQ(figures(outcome).utilisation, 200.0 / 220);
}

}  // namespace
}  // namespace rehearse::cluster
