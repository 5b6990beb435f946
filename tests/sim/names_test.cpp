// SPDX-License-Identifier: Apache-2.0
// Names of vertices, layers and steps are for people: whatever they are, a prediction is the same to the last bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
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

/// The kinds of links in one order: of those that carry as much, it is rounding that says which comes first, and which
/// of them are among the busiest.
std::vector<LinkUse> by_kind(std::vector<LinkUse> links) {
    std::erase_if(links, [](const LinkUse& link) { return link.name != link.kind; });
    std::ranges::stable_sort(links, {}, &LinkUse::kind);
    return links;
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
            const auto used = by_kind(found.links), wanted = by_kind(expected.links);
            ASSERT_EQ(used.size(), wanted.size());
            for (std::size_t i = 0; i < wanted.size(); ++i) {
                EXPECT_EQ(used[i].kind, wanted[i].kind);
                EXPECT_EQ(used[i].links, wanted[i].links);
                EXPECT_NEAR(used[i].bytes.value, wanted[i].bytes.value, 1e-12 * wanted[i].bytes.value);
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

/// Each layer takes a name that once meant something: of messages, of parts of other layers, all of one first word or
/// each of another.
Network renamed(Network network, bool one_word) {
    const std::vector<std::string> words{"receive", "send.receive", "bucket0:update",
                                         "again",   "nic:up",       "x.send:receive"};
    for (std::size_t i = 0; i < network.layers.size(); ++i) {
        const std::string number = std::to_string(1000 - i);
        network.layers[i].name =
            one_word ? "layer." + words[i % words.size()] + number : words[i % words.size()] + number;
    }
    return network;
}

/// Each name of a step becomes another one, the same for all classes.
Schedule renamed(Schedule schedule) {
    std::map<std::string, std::string> names;
    for (RankClass& rank_class : schedule.classes) {
        for (Step& step : rank_class.steps) {
            const auto [name, fresh] = names.try_emplace(step.name, "bucket" + std::to_string(names.size()) + ":serve");
            step.name = name->second;
        }
    }
    return schedule;
}

/// Stream by stream: what begins at the same time on several of a rank's streams stands in any order.
void expect_same_times(Timeline found, Timeline expected, double close) {
    for (Timeline* timeline : {&found, &expected}) {
        std::ranges::stable_sort(timeline->events, {}, [](const Event& event) {
            return std::pair{event.rank, event.stream};
        });
    }
    ASSERT_EQ(found.events.size(), expected.events.size());
    for (std::size_t i = 0; i < expected.events.size(); ++i) {
        EXPECT_EQ(found.events[i].stream, expected.events[i].stream);
        EXPECT_EQ(found.events[i].rank, expected.events[i].rank);
        EXPECT_EQ(found.events[i].bytes, expected.events[i].bytes);
        EXPECT_NEAR(found.events[i].start.value, expected.events[i].start.value, close);
        EXPECT_NEAR(found.events[i].end.value, expected.events[i].end.value, close);
    }
}

/// Blocks that are computed again, stages of as many blocks each, servers, pieces of weights, messages that cost a
/// core.
TEST(Names, OfLayersAndStepsChangeNoPrediction) {
    Machine machine = models::load_machine("summit");
    machine.across.overlap = {{Seconds{1e-6}, "test"}, {Bandwidth{1e10}, "test"}, {Seconds{2e-6}, "test"}};
    const Network transformer = models::load_network("bert-base");
    for (const auto& [network, plan] : std::vector<std::pair<Network, std::string>>{
             {models::load_network("resnet50"), "data:recompute=blocks"},
             {transformer, "pipe=4:cut=blocks:microbatches=4:recompute=blocks,data"},
             {transformer, "pipe=2:microbatches=4,tensor=2:sequence=on,data:zero=1"},
             {models::load_network("lenet5"), "server=2,data"},
             {models::load_network("alexnet"), "data:zero=3"},
             {models::load_network("resnet50"), "spatial=2,data"}}) {
        SCOPED_TRACE(network.name + ", " + plan);
        const auto made = [&, &plan = plan](const Network& of) {
            return schedule::make_schedule(of, machine, schedule::parse_plan(plan),
                                           {.devices = plan.starts_with("server") ? 6 : 8, .batch_per_device = 8});
        };
        for (const Mode mode : {Mode::folded, Mode::exact}) {
            const double close = mode == Mode::exact ? 1e-9 : 0;
            const Schedule schedule = made(network);
            const Timeline expected = simulate(schedule, machine, {.mode = mode, .links = true}).timeline;
            for (const bool one_word : {true, false}) {
                const Schedule other = made(renamed(network, one_word));
                EXPECT_EQ(other.memory_peak, schedule.memory_peak);
                expect_same_times(simulate(other, machine, {.mode = mode, .links = true}).timeline, expected, close);
                if (network.layers.size() > 200) break;
            }
            expect_same_times(simulate(renamed(schedule), machine, {.mode = mode, .links = true}).timeline, expected,
                              close);
            if (network.layers.size() > 200) break;  // exact: as the small ones
        }
    }
}

}  // namespace
}  // namespace rehearse::sim
