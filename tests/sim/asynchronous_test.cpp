// SPDX-License-Identifier: Apache-2.0
// Ranks that trade with parameter servers, on machines whose times can be worked out by hand.
#include "sim/modes/asynchronous.hpp"
#include "core/methods/servers.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "fixture.hpp"
#include "refusal.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t elements = 10'000'000;  // 40 MB: 4 ms on a link of 10 GB/s
const Seconds way{2e-6 + 40e6 / 10e9};

/// Each rank computes for `compute`, then trades its one bucket, whose server takes `served` for it.
Schedule trading(Machine& machine, std::int64_t ranks, Seconds compute, Seconds served,
                 Servers servers = {.count = 1}) {
    const Step served_as = compute_step(machine, "served", served);
    const PushPull push_pull{.bucket = BucketIndex{0},
                             .server = 0,
                             .sent = elements,
                             .received = elements,
                             .work = {std::get<Compute>(served_as.action).problem}};
    Schedule schedule = data_schedule(
        ranks, {compute_step(machine, "work", compute), {"bucket0:trade", Stream::send_gradients, push_pull, {0}}});
    schedule.classes[0].part.buckets = {{{0}, elements, -1}};
    schedule.methods.edit<Servers>() = servers;
    schedule.plan = "trading";
    return schedule;
}

struct Predicted {
    Prediction prediction;
    double step = 0;  // of the steady state
};

Predicted predicted(const Schedule& schedule, const Machine& machine, Options options = {}) {
    Predicted result{simulate(schedule, machine, options)};
    result.step = summarize(schedule, result.prediction.timeline).step.value;
    return result;
}

TEST(Asynchronous, OneRankWaitsForItsWayThereAndBack) {
    Machine machine = one_device_nodes(2, Star{});
    const Predicted one = predicted(trading(machine, 1, Seconds{0.020}, Seconds{0.003}), machine);
    EXPECT_NEAR(one.step, 0.020 + 2 * way.value + 0.003, 1e-9);
    EXPECT_THAT(one.prediction.staleness, ElementsAre(settling_steps));
    EXPECT_EQ(one.prediction.flows, 2 * settling_steps);
}

// 1 ms of computing, 20 ms of serving: four ranks get a step each in 80 ms, and each update is three others old.
TEST(Asynchronous, ABusyServerSetsThePace) {
    Machine machine = one_device_nodes(5, Star{});
    const Predicted four = predicted(trading(machine, 4, Seconds{0.001}, Seconds{0.020}), machine, {.iterations = 40});
    EXPECT_NEAR(four.step, 0.080, 0.080 * 0.01);
    ASSERT_EQ(four.prediction.staleness.size(), 4U);
    EXPECT_EQ(std::accumulate(four.prediction.staleness.begin(), four.prediction.staleness.end(), std::int64_t{0}),
              4 * settling_steps);
    EXPECT_GT(four.prediction.staleness[3], 4 * settling_steps - 20);
}

// However few steps are asked for, the step is that of the steady state.
TEST(Asynchronous, FewStepsAreNotFewerThanItTakesToSettle) {
    Machine machine = one_device_nodes(5, Star{});
    const Schedule schedule = trading(machine, 4, Seconds{0.001}, Seconds{0.020});
    const Predicted one = predicted(schedule, machine), two = predicted(schedule, machine, {.iterations = 2});
    EXPECT_NEAR(one.step, two.step, 1e-9);  // SimGrid's clock has gone on in between
    EXPECT_LT(one.prediction.drift, settled_drift);
}

// Each way 40 MB leave a node by its card and come in by another's.
TEST(Asynchronous, LinksTellWhatIsTraded) {
    Machine machine = one_device_nodes(2, Star{});
    const Schedule schedule = trading(machine, 1, Seconds{0.020}, Seconds{0.003});
    const Predicted one = predicted(schedule, machine, {.links = true});
    Bytes up;
    for (const LinkUse& use : one.prediction.timeline.links) {
        if (use.name == use.kind && use.crossing == Crossing::into_fabric) up += use.bytes;
    }
    EXPECT_EQ(up, Bytes{40e6 * 2 * settling_steps});
    EXPECT_NEAR(one.prediction.bounds.wire.value, 0.004, 1e-12) << "40 MB at 10 GB/s";
    EXPECT_TRUE(predicted(schedule, machine).prediction.timeline.links.empty());
}

