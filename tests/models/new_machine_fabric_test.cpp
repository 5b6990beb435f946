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
        adapter(leaf, fmt::format("H-{:04d}{}", node, card), fmt::format("gpu{:03d} mlx5_{}", node, card));
    }
    void adapter(const std::string& leaf, const std::string& name, const std::string& said,
                 const std::string& rate = "4xNDR") {
        lines_[leaf] += fmt::format("[{}]\t\"{}\"[1](0c42a1) \t\t# \"{}\" lid 5 {}\n", ++port_, name, said, rate);
        adapters_ +=
            fmt::format("Ca\t1 \"{}\"\t\t# \"{}\"\n[1](0c42a1)\t\"S-{}\"[1]\t# lid 3 {}\n", name, said, leaf, rate);
    }
    void join(const std::string& below, const std::string& above, int cables = 1, const std::string& rate = "4xNDR") {
        for (int i = 0; i < cables; ++i) {
            lines_[below] += fmt::format("[{}]\t\"S-{}\"[{}]\t\t# \"switch\" lid 9 {}\n", ++port_, above, i, rate);
            lines_[above] += fmt::format("[{}]\t\"S-{}\"[{}]\t\t# \"switch\" lid 8 {}\n", ++port_, below, i, rate);
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
    EXPECT_EQ(machine.nodes.value, 8);
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
    EXPECT_EQ(machine.nodes.value, 8);
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

/// Sixteen nodes of a card, eight a leaf, two leaves with two cables to each of two spines.
Cables sixteen(const std::string& said = "node{:03d} mlx5_0", const std::string& rate = "4xHDR") {
    Cables cables;
    for (int node = 0; node < 16; ++node)
        cables.adapter(fmt::format("leaf{}", node / 8), fmt::format("H-{:04d}", node),
                       fmt::format(fmt::runtime(said), node), rate);
    for (const char* leaf : {"leaf0", "leaf1"}) {
        for (const char* spine : {"spine0", "spine1"}) cables.join(leaf, spine, 2, rate);
    }
    return cables;
}

// Eight cards of 12.5 GB/s on four cables of 25 GB/s, and the other way round: what a switch saves is bandwidth. Where
// one rate is not known, ports are counted.
TEST(NewMachineFabric, TapersAreOfBandwidth) {
    const auto taper = [](const std::string& card, const std::string& cable) {
        Cables cables;
        for (int node = 0; node < 16; ++node)
            cables.adapter(fmt::format("leaf{}", node / 8), fmt::format("H-{:04d}", node),
                           fmt::format("node{:03d} mlx5_0", node), card);
        for (const char* leaf : {"leaf0", "leaf1"}) {
            for (const char* spine : {"spine0", "spine1"}) cables.join(leaf, spine, 2, cable);
        }
        return with_ibnetdiscover({}, cables.text(), "fabric.txt").taper;
    };
    EXPECT_THAT(taper("4xHDR", "4xHDR"), ElementsAre(2, 1));
    EXPECT_THAT(taper("2xHDR", "4xHDR"), ElementsAre(1, 1));
    EXPECT_THAT(taper("4xHDR", "2xHDR"), ElementsAre(4, 1));
    EXPECT_THAT(taper("2xHDR", "4xZDR"), ElementsAre(2, 1));
}

// A switch of HDR and later shows the part that sums for SHARP as an adapter at a port of its own.
TEST(NewMachineFabric, AggregationNodesOfSwitchesAreNoHosts) {
    Cables cables = sixteen();
    for (const char* each : {"leaf0", "leaf1", "spine0", "spine1"})
        cables.adapter(each, fmt::format("H-an-{}", each), "Mellanox Technologies Aggregation Node", "4xXDR");
    NewMachine told;
    told.nodes = {16, "told"};
    for (const NewMachine& before : {NewMachine{}, told}) {
        const NewMachine machine = with_ibnetdiscover(before, cables.text(), "fabric.txt");
        EXPECT_EQ(machine.nodes.value, 16);
        EXPECT_THAT(machine.tree.value, ElementsAre(8, 2));
        EXPECT_THAT(machine.taper, ElementsAre(2, 1));
        EXPECT_EQ(machine.nic.value, Bandwidth{25e9}) << "and not the aggregation nodes' rate";
        EXPECT_THAT(machine.notes, ElementsAre());
        EXPECT_EQ(node_count(parse_machine(to_toml(machine), "mine.toml")), 16);
    }
    Cables alone;
    alone.adapter("leaf", "H-an", "Mellanox Technologies Aggregation Node");
    EXPECT_THAT([&] { with_ibnetdiscover({}, alone.text(), "fabric.txt"); },
                ThrowsMessage<InputError>(HasSubstr("no switch with a host")));
}

// Four nodes of four cards at a leaf, and one card each of a login node there and of two that store at a leaf of
// theirs.
TEST(NewMachineFabric, NodesOfAnotherNumberOfCardsAreLeftOutWithANote) {
    Cables cables;
    for (int node = 0; node < 4; ++node) {
        for (int card = 0; card < 4; ++card) cables.host("leaf0", node, card);
    }
    cables.adapter("leaf0", "H-login", "login1 mlx5_0");
    cables.adapter("leaf1", "H-store1", "store1 mlx5_0", "4xHDR");
    cables.adapter("leaf1", "H-store2", "store2 mlx5_0", "4xHDR");
    for (const char* leaf : {"leaf0", "leaf1"}) cables.join(leaf, "spine", 8);
    cables.adapter("spine", "H-ufm", "ufm mlx5_0");
    const NewMachine machine = with_ibnetdiscover({}, cables.text(), "fabric.txt");
    EXPECT_EQ(machine.nodes.value, 4);
    EXPECT_EQ(machine.nics.value, 4);
    EXPECT_EQ(machine.nic.value, Bandwidth{50e9});
    EXPECT_THAT(machine.tree.value, ElementsAre()) << "all four at one leaf";
    EXPECT_THAT(machine.notes, ElementsAre(HasSubstr("login1, store1, store2 and 1 more with 4 ports in all left out, "
                                                     "as the other 4 nodes have 4 ports each")));
    const std::string text = to_toml(machine);
    EXPECT_THAT(text, HasSubstr("# ibnetdiscover: login1, store1"));
    EXPECT_EQ(node_count(parse_machine(text, "mine.toml")), 4);
    NewMachine one;
    one.nics = {1, "as told"};
    EXPECT_EQ(with_ibnetdiscover(one, cables.text(), "fabric.txt").nodes.value, 4) << "login1, store1, store2 and ufm";
}

TEST(NewMachineFabric, DescriptionsOfTheVendorNameNoNode) {
    const std::string text = sixteen("MT4123 ConnectX6   Mellanox Technologies").text();
    const NewMachine machine = with_ibnetdiscover({}, text, "fabric.txt");
    EXPECT_EQ(machine.nodes.value, 16);
    EXPECT_THAT(machine.tree.value, ElementsAre(8, 2));
    EXPECT_THAT(machine.notes, ElementsAre(HasSubstr("16 ports do not say of which nodes they are: each is counted")));
    NewMachine told;
    told.nics = {4, "as told"};
    const NewMachine fewer = with_ibnetdiscover(told, text, "fabric.txt");
    EXPECT_EQ(fewer.nodes.value, 4);
    EXPECT_THAT(fewer.tree.value, ElementsAre(2, 2));
    EXPECT_THAT(fewer.notes, ElementsAre(HasSubstr("a node is taken to have 4")));
    Cables one = sixteen();
    one.adapter("leaf0", "H-new", "MT4123 ConnectX6   Mellanox Technologies");
    EXPECT_EQ(with_ibnetdiscover({}, one.text(), "fabric.txt").nodes.value, 17) << "a node whose name was not set";
}

// Lanes of 2.5, 5 and 10 Gbit/s of which 8 bits of 10 are data, of 10.3125, 14.0625 and 25.78125 with 64 of 66.
TEST(NewMachineFabric, RatesAreWordsOfTheirOwn) {
    const std::pair<const char*, double> rates[] = {
        {"4xSDR", 1e9},    {"4xDDR", 2e9},    {"4xQDR", 4e9},   {"4xFDR10", 5e9}, {"4xFDR", 6.8e9}, {"1xEDR", 3.125e9},
        {"4xEDR", 12.5e9}, {"2xHDR", 12.5e9}, {"12xQDR", 12e9}, {"2xNDR", 25e9},  {"4xXDR", 100e9}};
    for (const auto& [word, rate] : rates) {
        const NewMachine machine = with_ibnetdiscover({}, sixteen("node{:03d} mlx5_0", word).text(), "fabric.txt");
        EXPECT_EQ(machine.nic.value, Bandwidth{rate}) << word;
        EXPECT_EQ(machine.nic.source, "ibnetdiscover") << word;
    }
    const NewMachine unknown = with_ibnetdiscover({}, sixteen("node{:03d} 4xNDR", "4xZDR").text(), "fabric.txt");
    EXPECT_EQ(unknown.nic.source, "") << "assumed, whatever a description says";
    EXPECT_THAT(unknown.notes, ElementsAre(HasSubstr("no known rate of a port: 4xZDR")));
    Cables mixed = sixteen();
    mixed.adapter("leaf0", "H-fast", "node016 mlx5_0", "4xNDR");
    const NewMachine most = with_ibnetdiscover({}, mixed.text(), "fabric.txt");
    EXPECT_EQ(most.nic.value, Bandwidth{25e9});
    EXPECT_THAT(most.notes, ElementsAre(HasSubstr("of 17 ports 16 run at 25 GB/s")));
}

TEST(NewMachineFabric, NodesThatWereToldAreTaken) {
    NewMachine told;
    told.nodes = {12, "told"};
    const NewMachine machine = with_ibnetdiscover(told, sixteen().text(), "fabric.txt");
    EXPECT_EQ(machine.nodes.value, 12);
    EXPECT_THAT(machine.tree.value, ElementsAre(8, 2));
    EXPECT_THAT(machine.notes, ElementsAre(HasSubstr("16 nodes, of which 12 are taken as told")));
    told.nodes = {1, "told"};
    const NewMachine one = with_ibnetdiscover(told, sixteen().text(), "fabric.txt");
    EXPECT_EQ(one.nodes.value, 1);
    EXPECT_EQ(node_count(parse_machine(to_toml(one), "mine.toml")), 1);
}

TEST(NewMachineFabric, RefusesFabricsThatCannotBe) {
    NewMachine machine;
    machine.nodes = {100, "told"};
    machine.groups = NewMachine::Groups{3, 4, 5, {Bandwidth{1e9}, "told"}, {Bandwidth{1e9}, "told"}};
    EXPECT_THAT([&] { to_toml(machine); },
                ThrowsMessage<InputError>(HasSubstr("3 x 4 x 5 has places for 60 nodes, not for 100")));
    machine.nodes = {60, "told"};
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
