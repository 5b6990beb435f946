// SPDX-License-Identifier: Apache-2.0
// Switches between nodes from what ibnetdiscover prints. Oracle: fabrics drawn by hand, cable by cable, in the tool's
// documented form (its manual page).
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>

#include "core/error.hpp"
#include "models/models.hpp"
#include "models/new_machine.hpp"

namespace rehearse::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// Cables of a fabric, written as ibnetdiscover does.
class Cables {
public:
    void host(const std::string& leaf, int node, int card) {
        const std::string name = fmt::format("H-{:04d}{}", node, card);
        lines_[leaf] +=
            fmt::format("[{}]\t\"{}\"[1](0c42a1) \t\t# \"gpu{:03d} mlx5_{}\" lid 5 4xNDR\n", ++port_, name, node, card);
        adapters_ += fmt::format("Ca\t1 \"{}\"\t\t# \"gpu{:03d} mlx5_{}\"\n[1](0c42a1)\t\"S-{}\"[1]\t# lid 3 4xNDR\n",
                                 name, node, card, leaf);
    }
    void join(const std::string& below, const std::string& above, int cables = 1) {
        for (int i = 0; i < cables; ++i) {
            lines_[below] += fmt::format("[{}]\t\"S-{}\"[{}]\t\t# \"switch\" lid 9 4xNDR\n", ++port_, above, i);
            lines_[above] += fmt::format("[{}]\t\"S-{}\"[{}]\t\t# \"switch\" lid 8 4xNDR\n", ++port_, below, i);
        }
    }
    std::string text() const {
        std::string all = "#\n# Topology file: generated on Mon\n#\n";
        for (const auto& [name, lines] : lines_)
            all += fmt::format("\nSwitch\t64 \"S-{}\"\t\t# \"switch\" enhanced port 0 lid 3\n{}", name, lines);
        return all + adapters_;
    }

private:
    std::map<std::string, std::string> lines_;
    std::string adapters_;
    int port_ = 0;
};

/// Eight nodes of two cards in two units of four: card c of a unit's nodes on the leaf of that unit and card.
Cables rails() {
    Cables cables;
    for (int node = 0; node < 8; ++node) {
        for (int card = 0; card < 2; ++card) cables.host(fmt::format("leaf{}{}", node / 4, card), node, card);
    }
    return cables;
}

TEST(NewMachineFabric, KnowsRailsThatTheLastLevelJoins) {
    Cables cables = rails();
    for (const char* leaf : {"leaf00", "leaf01", "leaf10", "leaf11"}) cables.join(leaf, "spine", 2);
    const NewMachine machine = with_ibnetdiscover({}, cables.text(), "fabric.txt");
    EXPECT_EQ(machine.nodes, 8);
    EXPECT_EQ(machine.nics.value, 2);
    EXPECT_EQ(machine.rails, NewMachine::Rails::joined);
    EXPECT_THAT(machine.tree.value, ElementsAre(4, 2)) << "four nodes of a leaf, two leaves of a rail";
    EXPECT_THAT(machine.taper, ElementsAre(2, 1));
    const Machine read = parse_machine(to_toml(machine), "mine.toml");
    EXPECT_EQ(std::get<FatTree>(read.fabric.topology).rails, FatTree::Rails::joined);
}

TEST(NewMachineFabric, KnowsRailsThatNothingJoins) {
    Cables cables = rails();
    for (int unit = 0; unit < 2; ++unit) {
        for (int card = 0; card < 2; ++card)
            cables.join(fmt::format("leaf{}{}", unit, card), fmt::format("spine{}", card), 4);
    }
    const NewMachine machine = with_ibnetdiscover({}, cables.text(), "fabric.txt");
    EXPECT_EQ(machine.rails, NewMachine::Rails::separate);
    EXPECT_THAT(machine.tree.value, ElementsAre(4, 2));
    EXPECT_THAT(machine.taper, ElementsAre(1, 1));
    const Machine read = parse_machine(to_toml(machine), "mine.toml");
    EXPECT_EQ(std::get<FatTree>(read.fabric.topology).rails, FatTree::Rails::separate);
}

TEST(NewMachineFabric, PlanesOfOneSwitchEachAreRails) {
    Cables cables;
    for (int node = 0; node < 6; ++node) {
        for (int card = 0; card < 2; ++card) cables.host(fmt::format("plane{}", card), node, card);
    }
    const NewMachine machine = with_ibnetdiscover({}, cables.text(), "fabric.txt");
    EXPECT_EQ(machine.rails, NewMachine::Rails::separate);
    EXPECT_THAT(machine.tree.value, ElementsAre(6));
    EXPECT_EQ(node_count(parse_machine(to_toml(machine), "mine.toml")), 6);
}

