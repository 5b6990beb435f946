// SPDX-License-Identifier: Apache-2.0
// Names of vertices are for people: whatever they are, a prediction is the same to the last bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "models/models.hpp"
#include "schedule/input.hpp"
#include "schedule/plan.hpp"
#include "sim/host/loader.hpp"
#include "sim/simulate.hpp"

namespace rehearse::sim {
namespace {

std::vector<std::string> shipped() {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator{REHEARSE_SOURCE_DIR "/models/machines"}) {
        if (file.path().extension() == ".toml") names.push_back(file.path().stem().string());
    }
    std::ranges::sort(names);
    return names;
}

/// Each vertex takes the name of another kind of thing: a bridge that of a GPU, a GPU that of a processor.
Machine renamed(Machine machine) {
    for (NodeKind& node : machine.nodes) {
        int number = 0;
        for (Vertex& vertex : node.vertices) {
            const char* name = vertex.kind == VertexKind::device ? "cpu"
                               : vertex.kind == VertexKind::nic  ? "nv"
                                                                 : "gpu";
            vertex.name = name + std::to_string(1000 - number++);
        }
    }
    return machine;
}

Timeline timeline(Machine machine, Mode mode) {
    const std::int64_t devices = std::min<std::int64_t>(device_count(machine), 2 * devices_per_node(machine.nodes[0]));
    Schedule schedule = schedule::make_schedule(models::load_network("lenet5"), machine, schedule::parse_plan("data"),
                                                {.devices = devices, .batch_per_device = 32});
    const Loader loader;
    schedule::add_inline_input(schedule, {"", Bytes{}}, loader_tiers(machine, loader, devices));
    machine = with_loader(std::move(machine), loader, schedule);
    return simulate(schedule, machine, {.mode = mode, .links = true}).timeline;
}

TEST(Names, OfVerticesChangeNoPrediction) {
    for (const std::string& name : shipped()) {
        const Machine machine = models::load_machine(name);
        for (const Mode mode : {Mode::folded, Mode::exact}) {
            SCOPED_TRACE(name);
            const Timeline expected = timeline(machine, mode), found = timeline(renamed(machine), mode);
            ASSERT_EQ(found.events.size(), expected.events.size());
            for (std::size_t i = 0; i < expected.events.size(); ++i) {
                // SimGrid's clock goes on from one simulation to the next, so that differences are rounded otherwise.
                const double close = mode == Mode::exact ? 1e-9 : 0;
                EXPECT_EQ(found.events[i].step, expected.events[i].step);
                EXPECT_NEAR(found.events[i].start.value, expected.events[i].start.value, close);
                EXPECT_NEAR(found.events[i].end.value, expected.events[i].end.value, close);
            }
            ASSERT_EQ(found.links.size(), expected.links.size());
            for (std::size_t i = 0; i < expected.links.size(); ++i) {
                EXPECT_EQ(found.links[i].kind, expected.links[i].kind);
                EXPECT_EQ(found.links[i].links, expected.links[i].links);
                EXPECT_EQ(found.links[i].bytes, expected.links[i].bytes);
            }
        }
    }
}

/// As a user would: in the file.
TEST(Names, InAFileMayBeAnything) {
    const std::string text = models::to_toml(renamed(models::load_machine("summit")));
    const Machine read = models::parse_machine(text, "renamed.toml");
    const Timeline expected = timeline(models::load_machine("summit"), Mode::folded),
                   found = timeline(read, Mode::folded);
    ASSERT_EQ(found.events.size(), expected.events.size());
    for (std::size_t i = 0; i < expected.events.size(); ++i) EXPECT_EQ(found.events[i].end, expected.events[i].end);
    ASSERT_EQ(found.links.size(), expected.links.size());
    for (std::size_t i = 0; i < expected.links.size(); ++i) EXPECT_EQ(found.links[i].kind, expected.links[i].kind);
}

}  // namespace
}  // namespace rehearse::sim
