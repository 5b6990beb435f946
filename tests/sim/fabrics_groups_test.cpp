// SPDX-License-Identifier: Apache-2.0
// All groups of an axis at once, and both axes of a mesh, on each fabric: folded mode against exact mode.
#include "fabrics.hpp"

#include <gmock/gmock.h>

#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

using namespace test;

// Groups of one axis are all under way at once: their rings share what lies between groups of nodes.
Topology fabric(const std::string& name) {
    if (name == "tapered_tree") return FatTree{{8, 4}, {4, 1}};
    if (name == "static_tree") return FatTree{{8, 4}, {1, 1}, {8, 1}};
    if (name == "dragonfly") return adaptive(4, 2, 2, 20.0_GBps, 10.0_GBps);
    if (name == "groups_of_one_router") return adaptive(8, 1, 2, {}, 4.0_GBps);
    if (name == "dragonfly_plus") return plus(4, 2, 2, 10.0_GBps, 10.0_GBps, FabricRouting::adaptive);
    return plus(4, 2, 4, 40.0_GBps, 10.0_GBps, FabricRouting::minimal);
}

class ManyGroups : public testing::TestWithParam<const char*> {};

TEST_P(ManyGroups, FoldedIsExact) {
    const Topology topology = fabric(GetParam());
    const auto* fly = std::get_if<DragonflyPlus>(&topology);
    const bool fixed =
        std::holds_alternative<FatTree>(topology) || (fly != nullptr && fly->routing == FabricRouting::minimal);
    const std::int64_t nodes = fixed ? 32 : 16;
    const Machine machine = one_device_nodes(nodes, topology);
    for (const char* algorithm : {"ring", "halving"}) {
        for (const std::int64_t outer : {2, 4}) {
            const Mesh mesh{{{"data", outer}, {"tensor", nodes / outer}}};
            for (const int axis : {0, 1}) {
                const Call call{.axis = axis, .elements = 1'600'000, .algorithm = parse_algorithm(algorithm)};
                const double exact = collective_time(call, mesh, machine, Mode::exact).value;
                const double folded = collective_time(call, mesh, machine, Mode::folded).value;
                EXPECT_NEAR(folded / exact, 1, fixed ? 0.005 : 0.2)
                    << algorithm << " of " << size_of(mesh, axis) << " ranks along axis " << axis;
            }
        }
    }
}

// Sums along both axes of a mesh at the same time: all groups of the one and all of the other.
Schedule two_axes(std::int64_t outer, std::int64_t inner) {
    Schedule schedule;
    schedule.plan = fmt::format("data={},tensor={}", outer, inner);
    schedule.mesh.axes = {{"data", outer}, {"tensor", inner}};
    schedule.network.name = "by-hand";
    std::vector<Step> steps;
    for (const int axis : {0, 1}) {
        Step step = all_reduce_step(axis, 1'600'000, parse_algorithm("ring"));
        std::get<Communicate>(step.action).axis = AxisIndex{axis};
        step.stream = communicator_stream(schedule.mesh, axis);
        steps.push_back(std::move(step));
    }
    Part part = part_for(steps);
    schedule.classes.push_back({.name = "all", .part = std::move(part), .steps = std::move(steps)});
    return schedule;
}

// A fixed way is shared alike in both modes. Adaptively, pieces see both collectives; the fluid sees each by itself and
// what they share of cards, routers and groups.
TEST_P(ManyGroups, OfTwoAxesAtOnceAreExact) {
    const Topology topology = fabric(GetParam());
    const auto* fly = std::get_if<DragonflyPlus>(&topology);
    const bool fixed =
        std::holds_alternative<FatTree>(topology) || (fly != nullptr && fly->routing == FabricRouting::minimal);
    const Machine machine = one_device_nodes(16, topology);
    for (const std::int64_t outer : {2, 4, 8}) {
        const Schedule schedule = two_axes(outer, 16 / outer);
        const double exact = step_time(simulate(schedule, machine, {.mode = Mode::exact}).timeline).value;
        const double folded = step_time(simulate(schedule, machine, {.mode = Mode::folded}).timeline).value;
        EXPECT_NEAR(folded / exact, 1, fixed ? 0.01 : 0.2) << outer << " x " << 16 / outer;
    }
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ManyGroups,
                         testing::Values("tapered_tree", "static_tree", "dragonfly", "groups_of_one_router",
                                         "dragonfly_plus", "minimal_dragonfly_plus"),
                         [](const auto& test) { return std::string{test.param}; });

}  // namespace
}  // namespace rehearse::sim