TEST(NewMachineFabric, CardsOnOneLeafAreNoRails) {
    Cables cables;
    for (int node = 0; node < 8; ++node) {
        for (int card = 0; card < 2; ++card) cables.host(fmt::format("leaf{}", node / 4), node, card);
    }
    for (const char* leaf : {"leaf0", "leaf1"}) cables.join(leaf, "spine", 8);
    const NewMachine machine = with_ibnetdiscover({}, cables.text(), "fabric.txt");
    EXPECT_EQ(machine.rails, NewMachine::Rails::none);
    EXPECT_EQ(machine.nodes, 8);
    EXPECT_THAT(machine.tree.value, ElementsAre(4, 2));
    EXPECT_THAT(machine.taper, ElementsAre(1, 1));
}

/// Three groups of two leaves with three nodes each and two spines; a leaf has a cable to each spine, each two groups
/// have two cables, one of each spine.
Cables groups() {
    Cables cables;
    for (int group = 0; group < 3; ++group) {
        for (int leaf = 0; leaf < 2; ++leaf) {
            const std::string name = fmt::format("leaf{}{}", group, leaf);
            for (int node = 0; node < 3; ++node) cables.host(name, 6 * group + 3 * leaf + node, 0);
            for (int spine = 0; spine < 2; ++spine) cables.join(name, fmt::format("spine{}{}", group, spine));
        }
        for (int other = 0; other < group; ++other) {
            for (int spine = 0; spine < 2; ++spine)
                cables.join(fmt::format("spine{}{}", group, spine), fmt::format("spine{}{}", other, spine));
        }
    }
    return cables;
}

TEST(NewMachineFabric, KnowsADragonflyPlus) {
    const NewMachine machine = with_ibnetdiscover({}, groups().text(), "fabric.txt");
    ASSERT_TRUE(machine.groups);
    EXPECT_EQ(machine.groups->groups, 3);
    EXPECT_EQ(machine.groups->leaves, 2);
    EXPECT_EQ(machine.groups->nodes, 3);
    EXPECT_EQ(machine.groups->up.value, Bandwidth{100e9}) << "two cables of 50 GB/s";
    EXPECT_EQ(machine.groups->global.value, Bandwidth{100e9});
    EXPECT_TRUE(machine.tree.value.empty());
    const Machine read = parse_machine(to_toml(machine), "mine.toml");
    const auto& fabric = std::get<DragonflyPlus>(read.fabric.topology);
    EXPECT_EQ(node_count(read), 18);
    EXPECT_EQ(fabric.global.value, Bandwidth{100e9});
    EXPECT_EQ(fabric.routing, FabricRouting::adaptive);
}

// The same groups below two cores: a tree of three levels, whose spines have two cables down and one up.
TEST(NewMachineFabric, GroupsBelowCoresAreATree) {
    Cables cables;
    for (int group = 0; group < 3; ++group) {
        for (int leaf = 0; leaf < 2; ++leaf) {
            const std::string name = fmt::format("leaf{}{}", group, leaf);
            for (int node = 0; node < 3; ++node) cables.host(name, 6 * group + 3 * leaf + node, 0);
            for (int spine = 0; spine < 2; ++spine) cables.join(name, fmt::format("spine{}{}", group, spine));
        }
        for (int spine = 0; spine < 2; ++spine)
            cables.join(fmt::format("spine{}{}", group, spine), fmt::format("core{}", spine));
    }
    const NewMachine machine = with_ibnetdiscover({}, cables.text(), "fabric.txt");
    EXPECT_FALSE(machine.groups);
    EXPECT_THAT(machine.tree.value, ElementsAre(3, 2, 3));
    EXPECT_THAT(machine.taper, ElementsAre(1.5, 2, 1));
    EXPECT_EQ(node_count(parse_machine(to_toml(machine), "mine.toml")), 18);
}

TEST(NewMachineFabric, RefusesFabricsThatCannotBe) {
    NewMachine machine;
    machine.nodes = 100;
    machine.groups = NewMachine::Groups{3, 4, 5, {Bandwidth{1e9}, "told"}, {Bandwidth{1e9}, "told"}};
    EXPECT_THAT([&] { to_toml(machine); },
                ThrowsMessage<InputError>(HasSubstr("3 x 4 x 5 has places for 60 nodes, not for 100")));
    machine.nodes = 60;
    EXPECT_EQ(node_count(parse_machine(to_toml(machine), "mine.toml")), 60);
    machine.tree.value = {60};
    EXPECT_THAT([&] { to_toml(machine); }, ThrowsMessage<InputError>(HasSubstr("a tree or a dragonfly+, not both")));
    machine.tree.value.clear();
    machine.groups.reset();
    machine.rails = NewMachine::Rails::joined;
    EXPECT_THAT([&] { to_toml(machine); }, ThrowsMessage<InputError>(HasSubstr("rails of one switch")));
}

}  // namespace
}  // namespace rehearse::models
