// SPDX-License-Identifier: Apache-2.0
// Allocations against all there are, small clusters against times worked out by hand, and what holds for any.
#include <gmock/gmock.h>

#include <fmt/format.h>

#include <functional>
#include <map>
#include <random>

#include "cluster/allocate.hpp"
#include "cluster/predict.hpp"
#include "cluster/report.hpp"
#include "cluster/workloads.hpp"
#include "core/error.hpp"
#include "models/models.hpp"
#include "predict/spread.hpp"
#include "sim/simulate.hpp"

namespace rehearse::cluster {
namespace {

using namespace rehearse::literals;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// One sample a second a device, however many: with up to `most` samples each.
Speeds linear(std::int64_t most_devices, std::int64_t most = 64) {
    std::vector<SpeedPoint> points;
    for (std::int64_t k = 1; k <= most_devices; k *= 2) {
        for (const std::int64_t b : {std::int64_t{1}, most}) points.push_back({k, b, Seconds{static_cast<double>(b)}});
    }
    return Speeds(points);
}

/// The largest sum of worths over all ways to give away `devices`.
double exhaustive(std::span<const Worth> jobs, std::int64_t devices) {
    if (jobs.empty()) return 0;
    double best = -1;
    for (std::size_t m = 0; m < jobs.front().size() && static_cast<std::int64_t>(m) <= devices; ++m) {
        const double rest = exhaustive(jobs.subspan(1), devices - static_cast<std::int64_t>(m));
        if (jobs.front()[m] >= 0 && rest >= 0) best = std::max(best, jobs.front()[m] + rest);
    }
    return best;
}

TEST(Allocate, IsAsGoodAsTheBestOfAllWays) {
    std::mt19937 bits(7);
    int impossible = 0;
    for (int round = 0; round < 400; ++round) {
        std::vector<Worth> jobs(1 + bits() % 4);
        for (Worth& worth : jobs) {
            worth.resize(1 + bits() % 6);
            for (double& w : worth)
                w = bits() % 3 == 0 ? -1 : static_cast<double>(bits() % 9);  // whole: sums are exact
        }
        const auto devices = static_cast<std::int64_t>(bits() % 9);
        const double best = exhaustive(jobs, devices);
        const std::vector<std::int64_t> given = allocate(jobs, devices);
        ASSERT_EQ(given.empty(), best < 0);
        impossible += best < 0 ? 1 : 0;
        if (best < 0) continue;
        double sum = 0;
        std::int64_t used = 0;
        for (std::size_t j = 0; j < jobs.size(); ++j) {
            sum += jobs[j].at(static_cast<std::size_t>(given[j]));
            used += given[j];
        }
        ASSERT_EQ(sum, best);
        ASSERT_LE(used, devices);
    }
    EXPECT_GT(impossible, 20);
    EXPECT_LT(impossible, 380);
}

TEST(Allocate, LeavesOutTheLastOnesWhereNotAllFit) {
    const std::vector<Share> needs_two{{}, {}, {2, 8, 4}, {3, 8, 5}};
    const std::vector<Share> any{{}, {1, 4, 2}, {2, 8, 3}};
    const std::vector<Candidate> jobs{{needs_two, 1, {}}, {any, 1, {}}, {needs_two, 1, {}}, {any, 1, {}}};
    const std::vector<Share> shares = elastic_shares(jobs, 4);
    // 2 + 2 devices are worth 4 + 3, 3 + 1 are worth 5 + 2: as much, and the one that gives the later job least is
    // taken.
    EXPECT_EQ(shares[0].devices + shares[1].devices, 4);
    EXPECT_EQ(shares[2].devices, 0) << "needs two, none are left beside what the first two need at least";
    EXPECT_EQ(shares[3].devices, 0) << "nobody overtakes";
}

TEST(Allocate, KeepsWhatAJobHasAmongEquals) {
    const std::vector<Share> shares{{}, {1, 4, 1}, {2, 8, 2}, {3, 12, 3}};
    for (const std::int64_t has : {1, 2, 3}) {
        const std::vector<Candidate> jobs{{shares, 1, shares[static_cast<std::size_t>(has)]}, {shares, 1, {}}};
        EXPECT_EQ(elastic_shares(jobs, 4)[0].devices, has);
    }
}

TEST(Speeds, AreThePointsAndStraightLinesBetweenThem) {
    const Speeds speeds({{1, 2, 4_s}, {1, 6, 8_s}, {4, 2, 5_s}, {4, 6, 9_s}});
    EXPECT_DOUBLE_EQ(speeds.samples_per_s(1, 2), 2 / 4.0);
    EXPECT_DOUBLE_EQ(speeds.samples_per_s(1, 4), 4 / 6.0);
    EXPECT_DOUBLE_EQ(speeds.samples_per_s(2, 4), 4 / 4.5);    // half way from 1 to 4 in the logarithm
    EXPECT_DOUBLE_EQ(speeds.samples_per_s(4, 21), 21 / 9.0);  // one device has 6 samples and sets the pace
    EXPECT_EQ(speeds.samples_per_s(4, 25), 0);
    EXPECT_EQ(speeds.samples_per_s(1, 1), 0);
    EXPECT_EQ(speeds.samples_per_s(5, 10), 0);
    EXPECT_EQ(speeds.most_per_device(3), 6);
    EXPECT_THAT([] { Speeds({{1, 2, 4_s}, {1, 2, 5_s}}); }, ThrowsMessage<InputError>(HasSubstr("twice")));
}

TEST(Speeds, BestIsTheFastestOfAllMultiples) {
    std::mt19937 bits(3);
    for (int round = 0; round < 100; ++round) {
        std::vector<SpeedPoint> points;
        for (const std::int64_t k : {1, 2, 5}) {
            double step = 1;
            for (const std::int64_t b : {1, 3, 8, 20}) {
                step += static_cast<double>(bits() % 50);  // may well be slower a sample than a smaller batch
                points.push_back({k, b, Seconds{step}});
            }
        }
        const Speeds speeds(points);
        const BatchRange range{static_cast<std::int64_t>(1 + bits() % 10), static_cast<std::int64_t>(10 + bits() % 90)};
        for (std::int64_t k = 1; k <= 5; ++k) {
            double best = 0;
            for (std::int64_t batch = range.least; batch <= range.most; ++batch) {
                if (batch % k == 0) best = std::max(best, speeds.samples_per_s(k, batch));
            }
            const Share share = speeds.best(k, range);
            ASSERT_GE(share.samples_per_s, best * (1 - 1e-12));
            if (share.devices > 0) {
                ASSERT_EQ(share.samples_per_s, speeds.samples_per_s(k, share.batch));
            }
        }
    }
}

TEST(Speeds, SaysWhichBoundAJobIsBeyond) {
    const SpeedTable speeds{{"net", Speeds({{2, 32, 1_s}, {2, 64, 2_s}, {8, 48, 1_s}, {8, 128, 2_s}})}};
    const auto asks = [&](std::int64_t devices, std::int64_t batch) {
        const std::vector<Job> jobs{{.name = "a", .model = "net", .samples = 1, .devices = devices, .batch = batch}};
        return [=] { check(jobs, speeds, 100); };
    };
    const auto says = [](const char* text) { return ThrowsMessage<InputError>(HasSubstr(text)); };
    EXPECT_THAT(asks(2, 32), says("with a batch of 32: 16 samples a device, and speeds are of 32 to 64 there"));
    EXPECT_THAT(asks(2, 200), says("100 samples a device, and speeds are of 32 to 64 there"));
    EXPECT_THAT(asks(4, 132), says("33 samples a device, and speeds are of 48 to 64 there"));
    EXPECT_THAT(asks(1, 32), says("speeds are of 2 to 8 devices"));
    EXPECT_THAT(asks(16, 1024), says("speeds are of 2 to 8 devices"));
    EXPECT_THAT(asks(8, 4), says("some of them would have no sample"));
    const SpeedTable apart{{"net", Speeds({{2, 8, 1_s}, {8, 48, 1_s}})}};
    const std::vector<Job> between{{.name = "a", .model = "net", .samples = 1, .devices = 4, .batch = 64}};
    EXPECT_THAT([&] { check(between, apart, 100); },
                says("no samples a device have speeds of both fewer and more devices than 4"));
}

Job job(const char* name, double arrival, double samples, std::int64_t devices, std::int64_t most_devices = 0) {
    return {.name = name,
            .model = "net",
            .arrival = Seconds{arrival},
            .samples = samples,
            .devices = devices,
            .batch = 8 * devices,
            .batches = {8, 64},
            .most_devices = std::max(devices, most_devices)};
}

std::vector<double> ends(const Outcome& outcome) {
    std::vector<double> ends;
    for (const JobResult& each : outcome.jobs) ends.push_back(each.end ? each.end->value : -1);
    return ends;
}

TEST(Fifo, NobodyOvertakes) {
    // Three devices: a takes two until 10; b wants three and waits; c would fit beside a, but comes after b.
    const SpeedTable speeds{{"net", linear(4)}};
    const std::vector<Job> jobs{job("a", 0, 20, 2), job("b", 1, 30, 3), job("c", 2, 5, 1)};
    const Outcome outcome = simulate(jobs, speeds, {.policy = Policy::fifo, .devices = 3});
    EXPECT_THAT(ends(outcome), ElementsAre(10, 20, 25));
    const Figures f = figures(outcome);
    EXPECT_DOUBLE_EQ(f.mean_completion.value, (10 + 19 + 23) / 3.0);
    EXPECT_DOUBLE_EQ(f.mean_wait.value, (0 + 9 + 18) / 3.0);
    EXPECT_DOUBLE_EQ(f.p95_completion.value, 23);
    EXPECT_DOUBLE_EQ(f.utilisation, 55 / (3.0 * 25));
    const Figures none = figures(simulate(jobs, speeds, {.policy = Policy::fifo, .devices = 3, .end = 5_s}));
    EXPECT_EQ(none.complete, 0);
    EXPECT_EQ(none.started, 1) << "a; b waits for three devices";
}

TEST(Elastic, SharesDevicesAndPaysForRestarts) {
    // Two devices. a has both until b comes at 10, when it is half done; it restarts for 5 s on one and ends at 35. b
    // has learnt 25 of 40 by then, restarts for 5 s and learns the rest on two by 47.5.
    const SpeedTable speeds{{"net", linear(2)}};
    const std::vector<Job> jobs{job("a", 0, 40, 1, 2), job("b", 10, 40, 1, 2)};
    const Outcome outcome = simulate(jobs, speeds, {.policy = Policy::elastic, .devices = 2, .restart = 5_s});
    EXPECT_THAT(ends(outcome), ElementsAre(35, 47.5));
    EXPECT_EQ(figures(outcome).restarts, 2);
    const Timeline seen = timeline(jobs, outcome);
    double idle = 0;
    for (const Event& event : seen.events) idle += event.pass == "restart" ? (event.end - event.start).value : 0;
    EXPECT_DOUBLE_EQ(idle, 5 + 2 * 5);  // a on one device, b on two
    // With decisions every 12 s: b begins at 12 and not at 10; a has learnt 24, ends at 12 + 5 + 16 = 33; b goes on
    // with two at 36, 24 learnt, restarts until 41 and ends 8 s later.
    const Outcome slow =
        simulate(jobs, speeds, {.policy = Policy::elastic, .devices = 2, .interval = 12_s, .restart = 5_s});
    EXPECT_THAT(ends(slow), ElementsAre(33, 49));
}

TEST(Elastic, ChangesTheBatchWithTheDevices) {
    // 1 s a step whatever the batch, to 64 samples: a fixed batch of 8 gains nothing from a second device.
    const SpeedTable speeds{{"net", Speeds({{1, 1, 1_s}, {1, 64, 1_s}, {2, 1, 1_s}, {2, 64, 1_s}})}};
    std::vector<Job> jobs{job("a", 0, 640, 1, 2)};
    EXPECT_THAT(ends(simulate(jobs, speeds, {.policy = Policy::fixed_batch, .devices = 2})), ElementsAre(80));
    EXPECT_THAT(ends(simulate(jobs, speeds, {.policy = Policy::elastic, .devices = 2})), ElementsAre(10));
}

TEST(Cluster, TurnsAwayWhereThereIsNoQueue) {
    const SpeedTable speeds{{"net", linear(2)}};
    std::vector<Job> jobs{job("a", 0, 1280, 2), job("b", 1, 1280, 2), job("c", 1, 20, 1), job("d", 700, 1280, 2)};
    for (Job& each : jobs) {
        if (each.devices == 2) each.batch = each.batches.least = each.batches.most = 128;  // two devices hold that
    }
    jobs[2].after = {1};
    for (const Policy policy : policies()) {
        SCOPED_TRACE(to_string(policy));
        const Outcome outcome = simulate(jobs, speeds, {.policy = policy, .devices = 2, .queue = false});
        EXPECT_THAT(ends(outcome), ElementsAre(640, -1, -1, 1340));
        EXPECT_EQ(figures(outcome).turned_away, 2) << "b, and c, which comes after it";
        // With a queue b is at work from 640 to 1280, then d, which was ready before c.
        const Outcome queued = simulate(jobs, speeds, {.policy = policy, .devices = 2, .end = 1281_s});
        EXPECT_EQ(figures(queued).complete, 2);
        EXPECT_EQ(figures(queued).unfinished, 2);
        EXPECT_DOUBLE_EQ(queued.jobs[3].trained, 2);
    }
}

TEST(Cluster, LosesNoSampleAndGivesNoDeviceTwice) {
    const SpeedTable speeds{{"net", linear(8)},
                            {"deep", Speeds({{1, 1, 2_s}, {1, 16, 9_s}, {8, 1, 4_s}, {8, 16, 12_s}})}};
    for (const char* text : {"poisson:model=net+deep:jobs=60:hourly=200:minutes=20:batch=2-64:most=8",
                             "search:model=deep:jobs=9:minutes=5:batch=4-32:most=4",
                             "population:model=net:jobs=5:rounds=4:minutes=5:together=on:batch=4-32"}) {
        const std::vector<Job> jobs = make_jobs(parse_workload(text), speeds, 12, 5);
        for (const Policy policy : policies()) {
            for (const double interval : {0.0, 300.0}) {
                SCOPED_TRACE(fmt::format("{} {} {}", text, to_string(policy), interval));
                const Outcome outcome = simulate(
                    jobs, speeds, {.policy = policy, .devices = 12, .interval = Seconds{interval}, .restart = 30_s});
                std::vector<double> trained(jobs.size(), 0);
                std::map<std::int64_t, std::vector<std::pair<double, double>>> held;
                for (const Span& span : outcome.spans) {
                    const auto j = static_cast<std::size_t>(span.job);
                    trained[j] += (span.end - span.start - span.idle).value * span.share.samples_per_s;
                    EXPECT_EQ(static_cast<std::int64_t>(span.devices.size()), span.share.devices);
                    EXPECT_LE(span.share.devices, jobs[j].most_devices);
                    EXPECT_GE(span.start, outcome.jobs[j].ready);
                    for (const int before : jobs[j].after) {
                        EXPECT_LE(*outcome.jobs[static_cast<std::size_t>(before)].end, span.start);
                    }
                    for (const std::int64_t d : span.devices) held[d].emplace_back(span.start.value, span.end.value);
                }
                for (auto& [device, times] : held) {
                    EXPECT_LT(device, 12);
                    std::ranges::sort(times);
                    for (std::size_t i = 1; i < times.size(); ++i) EXPECT_LE(times[i - 1].second, times[i].first);
                }
                for (std::size_t j = 0; j < jobs.size(); ++j) {
                    ASSERT_TRUE(outcome.jobs[j].end);
                    EXPECT_THAT(trained[j], DoubleNear(jobs[j].samples, 1e-6 * jobs[j].samples));
                }
            }
        }
    }
}

TEST(Workload, SuccessiveHalvingStopsAllButEveryThird) {
    const SpeedTable speeds{{"net", linear(8)}};
    const std::vector<Job> jobs = make_jobs(parse_workload("search:model=net:jobs=9:minutes=1:most=1"), speeds, 9, 1);
    ASSERT_EQ(jobs.size(), 9 + 3 + 1U);
    EXPECT_EQ(jobs[8].samples, 60);
    EXPECT_EQ(jobs[9].samples, 120);   // three times as many as before in all
    EXPECT_EQ(jobs[12].samples, 360);  // nine times
    EXPECT_EQ(jobs[12].after.size(), 3U);
    // Nine devices: a rung takes as long as one of its trials.
    EXPECT_THAT(ends(simulate(jobs, speeds, {.policy = Policy::fifo, .devices = 9})).back(), 60 + 120 + 360);
}

TEST(Workload, APopulationWaitsForItsSlowestOnlyWhereTogether) {
    const SpeedTable speeds{{"net", linear(8)}};
    for (const bool together : {false, true}) {
        std::vector<Job> jobs =
            make_jobs(parse_workload(fmt::format("population:model=net:jobs=2:rounds=3:minutes=1:most=1:together={}",
                                                 together ? "on" : "off")),
                      speeds, 2, 1);
        ASSERT_EQ(jobs.size(), 6U);
        for (const std::size_t slow : {0, 3}) jobs[slow].samples = 120;  // member 0 first, then member 1
        const double end = simulate(jobs, speeds, {.policy = Policy::fifo, .devices = 2}).end.value;
        EXPECT_EQ(end, together ? 120 + 120 + 60 : 120 + 60 + 60);
    }
}

TEST(Workload, RefusesWhatItDoesNotKnow) {
    const auto message = [](const char* text, const char* part) {
        EXPECT_THAT([&] { parse_workload(text); }, ThrowsMessage<InputError>(HasSubstr(part))) << text;
    };
    message("poison:model=a", "did you mean 'poisson'");
    message("poisson:modle=a", "did you mean 'model'");
    message("poisson:jobs=4", "say what is trained");
    message("poisson:model=a:jobs=0", "from 1");
    message("poisson:model=a:batch=9-3", "smaller one first");
    message("search:model=a:eta=0.5", "from 1");
    message("search:model", "has no value");
}

TEST(Jobs, AreReadAndRefusedByLine) {
    const std::string header = "name,model,arrival_s,samples,devices,batch,min_batch,max_batch,max_devices,after\n";
    const std::vector<Job> jobs = read_jobs(header + "a,net,0,100,1,8,,,,\nb,net,2.5,50,2,16,8,64,4,a\n", "jobs.csv");
    EXPECT_EQ(jobs[0].batches.most, 8);
    EXPECT_EQ(jobs[1].arrival, Seconds{2.5});
    EXPECT_THAT(jobs[1].after, ElementsAre(0));
    const auto message = [&](const char* row, const char* part) {
        EXPECT_THAT([&] { read_jobs(header + row, "jobs.csv"); }, ThrowsMessage<InputError>(HasSubstr(part))) << row;
    };
    message("a,net,0,100,1,8,9,20,1,\n", "jobs.csv:2: batch 8 is not within 9 to 20");
    message("a,net,0,100,4,8,,,2,\n", "more than max_devices");
    message("a,net,0,100,1,8,,,,b\n", "no job 'b'");
    message("a,net,0,0,1,8,,,,\n", "samples");
    message("a,net,-1,1,1,8,,,,\n", "arrival_s is '-1', a number of 0 or above was expected");
    EXPECT_EQ(read_jobs(header + "a,net,0.0,100,1,8,,,,\n", "jobs.csv")[0].arrival, Seconds{0});
    EXPECT_THAT(
        [] { read_jobs("name,model,arrival_s,samples,devices,batch,max_bach\n", "jobs.csv"); },
        ThrowsMessage<InputError>(HasSubstr("jobs.csv:1: unknown column 'max_bach' (did you mean 'max_batch'?)")));
    message("a,net,0,1,1,8,,,,\na,net,0,1,1,8,,,,\n", "jobs.csv:3");
    const SpeedTable speeds{{"net", linear(2)}};
    EXPECT_THAT([&] { check({job("a", 0, 1, 4)}, speeds, 2); }, ThrowsMessage<InputError>(HasSubstr("asks for 4")));
    EXPECT_THAT([&] { check({{.name = "a", .model = "nett"}}, speeds, 2); },
                ThrowsMessage<InputError>(HasSubstr("did you mean 'net'")));
    EXPECT_THAT([] { read_speeds("model,devices,batch_per_device,step_s\n", "s.csv"); },
                ThrowsMessage<InputError>(HasSubstr("no rows")));
}

TEST(Predicted, SpeedsAreThoseOfTheSimulatedStep) {
    const Machine machine = models::load_machine("titanx-server");
    const Network network = models::load_network("lenet5");
    const schedule::Plan plan = schedule::parse_plan("data");
    const Speeds speeds(predicted_points(network, machine, plan, {}, 3, 4));
    EXPECT_EQ(speeds.most_devices(), 3);
    const Schedule schedule = make_schedule(network, machine, plan, {.devices = 3, .batch_per_device = 4});
    // Each step waits for the slowest of three cards, which share a node.
    const std::vector<double> waiting(3, predict::slowest_of(3) * predict::beside(3));
    const Timeline one = sim::simulate(schedule, machine, {.mode = sim::Mode::folded, .pace = waiting}).timeline;
    EXPECT_DOUBLE_EQ(speeds.samples_per_s(3, 12), 12 / summarize(one).step.value);
    // Of five, three are between 2 and 4, unless they are asked for.
    const Speeds between(predicted_points(network, machine, plan, {}, 5, 4));
    EXPECT_NE(between.samples_per_s(3, 12), speeds.samples_per_s(3, 12));
    const Speeds wanted(predicted_points(network, machine, plan, {}, 5, 4, {3}));
    EXPECT_DOUBLE_EQ(wanted.samples_per_s(3, 12), speeds.samples_per_s(3, 12));
}

}  // namespace
}  // namespace rehearse::cluster
