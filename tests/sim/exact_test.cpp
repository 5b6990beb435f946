// SPDX-License-Identifier: Apache-2.0
// Exact mode against algebra. On a star of one device a node nothing contends: a message of b bytes takes
// alpha + b / B with alpha = 2 us of fabric + 3 us of software and B = 10 GB/s, and combining b bytes takes b / C, C =
// 40 GB/s, which only the reduce rounds pay.
#include <gmock/gmock.h>

#include <cmath>

#include "core/error.hpp"
#include "fixture.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;
using testing::HasSubstr;

constexpr double alpha = 5e-6, B = 10e9, C = 40e9;
constexpr std::int64_t elements = 240'000;  // divisible by 16, 12, 6 ...: every chunk is exact
constexpr double S = 4.0 * elements;

// SimGrid rounds at 1e-12 s; these collectives last 1e-4 s and more.
constexpr double tolerance = 1e-8;

Machine star(std::int64_t nodes) {
    Machine machine = one_device_nodes(nodes, Star{});
    machine.across = messaging(3_us, 1, 40.0_GBps);
    return machine;
}

Prediction exact(const Schedule& schedule, const Machine& machine, int iterations = 1) {
    return simulate(schedule, machine, {.mode = Mode::exact, .iterations = iterations});
}

double all_reduce_time(std::int64_t ranks, const char* algorithm) {
    const Schedule schedule = data_schedule(ranks, {all_reduce_step(0, elements, parse_algorithm(algorithm))});
    return step_time(exact(schedule, star(ranks)).timeline).value;
}

void expect_time(double predicted, double expected) { EXPECT_NEAR(predicted / expected, 1, tolerance); }

TEST(ExactRing, TakesTheClosedForm) {
    // N - 1 rounds that reduce and N - 1 that copy S / N each.
    for (const std::int64_t n : {2, 3, 4, 6, 8, 16}) {
        const double N = static_cast<double>(n), b = S / N;
        expect_time(all_reduce_time(n, "ring"), (N - 1) * (2 * (alpha + b / B) + b / C));
    }
}

TEST(ExactRing, TakesWhatThePieceOfItsMessagesSays) {
    Machine machine = star(8);
    // 160 kB messages on 6 ranks, 480 kB on 2; the link alone would take 16 us and 48 us.
    machine.across.pieces = {{200_kB, 7_us, 8.0_GBps, "test"}, {{}, 30_us, 5.0_GBps, "test"}};
    const auto time = [&](std::int64_t ranks, Mode mode) {
        const Schedule schedule = data_schedule(ranks, {all_reduce_step(0, elements, parse_algorithm("ring"))});
        return step_time(simulate(schedule, machine, {.mode = mode}).timeline).value;
    };
    for (const Mode mode : {Mode::exact, Mode::folded}) {
        expect_time(time(6, mode), 5 * (2 * (2e-6 + 7e-6 + 160e3 / 8e9) + 160e3 / C));
        expect_time(time(2, mode), 1 * (2 * (2e-6 + 30e-6 + 480e3 / 5e9) + 480e3 / C));
    }
}

TEST(ExactRing, IsNeverFasterThanItsLinksWhateverThePieceSays) {
    Machine machine = star(2);
    machine.across.pieces = {{{}, 1_us, 500.0_GBps, "test"}};
    const Schedule schedule = data_schedule(2, {all_reduce_step(0, elements, parse_algorithm("ring"))});
    expect_time(step_time(exact(schedule, machine).timeline).value, 2 * (2e-6 + S / 2 / B) + S / 2 / C);
}

TEST(ExactDoubling, TakesTheClosedForm) {
    // log2 N rounds that exchange and reduce everything.
    for (const std::int64_t n : {2, 4, 8, 16}) {
        expect_time(all_reduce_time(n, "doubling"), std::log2(n) * (alpha + S / B + S / C));
    }
    // Six: two hand in, four double twice, two get the result back by copying.
    expect_time(all_reduce_time(6, "doubling"), 4 * (alpha + S / B) + 3 * S / C);
}

TEST(ExactHalving, TakesTheClosedForm) {
    // Halves, quarters, ... reduced, then copied: (N - 1) / N of S each way.
    for (const std::int64_t n : {2, 4, 8, 16}) {
        const double N = static_cast<double>(n), part = (N - 1) / N * S;
        expect_time(all_reduce_time(n, "halving"), 2 * (std::log2(N) * alpha + part / B) + part / C);
    }
}

