// SPDX-License-Identifier: Apache-2.0
// What links carried: bytes are conserved, rates never exceed capacities, arrows join what belongs together.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "fixture.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

Timeline traced(const Schedule& schedule, const Machine& machine, Mode mode, int iterations = 1) {
    return simulate(schedule, machine, {.mode = mode, .iterations = iterations, .links = true}).timeline;
}

const LinkUse& link_named(const Timeline& timeline, const std::string& name) {
    const auto found = std::ranges::find(timeline.links, name, &LinkUse::name);
    if (found == timeline.links.end()) throw std::out_of_range(name);
    return *found;
}

const Counter& counter_named(const Timeline& timeline, const std::string& name) {
    const auto found = std::ranges::find(timeline.counters, name, &Counter::name);
    if (found == timeline.counters.end()) throw std::out_of_range(name);
    return *found;
}

double integral(const Counter& counter) {
    double sum = 0;
    for (std::size_t i = 0; i + 1 < counter.points.size(); ++i) {
        sum += counter.points[i].second * (counter.points[i + 1].first - counter.points[i].first).value;
    }
    return sum;
}

// Four ranks, ring of 40 MB: each sends 6 rounds of 10 MB over its own NIC of 10 GB/s: 60 MB in 6 (1 ms + 2 us).
TEST(Traffic, OfARingIsCountedByHandInBothModes) {
    const Machine machine = one_device_nodes(4, Star{});
    const Schedule schedule = data_schedule(4, {all_reduce_step(0, 10'000'000, {})});
    for (const Mode mode : {Mode::exact, Mode::folded}) {
        SCOPED_TRACE(to_string(mode));
        const Timeline timeline = traced(schedule, machine, mode, 2);
        const LinkUse& nics = link_named(timeline, "nic:up");
        EXPECT_EQ(nics.links, 4);
        EXPECT_EQ(nics.capacity, 10.0_GBps);
        EXPECT_DOUBLE_EQ(nics.bytes.value, 2 * 4 * 60e6);
        EXPECT_DOUBLE_EQ(nics.most.value, 2 * 60e6);
        EXPECT_DOUBLE_EQ(link_named(timeline, "node2:nic0:down").bytes.value, 2 * 60e6);
        EXPECT_NEAR(utilisation(nics, length(timeline)), 1 / 1.002, 1e-6);
        EXPECT_NEAR(integral(counter_named(timeline, "mean of links nic:up")), 2 * 60e6, 1);
        EXPECT_THROW(link_named(timeline, "switch0:up"), std::out_of_range);  // a star has no links of its own
    }
    const Timeline exact = traced(schedule, machine, Mode::exact);
    EXPECT_DOUBLE_EQ(counter_named(exact, "link node1:nic0:up").points.at(0).second, 10e9);
    EXPECT_EQ(counter_named(exact, "link node1:nic0:up").points.size(), 12U);  // six times on and off
}

