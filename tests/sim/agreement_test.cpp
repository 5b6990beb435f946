// SPDX-License-Identifier: Apache-2.0
// Folded mode is held to exact mode: five buckets whose all-reduce overlaps the steps that make them, on machines where
// ranks are alike and on machines where they are not.
#include <gmock/gmock.h>

#include <optional>

#include "core/error.hpp"
#include "fixture.hpp"
#include "meshes.hpp"
#include "sim/modes/exact.hpp"
#include "sim/modes/folded.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

// Backward steps of 0.1 to 0.5 ms, each followed by its bucket: from hidden communication to nothing but communication.
Schedule backward(Machine& machine, std::int64_t ranks, const Algorithm& algorithm, Seconds each) {
    const std::vector<std::int64_t> buckets{6'250'000, 1'000'003, 2'500'000, 10'000, 300'000};
    std::vector<Step> steps{compute_step(machine, "forward", 1_ms + each)};
    std::vector<int> reduced;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
        steps.push_back(compute_step(machine, fmt::format("backward{}", b), each + 0.1e-3_s * (1.0 + double(b))));
        const int computed = static_cast<int>(steps.size()) - 1;
        steps.push_back(all_reduce_step(static_cast<int>(b), buckets[b], algorithm, {computed}));
        reduced.push_back(computed + 1);
    }
    for (std::size_t b = 0; b < buckets.size(); ++b) {
        steps.push_back(compute_step(machine, fmt::format("update{}", b), 0.01e-3_s, {reduced[b]}));
    }
    return data_schedule(ranks, std::move(steps));
}

// Three racks of four servers, one device and two NICs of 1.25 GB/s each, 4:1 between racks.
Machine racks(std::int64_t nodes) {
    Machine machine = one_device_nodes(nodes, FatTree{{4, 16}, {4}});
    machine.nodes[0].vertices.push_back({"nic1", VertexKind::nic, -1});
    machine.nodes[0].links.push_back(node_link(0, 2, 8.0_GBps, 1_us));
    machine.nodes[0].links[0] = node_link(0, 1, 8.0_GBps, 1_us);
    machine.fabric.link.value = 1.25_GBps;
    machine.across = messaging(20_us, 0.9, 5.0_GBps);
    return machine;
}

// Eight GPUs on four PCIe switches on two sockets.
Machine pcie_box() {
    NodeKind kind{.name = "server", .count = 1, .vertices = {}, .links = {}};
    for (int g = 0; g < 8; ++g) kind.vertices.push_back({fmt::format("gpu{}", g), VertexKind::device, 0});
    for (int b = 0; b < 6; ++b) kind.vertices.push_back({fmt::format("bridge{}", b), VertexKind::bridge, -1});
    for (int g = 0; g < 8; ++g) kind.links.push_back(node_link(g, 8 + g / 2, 12.0_GBps, 1_us));
    for (int s = 0; s < 4; ++s) kind.links.push_back(node_link(8 + s, 12 + s / 2, 12.0_GBps, 1_us));
    kind.links.push_back(node_link(12, 13, 19.0_GBps, 1_us));
    Machine machine = one_device_nodes(1, Star{});
    machine.nodes = {kind};
    machine.inside = messaging(8_us, 0.9, 100.0_GBps);
    return machine;
}

struct Both {
    double exact = 0, folded = 0, counted = 0;  // folded by counting alone, as large machines are priced
};

// nullopt where the algorithm cannot serve so many ranks; then both modes must say so.
std::optional<Both> step_times(const Machine& machine, const Schedule& schedule) {
    const Wiring wiring{machine};
    const Steps steps{schedule, wiring, nominal};
    try {
        const double exact = step_time(simulate_exact(steps, wiring, 1).timeline).value;
        const double folded = step_time(simulate_folded(steps, wiring, 1).timeline).value;
        return Both{exact, folded, step_time(simulate_folded(steps, wiring, 1, 0).timeline).value};
    } catch (const InputError&) {
        EXPECT_THROW(simulate_folded(steps, wiring, 1), InputError);
        return std::nullopt;
    }
}

