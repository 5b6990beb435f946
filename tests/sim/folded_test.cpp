// SPDX-License-Identifier: Apache-2.0
#include "sim/modes/folded.hpp"
#include "core/methods/synchronous.hpp"

#include <gmock/gmock.h>

#include "core/error.hpp"
#include "fixture.hpp"
#include "sim/collective/control.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;
using testing::HasSubstr;

// Counting is plain arithmetic in doubles: sums of a few thousand terms.
constexpr double tolerance = 1e-12;

Prediction folded(const Schedule& schedule, const Machine& machine, Options options = {}) {
    options.mode = Mode::folded;
    return simulate(schedule, machine, options);
}

template <typename Call>
std::string refusal(const Call& call) {
    try {
        call();
    } catch (const InputError& error) {
        return error.what();
    }
    return "nothing";
}

TEST(Folded, PricesALongRingInClosedForm) {
    // 1,000 ranks, 4 MB: 2 * 999 rounds of 2 us + 4 kB / 10 GB/s.
    const std::int64_t n = 1000;
    const Machine machine = one_device_nodes(n, Star{});
    const Schedule schedule = data_schedule(n, {all_reduce_step(0, 1'000'000, {})});
    const Prediction prediction = folded(schedule, machine);
    EXPECT_NEAR(step_time(prediction.timeline).value / (2 * 999 * (2e-6 + 4e3 / 10e9)), 1, tolerance);
    EXPECT_EQ(prediction.flows, 2 * 999 * 1000);
    ASSERT_EQ(prediction.timeline.events.size(), 1U);
    EXPECT_NEAR(prediction.timeline.events[0].bytes.value, 2 * 999 * 4e3, 1e-6);
    EXPECT_EQ(prediction.timeline.ranks, n);
}

TEST(Folded, SharesTaperedLinksAmongAllPairs) {
    // Doubling over eight nodes, two a leaf, 2:1 above: round 1 stays in the leaf, rounds 2 and 3 put two flows of 4 MB
    // on an up-link of 10 GB/s, through three switches: 2 us + 2 * 1 us.
    const Machine machine = one_device_nodes(8, FatTree{{2, 4}, {2}});
    const Schedule schedule = data_schedule(8, {all_reduce_step(0, 1'000'000, parse_algorithm("doubling"))});
    const double expected = (2e-6 + 4e6 / 10e9) + 2 * (4e-6 + 2 * 4e6 / 10e9);
    EXPECT_NEAR(step_time(folded(schedule, machine).timeline).value / expected, 1, tolerance);
}

TEST(Folded, ListsStepsInOrderOnTheirStreams) {
    // compute  a: 0-1 ms | b: 1-3 | c: needs the all-reduce. Two ranks, ring of 4 MB: 2 (2 us + 2 MB / 10 GB/s) = 404
    // us from 1 ms on, so c starts at 3 ms.
    Machine machine = one_device_nodes(2, Star{});
    const Schedule schedule =
        data_schedule(2, {compute_step(machine, "a", 1_ms), all_reduce_step(0, 1'000'000, {}, {0}),
                          compute_step(machine, "b", 2_ms), compute_step(machine, "c", 1_ms, {1})});
    const Prediction prediction = folded(schedule, machine, {.iterations = 2});
    const std::vector<Event>& events = prediction.timeline.events;
    ASSERT_EQ(events.size(), 8U);
    const auto span = [&](std::size_t i) {
        return fmt::format("{} {:.3f}-{:.3f}", events[i].step, events[i].start.value * 1e3, events[i].end.value * 1e3);
    };
    EXPECT_EQ(span(0), "a 0.000-1.000");
    EXPECT_EQ(span(1), "bucket0:allreduce 1.000-1.404");
    EXPECT_EQ(span(2), "b 1.000-3.000");
    EXPECT_EQ(span(3), "c 3.000-4.000");
    EXPECT_EQ(span(4), "a 4.000-5.000");
    EXPECT_EQ(span(7), "c 7.000-8.000");
    EXPECT_EQ(events[4].iteration, 1);
}

TEST(Folded, RunsAtThePaceOfTheSlowestDevice) {
    Machine machine = one_device_nodes(2, Star{});
    const Schedule schedule = data_schedule(2, {compute_step(machine, "a", 1_ms)});
    machine.classes.push_back(machine.classes[0]);
    for (auto& [problem, measured] : machine.classes[1].measured) measured.median = 4_ms;
    machine.nodes.push_back(machine.nodes[0]);
    machine.nodes[0].count = machine.nodes[1].count = 1;
    machine.nodes[1].vertices[0].device_class = 1;
    EXPECT_DOUBLE_EQ(step_time(folded(schedule, machine).timeline).value, 4e-3);
}