TEST(ExactTree, TakesTheClosedForm) {
    // The root is in all of ceil(log2 N) rounds up and as many down.
    for (const std::int64_t n : {2, 4, 5, 8, 16}) {
        const double rounds = std::ceil(std::log2(n));
        expect_time(all_reduce_time(n, "tree"), rounds * (2 * (alpha + S / B) + S / C));
    }
}

TEST(ExactHierarchical, TakesTheSumOfItsParts) {
    // Two nodes of two devices that a link of 40 GB/s joins at 1 us, one NIC each for both: a round inside (S / 2), an
    // exchange of quarters across, of both devices over one NIC, twice, and a round inside. 1 us + 1 us of device to
    // NIC.
    Machine machine = star(2);
    NodeKind& node = machine.nodes[0];
    node.vertices.push_back({"dev1", VertexKind::device, 0});
    node.vertices.push_back({"switch", VertexKind::bridge, -1});
    node.links = {node_link(0, 3, 40.0_GBps, 0.5e-6_s), node_link(2, 3, 40.0_GBps, 0.5e-6_s),
                  node_link(1, 3, 40.0_GBps, 0.5e-6_s)};
    machine.inside = messaging(2_us, 1, 40.0_GBps);
    const Schedule schedule =
        data_schedule(4, {all_reduce_step(0, elements, parse_algorithm("hierarchical(ring,ring)"))});
    const double inside = 1e-6 + 2e-6 + S / 2 / 40e9;
    const double across = 2e-6 + alpha + 2 * (S / 4) / B;
    expect_time(step_time(exact(schedule, machine).timeline).value, 2 * inside + S / 2 / C + 2 * across + S / 4 / C);
}

TEST(Exact, HidesCommunicationBehindComputation) {
    // 1 ms, then 3 ms of compute beside an all-reduce of (2 ranks, ring) 2 (5 us + 48 us) + 12 us = 118 us, then 1 ms.
    Machine machine = star(2);
    const Schedule schedule =
        data_schedule(2, {compute_step(machine, "a", 1_ms), all_reduce_step(0, elements, {}, {0}),
                          compute_step(machine, "b", 3_ms), compute_step(machine, "c", 1_ms, {1})});
    const Timeline timeline = exact(schedule, machine).timeline;
    expect_time(step_time(timeline).value, 5e-3);
    ASSERT_EQ(timeline.events.size(), 8U);
    const Event& reduce = timeline.events[1].stream == Stream::communication ? timeline.events[1] : timeline.events[2];
    expect_time(reduce.start.value, 1e-3);
    expect_time((reduce.end - reduce.start).value, 2 * (alpha + S / 2 / B) + S / 2 / C);
}

TEST(Exact, ExposesCommunicationThatNothingHides) {
    Machine machine = star(2);
    const Schedule schedule = data_schedule(2, {compute_step(machine, "a", 1_ms), all_reduce_step(0, elements, {}, {0}),
                                                compute_step(machine, "b", 1_ms, {1})});
    const Summary summary = summarize(exact(schedule, machine).timeline);
    const double reduce = 2 * (alpha + S / 2 / B) + S / 2 / C;
    expect_time(summary.step.value, 2e-3 + reduce);
    expect_time(summary.exposed_comm.value, reduce);
}

TEST(Exact, SaysWhatEachRankDidAndSent) {
    const std::int64_t n = 4;
    Machine machine = star(n);
    const Schedule schedule =
        data_schedule(n, {compute_step(machine, "a", 1_ms), all_reduce_step(0, elements, {}, {0})});
    const Prediction prediction = exact(schedule, machine, 2);
    ASSERT_EQ(prediction.timeline.events.size(), 16U);
    EXPECT_EQ(prediction.flows, 2 * n * 2 * (n - 1));
    EXPECT_EQ(prediction.timeline.ranks, n);
    for (std::size_t i = 0; i < 16; ++i) {
        const Event& event = prediction.timeline.events[i];
        EXPECT_EQ(event.iteration, static_cast<int>(i / 8));
        EXPECT_EQ(event.rank, static_cast<std::int64_t>(i / 2 % 4));
        EXPECT_EQ(event.pass, i % 2 == 0 ? "forward" : "allreduce");
        if (i % 2 == 1) {
            EXPECT_EQ(event.bytes.value, 2 * 3 * S / 4);
        }
    }
    EXPECT_NEAR(prediction.timeline.events[8].start.value, prediction.timeline.events[7].end.value, 1e-12);
}