// Two ranks of node 0 send 30 MB and 10 MB to node 1: they share its NIC until the smaller has gone, at 2 ms; then the
// other has it alone, until 4 ms. The NIC is full all the time, and the sender's own link changes its rate.
TEST(Traffic, FollowsRatesThatChange) {
    Machine machine = one_device_nodes(2, Star{});
    NodeKind& kind = machine.nodes[0];
    kind.vertices = {{"gpu0", VertexKind::device, 0}, {"gpu1", VertexKind::device, 0}, {"nic0", VertexKind::nic, -1}};
    kind.vertices[0].group = kind.vertices[1].group = "gpu";
    kind.links = {node_link(0, 2, 100.0_GBps), node_link(1, 2, 100.0_GBps), node_link(0, 1, 100.0_GBps)};
    Schedule schedule = data_schedule(4, {});
    schedule.mesh.axes = {{"pipe", 4}};
    schedule.class_axes = {0};
    const auto send = [](Bytes bytes) { return Step{"send", Stream::send_activations, Send{0, 2, bytes}, {}}; };
    const auto recv = [](Bytes bytes) { return Step{"recv", Stream::receive_activations, Recv{0, -2, bytes}, {}}; };
    schedule.classes.clear();
    for (const Step& step : {send(30_MB), send(10_MB), recv(30_MB), recv(10_MB)}) {
        schedule.classes.push_back({.name = step.name, .part = part_for({}), .steps = {step}});
    }
    const Timeline timeline = traced(schedule, machine, Mode::exact);
    const Counter& nic = counter_named(timeline, "link node0:nic0:up");
    ASSERT_EQ(nic.points.size(), 2U);
    EXPECT_NEAR(nic.points[0].second, 10e9, 1);
    EXPECT_NEAR(nic.points[1].first.value, 4e-3, 1e-9);
    const Counter& own = counter_named(timeline, "link node0:link0:gpu0>nic0");
    ASSERT_EQ(own.points.size(), 3U);
    EXPECT_NEAR(own.points[0].second, 5e9, 1);
    EXPECT_NEAR(own.points[1].first.value, 2e-3, 1e-9);
    EXPECT_NEAR(own.points[1].second, 10e9, 1);
    EXPECT_EQ(link_named(timeline, "gpu>nic0").links, 2);
    // Each message has a number of its own, which its two ends share.
    std::map<std::int64_t, std::vector<const Event*>> flows;
    for (const Event& event : timeline.events) flows[event.flow].push_back(&event);
    ASSERT_EQ(flows.size(), 2U);
    for (const auto& [flow, ends] : flows) {
        EXPECT_NE(flow, 0);
        ASSERT_EQ(ends.size(), 2U);
        EXPECT_EQ(ends[0]->bytes, ends[1]->bytes);
        EXPECT_NE(ends[0]->step, ends[1]->step);
    }
}

// Whatever the algorithm and the fabric: what leaves NICs enters NICs, it is what the events say, no counter is ever
// above its capacity, and both modes count the same bytes on every kind of link.
TEST(Traffic, IsConservedAndKeepsToTheCapacities) {
    for (const char* algorithm : {"ring", "halving", "doubling", "hierarchical(ring,halving)"}) {
        const Machine machine = summit_like(4);
        const Schedule schedule = data_schedule(24, {all_reduce_step(0, 2'400'000, parse_algorithm(algorithm)),
                                                     all_reduce_step(1, 240'000, parse_algorithm(algorithm))});
        const Timeline exact = traced(schedule, machine, Mode::exact);
        const Timeline folded = traced(schedule, machine, Mode::folded);
        EXPECT_NEAR(link_named(exact, "nic:up").bytes.value, link_named(exact, "nic:down").bytes.value, 1) << algorithm;
        std::map<std::string, Bandwidth> capacities;
        for (const LinkUse& use : exact.links) {
            capacities["link " + use.name] = capacities["mean of links " + use.kind] = use.capacity;
            if (use.name != use.kind) continue;
            EXPECT_NEAR(link_named(folded, use.name).bytes.value / use.bytes.value, 1, 1e-6) << algorithm << use.name;
            EXPECT_EQ(link_named(folded, use.name).links, use.links) << algorithm << use.name;
        }
        for (const Counter& counter : exact.counters) {
            for (const auto& [time, value] : counter.points) {
                EXPECT_LE(value, capacities.at(counter.name).value * (1 + 1e-6)) << algorithm << counter.name;
            }
        }
        // All ranks of a collective have its number.
        std::map<std::int64_t, int> members;
        for (const Event& event : exact.events) ++members[event.flow];
        EXPECT_EQ(members, (std::map<std::int64_t, int>{{1, 24}, {2, 24}})) << algorithm;
    }
}

TEST(Traffic, IsNotCountedUnlessAskedFor) {
    const Timeline timeline =
        simulate(data_schedule(4, {all_reduce_step(0, 1000, {})}), one_device_nodes(4, Star{}), {}).timeline;
    EXPECT_TRUE(timeline.links.empty());
    EXPECT_TRUE(timeline.counters.empty());
}

}  // namespace
}  // namespace rehearse::sim
