// SPDX-License-Identifier: Apache-2.0
// Counting is held to SimGrid's solver, which shares links max-min and knows nothing of rounds.
#include "sim/collective/rounds.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "fixture.hpp"
#include "sim/collective/patterns.hpp"
#include "simgrid_flows.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

std::vector<Flow> shift(std::int64_t devices, std::int64_t by) {
    std::vector<Flow> flows;
    for (std::int64_t d = 0; d < devices; ++d) flows.push_back({d, (d + by) % devices});
    return flows;
}

std::vector<Flow> permutation(std::int64_t devices, unsigned seed) {
    std::vector<std::int64_t> to(static_cast<std::size_t>(devices));
    std::iota(to.begin(), to.end(), 0);
    std::mt19937 random{seed};
    for (std::size_t i = to.size() - 1; i > 0; --i) std::swap(to[i], to[random() % (i + 1)]);
    std::vector<Flow> flows;
    for (std::int64_t d = 0; d < devices; ++d) {
        if (to[static_cast<std::size_t>(d)] != d) flows.push_back({d, to[static_cast<std::size_t>(d)]});
    }
    return flows;
}

TEST(Round, OfOneMessageTakesLatencyAndBytesOverTheSlowestLink) {
    const Machine machine = one_device_nodes(2, Star{});
    const Wiring wiring{machine};
    const std::vector<Flow> flows{{0, 1}};
    // 2 us + 1 MB / 10 GB/s = 102 us
    EXPECT_DOUBLE_EQ(round_time(RoundCounter{wiring}.count(flows).flows, 1_MB).value, 102e-6);
}

TEST(Round, LastsAsLongAsItsBusiestLink) {
    // Three nodes send to node 0, whose NIC takes a third of each: 2 us + 3 MB / 10 GB/s. Node 4 sends to 5 at full
    // rate.
    const Machine machine = one_device_nodes(6, Star{});
    const Wiring wiring{machine};
    const std::vector<Flow> flows{{1, 0}, {2, 0}, {3, 0}, {4, 5}};
    const RoundCosts costs = RoundCounter{wiring}.count(flows);
    EXPECT_DOUBLE_EQ(round_time(costs.flows, 1_MB).value, 302e-6);
    EXPECT_DOUBLE_EQ(costs.flows[3].shared.value, 1 / 10e9);
    EXPECT_DOUBLE_EQ(costs.flows[0].alone.value, 1 / 10e9);
}

TEST(Round, MeetsOnTheLinkThatHoldsItsFlowsUp) {
    const Machine machine = one_device_nodes(6, Star{});
    const Wiring wiring{machine};
    const std::vector<Flow> flows{{1, 0}, {2, 0}, {3, 0}};
    const RoundCosts costs = RoundCounter{wiring}.count(flows);
    ASSERT_EQ(costs.meetings.size(), 1U);
    EXPECT_EQ(wiring.link(costs.meetings[0].link).name, "node0:nic0:down");
    EXPECT_EQ(costs.members, (std::vector<std::int32_t>{0, 1, 2}));
}

TEST(Round, IsCountedAfreshEachTime) {
    const Machine machine = one_device_nodes(4, Star{});
    const Wiring wiring{machine};
    RoundCounter counter{wiring};
    const std::vector<Flow> flows{{1, 0}, {2, 0}};
    const double once = round_time(counter.count(flows).flows, 1_MB).value;
    EXPECT_EQ(round_time(counter.count(flows).flows, 1_MB).value, once);
}

struct Case {
    std::string name;
    Topology topology;
    std::int64_t nodes;
    bool six_gpus;  // a node, as in Summit; else one device
};
void PrintTo(const Case& which, std::ostream* out) { *out << which.name; }

class AnyMachine : public testing::TestWithParam<Case> {
protected:
    static Machine machine() {
        const Case& which = GetParam();
        Machine machine = which.six_gpus ? summit_like(which.nodes) : one_device_nodes(which.nodes, which.topology);
        machine.fabric.topology = which.topology;
        return machine;
    }
    static std::vector<std::vector<Flow>> rounds(std::int64_t devices) {
        return {shift(devices, 1), shift(devices, devices / 2), shift(devices, 7), permutation(devices, 1),
                permutation(devices, 2)};
    }
};

// SimGrid rounds at 1e-12 s and relative 1e-12 in its solver; rounds last 1e-4 s and more.
constexpr double tolerance = 1e-9;

TEST_P(AnyMachine, CountsWhatSimGridsSolverFinds) {
    const Machine here = machine();
    const Wiring wiring{here};
    for (const std::vector<Flow>& flows : rounds(device_count(here))) {
        const std::vector<Bytes> bytes(flows.size(), 1_MB);
        const std::vector<Seconds> solved = solve(wiring, flows, bytes);
        const std::vector<FlowCost> counted = RoundCounter{wiring}.count(flows).flows;
        double busiest = 0;
        for (std::size_t i = 0; i < flows.size(); ++i) {
            const double bound = (counted[i].shared * 1_MB).value;
            EXPECT_LE(solved[i].value, bound * (1 + tolerance));  // each flow: an upper bound
            EXPECT_GE(solved[i].value, (counted[i].alone * 1_MB).value * (1 - tolerance));
            busiest = std::max(busiest, bound);
        }
        EXPECT_NEAR(std::ranges::max(solved).value / busiest, 1, tolerance);  // the round: exact
    }
}