// 16 ranks bring 16 x 4 ms through the server's one NIC and get as much back. While all are together that is 64 ms
// there and 64 ms back; who is served first is back first, so that they drift apart until both directions are busy: 64
// ms.
TEST(Asynchronous, TheServersLinkSetsThePaceOfMany) {
    Machine machine = one_device_nodes(17, Star{});
    const Predicted many = predicted(trading(machine, 16, Seconds{0.001}, Seconds{1e-5}), machine, {.iterations = 40});
    EXPECT_GE(many.step, 0.064);
    EXPECT_LE(many.step, 0.001 + 2 * 0.064 + 16 * 1e-5 + 1e-4);
}

// Two ranks in step share the server's link both ways. Two of which one computes three times as long do 1 + 1/3 times
// the steps of the slow one alone; in step they would do as many as the slow one.
TEST(Asynchronous, ASlowRankKeepsNobodyElse) {
    Machine machine = one_device_nodes(3, Star{});
    const Schedule schedule = trading(machine, 2, Seconds{0.100}, Seconds{1e-6});
    const double apart = 2 * way.value + 1e-6;
    const Predicted even = predicted(schedule, machine);
    const Predicted uneven = predicted(schedule, machine, {.pace = {1, 3}});
    EXPECT_NEAR(even.step, 0.1 + 2 * apart, 1e-4);
    EXPECT_NEAR(1 / uneven.step, (1 / (0.1 + apart) + 1 / (0.3 + apart)) / 2, 0.05 / uneven.step);
}

// Two stages hand a word on and back, 2 us each way; then both trade 40 MB at the same time through the server's one
// link. Each has a bucket 0 of its own.
TEST(Asynchronous, StagesOfAPipelineTradeWhatEachHas) {
    Machine machine = one_device_nodes(3, Star{});
    Schedule schedule = trading(machine, 1, Seconds{0.010}, Seconds{1e-6});
    const Step last_work = compute_step(machine, "last_work", Seconds{0.020});
    schedule.mesh = {{{"pipe", 2}}};
    schedule.class_axes = {0};
    schedule.classes.push_back(schedule.classes.front());
    const auto message = [](std::int64_t offset) { return Send{AxisIndex{0}, offset, Bytes{4}}; };
    const auto arrival = [](std::int64_t offset) { return Recv{AxisIndex{0}, offset, Bytes{4}}; };
    std::vector<Step>& first = schedule.classes[0].steps;
    const Step trade = first.back();
    first.back() = {"on", Stream::send_activations, message(1), {0}};
    first.push_back({"back", Stream::receive_gradients, arrival(1), {}});
    first.push_back({"bucket0:trade", Stream::send_gradients, trade.action, {2}});
    schedule.classes[1].steps = {{"come", Stream::receive_activations, arrival(-1), {}},
                                 {"last_work", Stream::compute, last_work.action, {0}},
                                 {"back", Stream::send_gradients, message(-1), {1}},
                                 {"bucket0:trade", Stream::send_gradients, trade.action, {1}}};
    const Predicted both = predicted(schedule, machine);
    EXPECT_NEAR(both.step, 0.030 + 2 * 2e-6 + 4 * way.value, 2e-4);
    EXPECT_EQ(both.prediction.flows, settling_steps * (2 + 2 * 2));
    EXPECT_THAT(both.prediction.staleness, ElementsAre(2 * settling_steps));
}

// A rank that waits leaves the core to its server: nothing takes longer. Two ranks and their server on one core have
// 2 x 10 + 2 x 3 ms of work for it in a step of both; with a core each a step is 10 + 3 ms, two ways and 3 ms in the
// queue at most.
TEST(Asynchronous, ServersShareCoresWithRanks) {
    Machine machine = one_device_nodes(3, Star{});
    const Schedule one = trading(machine, 1, Seconds{0.020}, Seconds{0.003});
    machine.shared_cores = {{1, {0, 1}, "test"}};
    EXPECT_NEAR(predicted(one, machine).step, 0.020 + 2 * way.value + 0.003, 1e-9);
    machine = one_device_nodes(3, Star{});
    const Schedule two = trading(machine, 2, Seconds{0.010}, Seconds{0.003});
    const double apart = predicted(two, machine).step;
    EXPECT_LE(apart, 0.010 + 4 * way.value + 2 * 0.003);
    machine.shared_cores = {{1, {0, 1, 2}, "test"}};
    const double together = predicted(two, machine).step;
    EXPECT_GE(together, 2 * 0.010 + 2 * 0.003 - 1e-9);
    EXPECT_LE(together, 2 * 0.010 + 2 * 0.003 + 4 * way.value);
    machine.shared_cores = {{1, {0, 2}, "test"}};  // the server and one of them: the other has its core to itself
    EXPECT_LT(predicted(two, machine).step, together);
}