TEST(Folded, ScalesEveryPriceByItsOwnError) {
    // Compute of 1 ms with an error of a fifth, communication with one of a tenth, one deviation slower: 1.2 ms,
    // and 1.1 times 2 (2 us + 2 MB / 5 GB/s).
    Machine machine = one_device_nodes(2, Star{});
    const Schedule schedule =
        data_schedule(2, {compute_step(machine, "a", 1_ms), all_reduce_step(0, 1'000'000, {}, {0})});
    for (auto& [problem, measured] : machine.classes[0].measured) measured.error = 0.2;
    machine.across.error = 0.1;
    machine.across.fraction = {0.5, "test"};
    const double reduce = 2 * (2e-6 + 2e6 / 5e9);
    EXPECT_NEAR(step_time(folded(schedule, machine, {.z_score = high}).timeline).value / (1.2e-3 + 1.1 * reduce), 1,
                tolerance);
    EXPECT_NEAR(step_time(folded(schedule, machine, {.z_score = low}).timeline).value / (0.8e-3 + 0.9 * reduce), 1,
                tolerance);
    machine.across.fraction = {1, "test"};  // at neither end of the band faster than the wire: latency alone shrinks
    const double wire = 2 * (0.9 * 2e-6 + 2e6 / 10e9);
    EXPECT_NEAR(step_time(folded(schedule, machine, {.z_score = low}).timeline).value / (0.8e-3 + wire), 1, tolerance);
}

Schedule loading(std::int64_t ranks, const char* tier) {
    return data_schedule(ranks, {{"load", Stream::io, Load{tier, 1_MB}, {}}});
}

TEST(Load, SharesItsTierEvenly) {
    Machine machine = summit_like(2);
    machine.storage = {{"disk", {12.0_GBps, "test"}, true}, {"lustre", {12.0_GBps, "test"}, false}};
    // 6 ranks a node share 12 GB/s: 1 MB at 2 GB/s each; of the whole tier 12 ranks get 1 GB/s each.
    for (const Mode mode : {Mode::folded, Mode::exact}) {
        EXPECT_NEAR(step_time(simulate(loading(12, "disk"), machine, {.mode = mode}).timeline).value, 0.5e-3, 1e-12);
        EXPECT_NEAR(step_time(simulate(loading(12, "lustre"), machine, {.mode = mode}).timeline).value, 1e-3, 1e-12);
    }
    EXPECT_THAT(refusal([&] { folded(loading(12, "lutsre"), machine); }),
                HasSubstr("no storage tier 'lutsre' (did you mean 'lustre'?); it has: disk, lustre"));
}