class EveryAllReduce : public testing::TestWithParam<const char*> {
protected:
    static void expect_agreement(Machine machine, std::int64_t ranks, double within, double counted_within) {
        for (const Seconds each : {0_ms, 5_ms}) {
            const Schedule schedule = backward(machine, ranks, parse_algorithm(GetParam()), each);
            const auto times = step_times(machine, schedule);
            if (!times) return;
            SCOPED_TRACE(fmt::format("{}, {} ranks on {}, {}", GetParam(), ranks, machine.name, to_string(each)));
            EXPECT_NEAR(times->folded / times->exact, 1, within);
            EXPECT_NEAR(times->counted / times->exact, 1, counted_within);
        }
    }
};

// The band of counting alone is what was measured, not derived: where ranks fall out of step on shared NICs, doubling
// and halving without regard to nodes are worst.
TEST_P(EveryAllReduce, AgreesOnNodesOfSixGpus) {
    for (const std::int64_t ranks : {4, 6, 8, 12, 16, 24, 32, 48, 64}) {
        expect_agreement(summit_like((ranks + 5) / 6), ranks, 0.001, 0.06);
    }
}

TEST_P(EveryAllReduce, AgreesOnRacks) {
    for (const std::int64_t ranks : {4, 6, 8, 12, 24, 48}) expect_agreement(racks(ranks), ranks, 0.001, 0.06);
}

TEST_P(EveryAllReduce, AgreesOnPcie) {
    for (const std::int64_t ranks : {4, 6, 8}) expect_agreement(pcie_box(), ranks, 0.001, 0.06);
}

// Several rings at once inside nodes, whose messages are of unequal sizes in a cube mesh.
TEST_P(EveryAllReduce, AgreesOnMeshes) {
    for (const std::int64_t ranks : {4, 8, 16, 32}) {
        expect_agreement(mesh_of_links((ranks + 3) / 4, 4, all_pairs(4, 100)), ranks, 0.001, 0.06);
        expect_agreement(mesh_of_links((ranks + 7) / 8, 8, cube_mesh()), ranks, 0.001, 0.06);
    }
}

// Alike ranks stay in step: counting alone is exact, whatever the algorithm, but for taking sizes at their mean: an
// element more in each of 30 rounds of 5 buckets is 5 * 30 * 4 B / 10 GB/s = 60 ns in more than 8 ms.
TEST_P(EveryAllReduce, IsCountedExactlyWhereNothingContends) {
    for (const std::int64_t ranks : {4, 8, 16}) {
        expect_agreement(one_device_nodes(ranks, Star{}), ranks, 1e-5, 1e-5);
    }
}

// A rank's own NIC carries at least 2 (N - 1) / N of every buffer on average over the ranks (Patarasu and Yuan 2009).
TEST_P(EveryAllReduce, NeverBeatsTheWire) {
    for (const std::int64_t ranks : {2, 4, 6, 12, 16}) {
        const Machine machine = one_device_nodes(ranks, FatTree{{4, 4}, {2}});
        const double bytes = 4e6 * 2 * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
        const Schedule schedule = data_schedule(ranks, {all_reduce_step(0, 1'000'000, parse_algorithm(GetParam()))});
        const auto times = step_times(machine, schedule);
        EXPECT_GE(times->exact, bytes / 10e9);
        EXPECT_GE(times->folded, bytes / 10e9);
        EXPECT_GE(times->counted, bytes / 10e9);
    }
}

INSTANTIATE_TEST_SUITE_P(All, EveryAllReduce,
                         testing::Values("ring", "doubling", "halving", "tree", "hierarchical(ring,ring)",
                                         "hierarchical(ring,halving)", "hierarchical(ring,doubling)",
                                         "hierarchical(ring,tree)", "hierarchical(halving,halving)",
                                         "hierarchical(halving,ring)", "hierarchical(tree,ring)",
                                         "hierarchical(tree,tree)"));

}  // namespace
}  // namespace rehearse::sim