TEST(Exact, WaitsForTheSlowestDevice) {
    Machine machine = star(2);
    const Schedule schedule =
        data_schedule(2, {compute_step(machine, "a", 1_ms), all_reduce_step(0, elements, {}, {0})});
    machine.classes.push_back(machine.classes[0]);
    for (auto& [problem, measured] : machine.classes[1].measured) measured.median = 4_ms;
    machine.nodes.push_back(machine.nodes[0]);
    machine.nodes[0].count = machine.nodes[1].count = 1;
    machine.nodes[1].vertices[0].device_class = 1;
    expect_time(step_time(exact(schedule, machine).timeline).value, 4e-3 + 2 * (alpha + S / 2 / B) + S / 2 / C);
}

// Rank 0 computes 1 ms and sends; rank 1 receives and computes 2 ms.
Schedule two_stages(Machine& machine) {
    Schedule schedule = data_schedule(2, {});
    schedule.mesh.axes = {{"pipe", 2}};
    schedule.class_axes = {0};
    const Step send{"send", Stream::send_activations, Send{AxisIndex{0}, 1, 1_MB}, {0}};
    const Step recv{"recv", Stream::receive_activations, Recv{AxisIndex{0}, -1, 1_MB}, {}};
    const auto stage = [&](const char* name, std::vector<Step> steps) {
        Part part = part_for(steps);
        return RankClass{.name = name, .part = std::move(part), .steps = std::move(steps)};
    };
    schedule.classes = {stage("first", {compute_step(machine, "f0", 1_ms), send}),
                        stage("last", {recv, compute_step(machine, "f1", 2_ms, {0})})};
    return schedule;
}

TEST(Exact, SendsBetweenRankClasses) {
    Machine machine = star(2);
    const Schedule schedule = two_stages(machine);
    const Timeline timeline = exact(schedule, machine).timeline;
    expect_time(step_time(timeline).value, 1e-3 + (alpha + 1e6 / B) + 2e-3);
}

TEST(FoldedAgainstExact, SendsBetweenRankClasses) {
    Machine machine = star(2);
    const Timeline timeline = simulate(two_stages(machine), machine, {.mode = Mode::folded}).timeline;
    expect_time(step_time(timeline).value, 1e-3 + (alpha + 1e6 / B) + 2e-3);
}

// A receive that waits for its message is not busy: the event is of the transfer.
TEST(EitherMode, CountsATransferFromWhereBothEndsAreReady) {
    Machine machine = star(2);
    const Schedule schedule = two_stages(machine);
    for (const Mode mode : {Mode::folded, Mode::exact}) {
        for (const Event& event : simulate(schedule, machine, {.mode = mode}).timeline.events) {
            if (event.stream == Stream::compute) continue;
            expect_time(event.start.value, 1e-3);
            expect_time(event.end.value, 1e-3 + alpha + 1e6 / B);
        }
    }
}

TEST(Exact, CallsAMessageThatNobodySendsABug) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP()
        << "SimGrid ends waiting actors by an exception on stacks of its own, which ASan takes for an overflow";
#endif
    Machine machine = star(2);
    Schedule schedule = two_stages(machine);
    schedule.classes[0].steps.pop_back();
    EXPECT_THROW(exact(schedule, machine), std::logic_error);
    EXPECT_GT(all_reduce_time(2, "ring"), 0);  // and the engine still works
}

TEST(Exact, SimulatesOneMachineAfterAnother) {
    const double eight = all_reduce_time(8, "ring");
    const double two = all_reduce_time(2, "ring");
    EXPECT_NEAR(all_reduce_time(8, "ring") / eight, 1, tolerance);
    EXPECT_NEAR(all_reduce_time(2, "ring") / two, 1, tolerance);
    EXPECT_LT(two, eight);
}

TEST(Exact, ReducesAlongOneAxisInEveryGroup) {
    // Two groups of two: ranks 0 and 2, 1 and 3. Each pair's ring is alone on its NICs.
    Schedule schedule = data_schedule(4, {all_reduce_step(0, elements, {})});
    schedule.mesh.axes = {{"data", 2}, {"tensor", 2}};
    expect_time(step_time(exact(schedule, star(4)).timeline).value, 2 * (alpha + S / 2 / B) + S / 2 / C);
}

}  // namespace
}  // namespace rehearse::sim
