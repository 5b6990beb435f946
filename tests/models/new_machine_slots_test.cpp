// SPDX-License-Identifier: Apache-2.0
// What a made machine says of the links that nobody has told: PCIe by the card's generation (PCI-SIG: x16 of the third
// carries 15.75 GB/s a direction, each later one twice as much), tapers by who told them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/file.hpp"
#include "models/machine_file.hpp"
#include "models/models.hpp"
#include "models/new_machine.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;

NodeLink first_link(const NewMachine& machine) {
    return parse_machine(to_toml(machine), "made.toml").nodes.front().links.front();
}

TEST(NewMachineSlots, ACardHasThePcieOfItsGeneration) {
    const std::pair<const char*, double> cards[] = {{"p100-pcie", 15.75e9}, {"v100-sxm2", 15.75e9}, {"t4", 15.75e9},
                                                    {"gtx1080ti", 15.75e9}, {"a100-40gb", 31.5e9},  {"l40s", 31.5e9},
                                                    {"rtx3090", 31.5e9},    {"rtx4090", 31.5e9},    {"h100-pcie", 63e9},
                                                    {"h100-sxm", 63e9},     {"b200-sxm", 63e9},     {"mi300x", 63e9},
                                                    {"max-1550", 63e9},     {"gh200", 450e9}};
    for (const auto& [card, rate] : cards) {
        NewMachine machine;
        machine.device = card;
        const NodeLink link = first_link(machine);
        EXPECT_EQ(link.bandwidth.value, Bandwidth{rate}) << card;
        EXPECT_THAT(link.bandwidth.source, HasSubstr("assumed")) << card;
    }
}

TEST(NewMachineSlots, WhatIsToldGoesBeforeTheGeneration) {
    NewMachine machine;
    machine.device = "rtx4090";
    machine.host_link = Answer<Bandwidth>{Bandwidth{7.9e9}, "a riser of four lanes"};
    EXPECT_EQ(first_link(machine).bandwidth.value, Bandwidth{7.9e9});
    EXPECT_EQ(first_link(machine).bandwidth.source, "a riser of four lanes");
}

// A card of 400 Gb/s beside a GH200 is in a slot of the Grace, not at its NVLink.
TEST(NewMachineSlots, ANetworkCardIsInASlot) {
    NewMachine machine;
    machine.device = "gh200";
    machine.nodes.value = 2;
    const auto links = parse_machine(to_toml(machine), "made.toml").nodes.front().links;
    ASSERT_EQ(links.size(), 2U);
    EXPECT_EQ(links[1].bandwidth.value, Bandwidth{63e9});
}

TEST(NewMachineSlots, TapersSayWhoToldThem) {
    const std::string path = testing::TempDir() + "rehearse-made-" + std::to_string(getpid()) + ".toml";
    const auto source = [&](const NewMachine& machine) {
        replace_file(path, to_toml(machine));
        return other_tables(path).taper_source;
    };
    NewMachine machine;
    machine.nodes.value = 16;
    machine.tree.value = {8, 2};
    EXPECT_THAT(source(machine), HasSubstr("assumed"));
    machine.taper = {2, 1};
    machine.taper_source = "counted";
    EXPECT_EQ(source(machine), "counted");
    std::filesystem::remove(path);
}

}  // namespace
}  // namespace rehearse::models