TEST_P(AnyMachine, MessagesOfUnequalSizesLeaveWhenSimGridSaysSo) {
    const Machine here = machine();
    const Wiring wiring{here};
    for (const std::vector<Flow>& flows : rounds(device_count(here))) {
        std::vector<Bytes> bytes;
        for (std::size_t i = 0; i < flows.size(); ++i) bytes.push_back(1_MB * static_cast<double>(1 + i * i % 7));
        const Bytes mean = std::accumulate(bytes.begin(), bytes.end(), Bytes{}) / static_cast<double>(bytes.size());
        const std::vector<Seconds> solved = solve(wiring, flows, bytes);
        const auto pattern = Patterns{wiring}.of_unequal(flows, bytes);
        for (std::size_t i = 0; i < flows.size(); ++i) {
            EXPECT_NEAR((pattern->costs[i].alone * mean) / solved[i], 1, tolerance);
            EXPECT_NEAR(pattern->sizes[i], bytes[i] / mean, tolerance);
        }
    }
}

TEST_P(AnyMachine, NeverBeatsTheWire) {
    const Machine here = machine();
    const Wiring wiring{here};
    for (const std::vector<Flow>& flows : rounds(device_count(here))) {
        std::map<std::string, double> bytes_on;
        for (const Flow& flow : flows) {
            std::vector<Hop> hops;
            wiring.route(flow.from, flow.to, hops);
            for (const Hop& hop : hops) bytes_on[wiring.link(hop.link).name] += 1e6;
        }
        const double time = round_time(RoundCounter{wiring}.count(flows).flows, 1_MB).value;
        for (std::int64_t id = 0; id < wiring.link_count(); ++id) {
            const Link link = wiring.link(id);
            EXPECT_LE(bytes_on[link.name] / link.bandwidth.value, time) << link.name;
        }
    }
}

Dragonfly dragonfly() {
    return {.groups = 4, .routers = 3, .nodes = 4, .local = {5.0_GBps, ""}, .global = {12.0_GBps, ""}};
}

INSTANTIATE_TEST_SUITE_P(All, AnyMachine,
                         testing::Values(Case{"Star", Star{}, 48, false},
                                         Case{"FullFatTree", FatTree{{8, 6}, {1}}, 48, false},
                                         Case{"TaperedFatTree", FatTree{{4, 4, 3}, {2, 2}}, 48, false},
                                         Case{"Dragonfly", dragonfly(), 48, false},
                                         Case{"Torus", Torus{{4, 4, 3}, {10.0_GBps, ""}}, 48, false},
                                         Case{"SummitNodesFullTree", FatTree{{6, 6}, {1}}, 30, true},
                                         Case{"SummitNodesTaperedTree", FatTree{{6, 6}, {2}}, 30, true}),
                         [](const auto& which) { return which.param.name; });

TEST(Solver, PricesMessagesOfUnequalSizes) {
    // 1 MB and 3 MB into one NIC of 10 GB/s: half each until the short one has left after 2 MB in all, then all.
    const Machine machine = one_device_nodes(3, Star{});
    const Wiring wiring{machine};
    const std::vector<Flow> flows{{1, 0}, {2, 0}};
    const std::vector<Bytes> bytes{1_MB, 3_MB};
    const std::vector<Seconds> ends = solve(wiring, flows, bytes);
    EXPECT_NEAR(ends[0].value, 200e-6, 200e-6 * tolerance);
    EXPECT_NEAR(ends[1].value, 400e-6, 400e-6 * tolerance);
}

TEST(Pattern, OfUnequalMessagesHoldsWhenEachEnds) {
    // The same two: 2 us of latency after 200 and 400 us; combining 8 GB/s: 125 and 375 us, per byte of the mean 2 MB.
    Machine machine = one_device_nodes(3, Star{});
    machine.across.reduce.value = 8.0_GBps;
    const Wiring wiring{machine};
    const std::vector<Flow> flows{{1, 0}, {2, 0}};
    const std::vector<Bytes> bytes{1_MB, 3_MB};
    const auto pattern = Patterns{wiring}.of_unequal(flows, bytes);
    ASSERT_EQ(pattern->costs.size(), 2U);
    EXPECT_DOUBLE_EQ(pattern->costs[0].latency.value, 2e-6);
    EXPECT_NEAR((pattern->costs[0].alone * 2_MB).value, 200e-6, 200e-6 * tolerance);
    EXPECT_NEAR((pattern->costs[1].alone * 2_MB).value, 400e-6, 400e-6 * tolerance);
    EXPECT_DOUBLE_EQ((pattern->costs[0].combine * 2_MB).value, 125e-6);
    EXPECT_DOUBLE_EQ((pattern->costs[1].combine * 2_MB).value, 375e-6);
}

TEST(Pattern, IsCountedOnceForTheSameMessages) {
    const Machine machine = one_device_nodes(8, Star{});
    const Wiring wiring{machine};
    Patterns patterns{wiring};
    const auto once = patterns.of_equal(shift(8, 1));
    EXPECT_EQ(patterns.of_equal(shift(8, 1)), once);
    EXPECT_NE(patterns.of_equal(shift(8, 2)), once);
    EXPECT_EQ(once->costs.size(), 1U);
}

}  // namespace
}  // namespace rehearse::sim