TEST(Simulate, ChoosesTheModeByTheNumberOfRanksAndMessages) {
    const auto mode = [](std::int64_t ranks, int buckets, Options options = {}) {
        std::vector<Step> steps;
        for (int b = 0; b < buckets; ++b) steps.push_back(all_reduce_step(b, 10'000, {}));
        return simulate(data_schedule(ranks, steps), one_device_nodes(ranks, Star{}), options).mode;
    };
    EXPECT_EQ(mode(8, 1), Mode::exact);
    EXPECT_EQ(mode(65, 1), Mode::folded);
    EXPECT_EQ(mode(8, 1, {.exact_limit = 4}), Mode::folded);
    EXPECT_EQ(mode(64, 7), Mode::folded);  // 7 * 2 * 63 * 64 = 56,448 messages
}

TEST(Simulate, RefusesWhatCannotBe) {
    const Machine machine = summit_like(2);
    const Schedule schedule = data_schedule(13, {all_reduce_step(0, 1000, {})});
    EXPECT_THAT(refusal([&] { folded(schedule, machine); }), HasSubstr("13 ranks need as many devices"));
    EXPECT_THAT(refusal([&] { folded(data_schedule(2, {}), machine, {.iterations = 0}); }), HasSubstr("at least 1"));
    const Algorithm hierarchical = parse_algorithm("hierarchical(ring,ring)");
    EXPECT_THAT(refusal([&] { folded(data_schedule(8, {all_reduce_step(0, 1000, hierarchical)}), machine); }),
                HasSubstr("8 ranks do not fill nodes of 6"));
    // Along the outer axis of 6 x 2 ranks lie 3 of each group on a node; of 4 x 3 they lie 2, then 2: fine. 3 x 4 not.
    Schedule uneven = data_schedule(12, {all_reduce_step(0, 1000, hierarchical)});
    uneven.mesh.axes = {{"data", 3}, {"tensor", 4}};
    EXPECT_THAT(refusal([&] { folded(uneven, machine); }),
                testing::AnyOf(HasSubstr("do not fill"), HasSubstr("unevenly")));
    uneven.mesh.axes = {{"data", 4}, {"tensor", 3}};
    EXPECT_EQ(refusal([&] { folded(uneven, machine); }), "nothing");
}

TEST(Collectives, PriceBucketsSmallerThanTheirGroup) {
    // 3 elements over 8 ranks: rings in which most ranks have nothing to send. Both modes end, and near to each other:
    // the last round of 4 bytes goes 14 hops at most.
    const Machine machine = one_device_nodes(8, Star{});
    const Schedule schedule = data_schedule(8, {all_reduce_step(0, 3, {})});
    const double hop = 2e-6 + 4 / 10e9;
    for (const Mode mode : {Mode::folded, Mode::exact}) {
        const double time = step_time(simulate(schedule, machine, {.mode = mode}).timeline).value;
        EXPECT_GE(time, 7 * hop * (1 - 1e-6));
        EXPECT_LE(time, 14 * hop * (1 + 1e-6));
    }
    EXPECT_EQ(step_time(folded(data_schedule(8, {all_reduce_step(0, 0, {})}), machine).timeline).value, 0);
}

// Two nodes of six GPUs: in some rounds what little there is stays in the nodes, in others some of it leaves them. A
// ring of whole rounds would cross nodes in each.
TEST(Collectives, FollowWhatLittleThereIsAround) {
    const Machine machine = summit_like(2);
    for (const char* algorithm : {"ring", "rings", "torus", "hierarchical(ring,ring)"}) {
        for (const std::int64_t elements : {1, 2, 5, 11, 20}) {
            const Schedule schedule = data_schedule(12, {all_reduce_step(0, elements, parse_algorithm(algorithm))});
            const double exact = step_time(simulate(schedule, machine, {.mode = Mode::exact}).timeline).value;
            EXPECT_NEAR(step_time(folded(schedule, machine).timeline).value / exact, 1, 1e-3)
                << algorithm << ", " << elements << " elements";
        }
    }
}

TEST(Collectives, PriceEveryGroupAlongAnAxisAtOnce) {
    // 2 x 2 ranks on two nodes of two devices and one NIC of 10 GB/s: the groups along the outer axis, {0, 2} and {1,
    // 3}, both cross, so each gets half: 2 rounds of 2 us + 2 * 2 MB / 10 GB/s.
    Machine machine = one_device_nodes(2, Star{});
    machine.nodes[0].vertices.push_back({"dev1", VertexKind::device, 0});
    machine.nodes[0].links.push_back(node_link(1, 2, Bandwidth{1e12}));
    machine.nodes[0].links.push_back(node_link(0, 2, Bandwidth{1e12}));
    Schedule schedule = data_schedule(4, {all_reduce_step(0, 1'000'000, {})});
    schedule.mesh.axes = {{"data", 2}, {"tensor", 2}};
    EXPECT_NEAR(step_time(folded(schedule, machine).timeline).value / (2 * (2e-6 + 2 * 2e6 / 10e9)), 1, tolerance);
}

// Ten tensors of 1,025 ranks, 1 us each to note, messages of 2 us. A star: 1,024 x 10 us, then one message in and ten
// down a binary tree of 1,025. A tree of four: 1 + 4 + 16 + 64 + 256 + 1,024 ranks, so five levels of 4 x 10 us, a
// message up and a message down each.
TEST(Control, IsAStarOrATree) {
    Machine machine = one_device_nodes(1025, Star{});
    EXPECT_NEAR(control_time(1, 1025, 10, machine).value, 10.24e-3 + 11 * 2e-6, 1e-12);
    EXPECT_NEAR(control_time(4, 1025, 10, machine).value, 5 * (40e-6 + 4e-6), 1e-12);
    machine.across.request = {3_us, "slower cores"};
    EXPECT_NEAR(control_time(1, 1025, 10, machine).value, 30.72e-3 + 11 * 2e-6, 1e-12);
    EXPECT_EQ(control_time(0, 1025, 10, machine), Seconds{0});
    EXPECT_EQ(control_time(1, 1, 10, machine), Seconds{0});
}

// Four ranks, a bucket of two tensors: 3 x 2 us, and three messages of 2 us, before a ring of 1 MB: 6 rounds of 2 us +
// 1 MB / 10 GB/s. In both modes.
TEST(Control, ComesBeforeASum) {
    const Machine machine = one_device_nodes(4, Star{});
    Schedule schedule = data_schedule(4, {all_reduce_step(0, 1'000'000, {})});
    const Op dense = MatMul{.m = 1, .n = 3, .k = 4};
    schedule.classes[0].part.network.layers[0] = {"layer", dense, {}, output_shape(dense)};
    schedule.methods.edit<Synchronous>().control = 1;
    const double expected = 6e-6 + 3 * 2e-6 + 6 * (2e-6 + 1e6 / 10e9);
    for (const Mode mode : {Mode::folded, Mode::exact}) {
        EXPECT_NEAR(step_time(simulate(schedule, machine, {.mode = mode}).timeline).value / expected, 1, 1e-6);
    }
}

}  // namespace
}  // namespace rehearse::sim