// On a host whose messages were measured as `run` sends them: 10^7 numbers are copied four times, 8 B each, and rank
// and server, who have waited for more than 3.2 ms, nap 200 us at a time: late by half of that.
TEST(Asynchronous, OnAMeasuredHostNumbersAreCopiedAndLooksAreLate) {
    Machine machine = one_device_nodes(2, Star{});
    const Schedule schedule = trading(machine, 1, Seconds{0.020}, Seconds{0.003});
    const double before = predicted(schedule, machine).step;
    machine.across.overlap = {{1_us, "test"}, {10.0_GBps, "test"}, {1_us, "test"}};
    const double copy = 8e7 / machine.classes[0].memory_bandwidth.value.value;
    EXPECT_NEAR(predicted(schedule, machine).step, before + 4 * copy + 2 * 100e-6, 0.01 * copy + 1e-6);
}

// Without noise both are on the link at the same time, with noise hardly ever.
TEST(Asynchronous, NoiseIsOfEachStepAnew) {
    Machine machine = one_device_nodes(3, Star{});
    const Schedule schedule = trading(machine, 2, Seconds{0.100}, Seconds{1e-6});
    const Predicted still = predicted(schedule, machine, {.iterations = 200});
    const Predicted noisy = predicted(schedule, machine, {.iterations = 200, .noise = {0.2, 1}});
    EXPECT_NEAR(still.step, 0.1 + 4 * way.value, 1e-3);
    EXPECT_NEAR(noisy.step, 0.1 + 2 * way.value, 0.1 * 0.03);  // noise is 1 on average
}

// Beside the ranks: server 0 is on the device of rank 0, which has no way to go.
TEST(Asynchronous, ServersMayShareDevices) {
    Machine machine = one_device_nodes(1, Star{});
    const Predicted alone =
        predicted(trading(machine, 1, Seconds{0.020}, Seconds{0.003}, {.count = 1, .shared = true}), machine);
    EXPECT_NEAR(alone.step, 0.023, 1e-9);
    EXPECT_EQ(alone.prediction.flows, 0);
}

TEST(Asynchronous, ASlowServerTakesLonger) {
    Machine machine = one_device_nodes(2, Star{});
    const Schedule schedule = trading(machine, 1, Seconds{0.020}, Seconds{0.003});
    const Predicted slow = predicted(schedule, machine, {.server_pace = {5}});
    EXPECT_NEAR(slow.step, 0.020 + 2 * way.value + 5 * 0.003, 1e-9);
}

TEST(Asynchronous, NoStepWaitsForAQuorum) {
    Machine machine = one_device_nodes(3, Star{});
    const Schedule schedule = trading(machine, 2, Seconds{0.020}, Seconds{0.003});
    EXPECT_THAT([&] { simulate(schedule, machine, {.quorum = 0.5}); },
                testing::ThrowsMessage<InputError>(HasSubstr("server=2:quorum=0.75")));
}

TEST(Asynchronous, CopiesFollowInTheBackground) {
    Machine machine = one_device_nodes(4, Star{});
    const Predicted one = predicted(trading(machine, 1, Seconds{0.020}, Seconds{0.003}, {.count = 3}), machine);
    const Predicted three =
        predicted(trading(machine, 1, Seconds{0.020}, Seconds{0.003}, {.count = 3, .copies = 3}), machine);
    EXPECT_EQ(three.prediction.flows, 2 * one.prediction.flows);
    // The answer shares the server's way out with two copies of 4 ms.
    EXPECT_NEAR(three.step, one.step + 2 * 0.004, 1e-4);
}

TEST(Asynchronous, TheCertificateFindsLostAndHastyTrades) {
    Machine machine = one_device_nodes(3, Star{});
    const Schedule schedule = trading(machine, 2, Seconds{0.010}, Seconds{0.003});
    const Timeline right = predicted(schedule, machine).prediction.timeline;
    EXPECT_EQ(refusal(right, schedule, machine), "nothing");
    Timeline lost = right;
    lost.events.erase(std::ranges::find(lost.events, "bucket0:serve", &Event::step));
    EXPECT_THAT(refusal(lost, schedule, machine), HasSubstr("2 trades of bucket0 in step 0, 1 served"));
    Timeline hasty = right;
    for (Event& event : hasty.events) {
        if (event.step == "bucket0:trade") event.end = event.start + Seconds{0.0079};  // two ways of 4 ms
    }
    EXPECT_THAT(refusal(hasty, schedule, machine), HasSubstr("its way to the server and back"));
    Timeline twice = right;
    Event* before = nullptr;
    for (Event& event : twice.events) {
        if (event.step != "bucket0:serve") continue;
        if (before != nullptr) event.start = before->start + Seconds{0.001};
        before = &event;
    }
    EXPECT_THAT(refusal(twice, schedule, machine), HasSubstr("begins before"));
}

}  // namespace
}  // namespace rehearse::sim
