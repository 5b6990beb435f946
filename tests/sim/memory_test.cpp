// SPDX-License-Identifier: Apache-2.0
// Simulations that follow each other in one process leave nothing behind, and find nothing of those before them.
#include <gtest/gtest.h>
#include <malloc.h>

#include <vector>

#include "fabrics.hpp"
#include "fixture.hpp"
#include "sim/simulate.hpp"
#include "simgrid_flows.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

/// Bytes that are allocated and not freed.
std::size_t in_use() {
    const struct mallinfo2 all = mallinfo2();
    return all.uordblks + all.hblkhd;
}

constexpr const char* not_counted =
    "the C library does not count this build's memory: a sanitizer or another allocator has it";

bool is_counted() {
    const std::size_t before = in_use();
    const std::vector<char> some(10'000, 'x');
    return in_use() >= before + some.size();
}

// Chunks that the C library has kept for its next calls count as allocated: some 12 kB come to be so in each test. A
// constraint of SimGrid's takes 256 bytes, one a host and one a link: of so many simulations 250 kB and more.
constexpr std::size_t kept = 50'000;

double ring(std::int64_t ranks, const Machine& machine) {
    const Schedule schedule = data_schedule(ranks, {all_reduce_step(0, 240'000, parse_algorithm("ring"))});
    return step_time(simulate(schedule, machine, {.mode = Mode::exact}).timeline).value;
}

Machine star(std::int64_t nodes, Bandwidth bandwidth) {
    Machine machine = one_device_nodes(nodes, Star{});
    machine.fabric.link.value = bandwidth;
    return machine;
}

std::vector<double> of_different_machines() {
    return {ring(6, star(6, 10.0_GBps)), ring(8, four_device_nodes(2)), ring(12, summit_like(2)),
            ring(2, star(2, 3.0_GBps))};
}

TEST(Memory, StaysWhereMachinesAlternate) {
    if (!is_counted()) GTEST_SKIP() << not_counted;
    for (int i = 0; i < 3; ++i) of_different_machines();
    const std::size_t before = in_use();
    for (int i = 0; i < 20; ++i) of_different_machines();
    EXPECT_LT(in_use(), before + kept);
}

// No two links of these machines carry as much as each other.
TEST(Memory, StaysWhereEachMachineIsAnother) {
    if (!is_counted()) GTEST_SKIP() << not_counted;
    const auto at = [](int i) { return Bandwidth{10e9 + 1e6 * i}; };
    for (int i = 0; i < 3; ++i) ring(6, star(6, at(i)));
    const std::size_t before = in_use();
    for (int i = 3; i < 100; ++i) {
        const Machine machine = star(6, at(i));
        // Ten rounds of messages of 2 us and a sixth of 960 kB. SimGrid's clock has gone on: to 1e-12 s.
        ASSERT_NEAR(ring(6, machine), 10 * (2e-6 + 160e3 / at(i).value), 1e-11) << i;
    }
    EXPECT_LT(in_use(), before + kept);
}

TEST(Memory, StaysWhereRanksShareCores) {
    if (!is_counted()) GTEST_SKIP() << not_counted;
    const Machine machine = star(2, 10.0_GBps);
    const Wiring wiring{machine};
    const auto work = [&](std::int64_t cores) {
        const std::vector<std::int64_t> pools{cores, 4};
        Simulation simulation{wiring, 2, pools};
        Seconds ended;
        simulation.start(0, [&] {
            const std::vector<std::pair<int, Seconds>> works(6, {0, Seconds{1}});
            simulation.compute(works);
            ended = simulation.now();
        });
        simulation.run();
        return ended.value;
    };
    const auto of_each = [&] {
        for (const std::int64_t cores : {1, 2, 3, 4}) {
            ASSERT_NEAR(work(cores), 6.0 / static_cast<double>(cores), 1e-9) << cores;  // six for a second on so many
        }
    };
    for (int i = 0; i < 3; ++i) of_each();
    const std::size_t before = in_use();
    for (int i = 0; i < 150; ++i) of_each();
    EXPECT_LT(in_use(), before + kept);
}

TEST(Memory, StaysWhereOneSimulationIsInsideAnother) {
    if (!is_counted()) GTEST_SKIP() << not_counted;
    const Machine machine = star(4, 10.0_GBps);
    const Wiring wiring{machine};
    const auto both = [&] {
        const Simulation outer{wiring, 4};
        const std::vector<Flow> flows{{0, 1}, {2, 1}};
        const std::vector<Bytes> bytes{10_MB, 10_MB};
        for (const Seconds end : solve(wiring, flows, bytes)) EXPECT_NEAR(end.value, 2e-3, 1e-9);  // share the way in
    };
    for (int i = 0; i < 3; ++i) both();
    const std::size_t before = in_use();
    for (int i = 0; i < 200; ++i) both();
    EXPECT_LT(in_use(), before + kept);
}

// Where pieces of messages choose their ways, too: what one simulation has under way is nothing to the next.
TEST(Memory, OfASimulationIsNotFoundByTheNext) {
    const Machine groups = plain(40, adaptive(5, 2, 4, 1000.0_GBps, 10.0_GBps));
    std::vector<Flow> flows;
    for (std::int64_t node = 0; node < 8; ++node) flows.push_back({node, 8 + node});
    const auto all = [&] {
        std::vector<double> times = of_different_machines();
        times.push_back(followed(groups, flows));
        return times;
    };
    const std::vector<double> first = all(), later = all();
    // SimGrid's clock has gone on, by seconds: what it says is rounded to 1e-15 s of them.
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i], later[i], 1e-9 * first[i]) << i;
}

}  // namespace
}  // namespace rehearse::sim
