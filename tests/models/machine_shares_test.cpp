// SPDX-License-Identifier: Apache-2.0
// What the sources of a machine's figures say of each other: sums of messages are a share of the memory's bandwidth of
// its own devices, tapers are figures like any other, and devices that no node has are none of the machine's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <regex>

#include "core/file.hpp"
#include "models/machine_file.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;

// Of the memory's bandwidth: "at 0.85 of the memory bandwidth", "80 % of the memory bandwidth"; nothing where the
// source says no share.
std::optional<double> share_said(const std::string& source) {
    std::smatch found;
    if (std::regex_search(source, found, std::regex{R"((\d+) % of the memory bandwidth)"}))
        return std::stod(found[1]) / 100;
    if (std::regex_search(source, found, std::regex{R"((0\.\d+) of the memory bandwidth)"})) return std::stod(found[1]);
    return std::nullopt;
}

// In bytes a second: "device copy at 777.8 GB/s", "device copy at 1,322.5 GB/s".
std::optional<double> copy_said(const std::string& source) {
    std::smatch found;
    if (!std::regex_search(source, found, std::regex{R"(device copy at ([\d,.]+) GB/s)"})) return std::nullopt;
    std::string number = found[1];
    std::erase(number, ',');
    return std::stod(number) * 1e9;
}

void expect_shares(const Machine& machine, const Messaging& messaging) {
    const std::string& source = messaging.reduce.source;
    if (source.empty()) return;
    // Half of the last digit that the file writes, which are at least two.
    constexpr double rounded = 0.025;
    const double moved = 3 * messaging.reduce.value.value;
    const double memory = class_of(machine, 0).memory_bandwidth.value.value;
    if (const auto share = share_said(source)) {
        EXPECT_NEAR(moved / memory / *share, 1, rounded) << source;
    }
    if (const auto copy = copy_said(source)) {
        EXPECT_NEAR(moved / *copy, 1, rounded) << source;
        EXPECT_LE(*copy, memory) << source;
    }
}

TEST(MachineShares, SumsOfMessagesReachTheShareOfTheMemoryThatTheirSourcesState) {
    std::size_t held = 0;
    for (const MachineName& each : machines()) {
        if (each.name == "this-host") continue;
        SCOPED_TRACE(each.name);
        const Machine machine = load_machine(each.name);
        expect_shares(machine, machine.inside);
        expect_shares(machine, machine.across);
        held += share_said(machine.inside.reduce.source).has_value();
        for (const Transport& transport : other_tables(each.name).transports) {
            SCOPED_TRACE(transport.name);
            if (transport.inside) expect_shares(machine, *transport.inside);
            if (transport.across) expect_shares(machine, *transport.across);
        }
    }
    EXPECT_GT(held, 30U) << "the sources are still read";
}

// Cards of EFA, of which p4d's carry sends and receives, p5's writes.
TEST(MachineShares, CloudsOfAmazonHaveMessagesOfEfa) {
    for (const auto& [name, share] : {std::pair{"aws-p4d", 0.84}, std::pair{"aws-p5", 0.96}}) {
        for (const std::string& transport : {std::string{}, std::string{"@nccl"}}) {
            const Machine machine = load_machine(name + transport);
            EXPECT_EQ(machine.across.fraction.value, share) << name << transport;
            EXPECT_GT(machine.across.overhead.value, load_machine("eos").across.overhead.value) << name << transport;
            for (const std::string& source : {machine.across.fraction.source, machine.across.overhead.source})
                EXPECT_THAT(source, testing::Not(HasSubstr("card a GPU"))) << name << transport;
        }
    }
}

TEST(MachineShares, DevicesThatNoNodeHasAreNoneOfTheMachine) {
    const Machine machine = load_machine("aws-p4d");
    ASSERT_EQ(machine.classes.size(), 1U);
    EXPECT_EQ(machine.classes.front().name, "a100-40gb");
    EXPECT_EQ(class_of(machine, 7).memory.value, Bytes{40e9});
    for (const MachineName& each : machines()) {
        if (each.name == "this-host") continue;
        const Machine shipped = load_machine(each.name);
        for (int i = 0; i < std::ssize(shipped.classes); ++i) {
            const bool used = std::ranges::any_of(shipped.nodes, [&](const NodeKind& kind) {
                return std::ranges::count(kind.vertices, i, &Vertex::device_class) > 0;
            });
            EXPECT_TRUE(used) << each.name << ": " << shipped.classes[static_cast<std::size_t>(i)].name;
        }
    }
}

TEST(MachineShares, TapersOfShippedTreesHaveSources) {
    for (const MachineName& each : machines()) {
        if (each.name == "this-host") continue;
        const Machine machine = load_machine(each.name);
        const auto* tree = std::get_if<FatTree>(&machine.fabric.topology);
        const bool tapered = tree != nullptr && tree->down.size() > 1;
        EXPECT_EQ(!other_tables(each.name).taper_source.empty(), tapered) << each.name;
    }
    EXPECT_THAT(other_tables("el-capitan").taper_source, HasSubstr("assumed"));
    EXPECT_THAT(other_tables("jupiter").taper_source, testing::Not(HasSubstr("dragonfly"))) << "its own, not of alps";
}

// Plain numbers are taken as ever; who says them may stand with them, or with a table around them.
TEST(MachineShares, TapersTakeASourceAndNeedNone) {
    const std::string path = testing::TempDir() + "rehearse-taper-" + std::to_string(getpid()) + ".toml";
    const auto said = [&](const std::string& fabric, const std::string& taper) {
        replace_file(path, "name = \"m\"\nextends = \"eos\"\n[fabric]\n" + fabric +
                               "[fabric.fat-tree]\ndown = [32, 42]\ntaper = " + taper + "\n");
        EXPECT_THAT(std::get<FatTree>(load_machine(path).fabric.topology).taper, testing::ElementsAre(2, 1));
        return other_tables(path).taper_source;
    };
    EXPECT_EQ(said("", "[2, 1]"), "");
    EXPECT_EQ(said("", "{ value = [2, 1], source = \"me\" }"), "me");
    EXPECT_EQ(said("source = \"sheet\"\n", "[2, 1]"), "sheet");
    std::filesystem::remove(path);
}

// 33 TB/s of the XC30 in the same 28 cabinets, both directions (Barthels et al. 2017): all links between the halves of
// its 14 groups.
TEST(MachineShares, PizDaintHasTheBisectionOfItsCabinets) {
    const Machine machine = load_machine("piz-daint");
    const auto& fly = std::get<Dragonfly>(machine.fabric.topology);
    const double half = static_cast<double>(fly.groups) / 2;
    EXPECT_NEAR(2 * half * half * fly.global.value.value, 33e12, 0.1e12);
}

}  // namespace
}  // namespace rehearse::models
