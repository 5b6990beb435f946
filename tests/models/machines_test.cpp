// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "core/file.hpp"
#include "machine_equality.hpp"
#include "models/machine_file.hpp"
#include "models/models.hpp"
#include "prices/prices.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class Shipped : public testing::TestWithParam<std::string> {};

// Names of files: to load every machine first would take each of these tests, a process of its own, a second.
std::vector<std::string> shipped_names() {
    std::vector<std::string> names;
    for (const auto& file : std::filesystem::directory_iterator(REHEARSE_SOURCE_DIR "/models/machines")) {
        if (file.path().extension() == ".toml") names.push_back(file.path().stem().string());
    }
    std::ranges::sort(names);
    return names;
}

TEST_P(Shipped, MachineIsTheSameAfterAWayThroughToml) {
    const Machine machine = load_machine(GetParam());
    expect_equal(parse_machine(to_toml(machine), "again.toml"), machine);
}

TEST_P(Shipped, MachineFileIsTheSameAfterAWayThroughToml) {
    const OtherTables others = other_tables(GetParam());
    const std::string path = testing::TempDir() + GetParam() + "-again.toml";
    replace_file(path, to_toml(load_machine(GetParam()), others));
    expect_equal(other_tables(path), others);
    for (const Transport& each : others.transports) {
        const std::string suffix = "@" + each.name;
        expect_equal(load_machine(path + suffix), load_machine(GetParam() + suffix));
        EXPECT_EQ(other_tables(path + suffix).transports.size(), others.transports.size() - 1)
            << "the one that was taken is in the machine";
    }
    std::filesystem::remove(path);
}

TEST_P(Shipped, MachineCanPriceEveryLayerOfResNet50) {
    const Machine machine = load_machine(GetParam());
    const DeviceClass& device = machine.classes.front();
    for (const Layer& layer : load_network("resnet50").layers)
        for (const auto& [type, peak] : device.peak)
            for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights, Pass::update}) {
                const Price cost = price({layer.op, pass, 32, type}, device);
                if (!has_pass(layer.op, pass)) continue;
                EXPECT_GT(cost.time.value, 0) << layer.name;
                EXPECT_THAT(cost.source, Not(HasSubstr("a bound"))) << layer.name;  // some efficiency row covers it
            }
}

// A PCIe switch of all devices would be the way of batches from the host, in place of the slots.
TEST_P(Shipped, MachineJoinsAllDevicesOfANodeByNvlinkOrProcessors) {
    for (const NodeKind& node : load_machine(GetParam()).nodes) {
        for (std::size_t bridge = 0; bridge < node.vertices.size(); ++bridge) {
            const Vertex& vertex = node.vertices[bridge];
            if (vertex.kind != VertexKind::bridge || vertex.bridge != BridgeKind::pcie) continue;
            std::int64_t devices = 0;
            for (const NodeLink& link : node.links) {
                const bool ends = link.a == static_cast<int>(bridge) || link.b == static_cast<int>(bridge);
                const int other = link.a == static_cast<int>(bridge) ? link.b : link.a;
                devices += ends && node.vertices[static_cast<std::size_t>(other)].kind == VertexKind::device;
            }
            EXPECT_TRUE(devices < 2 || devices < devices_per_node(node)) << vertex.name;
        }
    }
}

TEST_P(Shipped, MachineIsTheFileInTheSourceTree) {
    const std::string path = std::string(REHEARSE_SOURCE_DIR) + "/models/machines/" + GetParam() + ".toml";
    expect_equal(load_machine(path), load_machine(GetParam()));
    EXPECT_EQ(load_machine(GetParam()).name, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Machines, Shipped, testing::ValuesIn(shipped_names()), [](const auto& test) {
    std::string name = test.param;
    std::ranges::replace_if(
        name, [](char c) { return c == '-' || c == '.'; }, '_');
    return name;
});

TEST(Machines, AreListedWithSummaries) {
    std::vector<std::string> names;
    for (const MachineName& machine : machines()) {
        names.push_back(machine.name);
        EXPECT_FALSE(machine.summary.empty());
    }
    EXPECT_THAT(names, testing::IsSupersetOf(shipped_names()));
    EXPECT_THAT(names, testing::IsSupersetOf({"summit", "cori-knl", "adam-commodity", "titanx-server", "this-host",
                                              "piz-daint", "abci", "lassen", "dgx1-v100", "aws-p2.8xlarge"}));
}

// What `like` takes from models/devices.toml, and what a machine says itself.
TEST(Machines, DevicesOfTheCatalogCanBeChanged) {
    const std::string one =
        "name = \"m\"\n[[device]]\nname = \"card\"\nlike = \"p40\"\n"
        "memory = { value = \"22GB\", source = \"with ECC\" }\n"
        "[[node]]\nname = \"n\"\ndevices = [{ class = \"card\", name = \"gpu\" }]\n";
    const Machine machine = parse_machine(one, "m.toml");
    EXPECT_EQ(machine.classes[0].name, "card");
    EXPECT_EQ(machine.classes[0].memory.value, Bytes{22e9});
    EXPECT_EQ(machine.classes[0].peak.at(DataType::f32).value, FlopRate{11.76e12});
    const std::string other = std::string{one}.replace(one.find("p40"), 3, "p4o");
    EXPECT_THAT([&] { parse_machine(other, "m.toml"); }, ThrowsMessage<InputError>(HasSubstr("did you mean 'p40'?")));
}

class Catalogued : public testing::TestWithParam<std::string> {};

// Every kind of operator that training has, in every type of the data sheet, has a price that says where it is from.
TEST_P(Catalogued, DevicePricesEveryKindInItsTypes) {
    const Machine machine =
        parse_machine(fmt::format("name = \"m\"\n[[device]]\nname = \"d\"\nlike = \"{}\"\n"
                                  "[[node]]\nname = \"n\"\ndevices = [{{ class = \"d\", name = \"d\" }}]\n",
                                  GetParam()),
                      "m.toml");
    const DeviceClass& device = machine.classes.front();
    for (const auto& [type, peak] : device.peak) {
        for (const std::string_view problem :
             {"conv2d:n8c64h56w56k64r3s3:pad1:stride1", "conv2d:n8c64h56w56k64r3s3:pad1:stride2:groups64",
              "conv3d:n2c16d16h16w16k32t3r3s3:pad1:stride1", "matmul:n8m512n1024k1024", "batchnorm:n8c64h56w56",
              "activation:n8:64x56x56:relu", "pool:n8c64h56w56r3s3:pad1:stride2:max", "softmax:n512:1024",
              "layernorm:n8r512c1024", "attention:n8h16q512k512d64:packed"}) {
            const Problem asked = parse_problem(fmt::format("{}:{}:forward", problem, to_string(type)));
            const Price found = price(asked, device);
            EXPECT_GT(found.time, Seconds{0}) << to_string(asked);
            EXPECT_GT(found.error, 0) << to_string(asked);
            EXPECT_FALSE(found.source.empty()) << to_string(asked);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, Catalogued,
                         testing::Values("a100-40gb", "a100-80gb", "a100-pcie", "h100-pcie", "h100-sxm", "h200-sxm",
                                         "gh200", "b200-sxm", "gb200", "l4", "l40s", "rtx3090", "rtx4090", "mi100",
                                         "mi210", "mi250x", "mi300a", "mi300x", "mi355x", "max-1550", "grace",
                                         "xeon-8480-2s", "epyc-7742-2s", "epyc-7763-2s", "epyc-9654-2s", "epyc-9755-2s",
                                         "a64fx"),
                         [](const auto& test) {
                             std::string name = test.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

// A P40 is a Titan X (Pascal) with 11.76 / 10.974 of its peak: a convolution that is bound by it takes that much less.
TEST(Machines, PricesOfALikeDeviceFollowItsPeak) {
    const Problem problem = parse_problem("conv2d:n16c512h28w28k512r3s3:pad1:stride1:f32:forward");
    const Price measured = price(problem, load_machine("titanx-server").classes[0]);
    const Price likened = price(problem, load_machine("azure-nd24rs").classes[0]);
    EXPECT_NEAR(measured.time.value / likened.time.value, 11.76 / 10.974, 0.05);
    EXPECT_GT(likened.error, measured.error);
    EXPECT_THAT(likened.source, HasSubstr("for p40"));
}

TEST(Machines, ATransportChangesWhatItSays) {
    const Machine usual = load_machine("azure-nd24rs"), tcp = load_machine("azure-nd24rs@tcp");
    EXPECT_EQ(tcp.fabric.link.value, Bandwidth{25e9 / 8});
    EXPECT_EQ(usual.fabric.link.value, Bandwidth{56e9 / 8});
    EXPECT_EQ(tcp.fabric.hop_latency.value, usual.fabric.hop_latency.value);
    EXPECT_EQ(tcp.name, "azure-nd24rs@tcp");
    EXPECT_THAT([] { load_machine("azure-nd24rs@tpc"); }, ThrowsMessage<InputError>(HasSubstr("did you mean 'tcp'?")));
    EXPECT_THAT([] { load_machine("summit@tcp"); }, ThrowsMessage<InputError>(HasSubstr("it has: none")));
}

TEST(Machines, AnUnknownNameIsAnsweredWithTheNearestOne) {
    EXPECT_THAT([] { load_machine("sumit"); }, ThrowsMessage<InputError>(HasSubstr("did you mean 'summit'?")));
    EXPECT_THAT([] { load_machine("no/such.toml"); }, ThrowsMessage<InputError>(HasSubstr("no/such.toml")));
    EXPECT_THAT([] { load_machine(testing::TempDir()); }, ThrowsMessage<InputError>(HasSubstr("is a directory")));
}

// ORNL: 4,608 nodes, 27,648 GPUs, 3.45 EFLOP/s of f16, 25 GB/s of injection a node.
TEST(Summit, HasThePublishedSizes) {
    const Machine summit = load_machine("summit");
    EXPECT_EQ(node_count(summit), 4608);
    EXPECT_EQ(device_count(summit), 27648);
    EXPECT_NEAR(27648 * class_of(summit, 0).peak.at(DataType::f16).value.value, 3.45e18, 0.01e18);
    const auto nics = std::ranges::count(summit.nodes[0].vertices, VertexKind::nic, &Vertex::kind);
    EXPECT_EQ(static_cast<double>(nics) * summit.fabric.link.value, Bandwidth{25e9});
    // Each GPU has six bricks: two other GPUs and its socket at 50 GB/s.
    for (int gpu = 0; gpu < 6; ++gpu) {
        Bandwidth sum;
        for (const NodeLink& link : summit.nodes[0].links)
            if (link.a == gpu || link.b == gpu) sum += link.bandwidth.value;
        EXPECT_EQ(sum, Bandwidth{150e9}) << gpu;
    }
}

TEST(CoriKnl, HasGroupsOf384Nodes) {
    const Machine cori = load_machine("cori-knl");
    EXPECT_EQ(device_count(cori), 9688);
    const auto& fly = std::get<Dragonfly>(cori.fabric.topology);
    EXPECT_EQ(fly.routers * fly.nodes, 384);
}

TEST(AdamCommodity, IsThreeRacksOfFortyServers) {
    const Machine adam = load_machine("adam-commodity");
    EXPECT_EQ(node_count(adam), 120);
    EXPECT_EQ(std::get<FatTree>(adam.fabric.topology).down, (std::vector<std::int64_t>{40, 3}));
    EXPECT_EQ(adam.fabric.link.value, Bandwidth{1.25e9});
}

TEST(TitanxServer, HasEightCardsOnPcie) {
    const Machine server = load_machine("titanx-server");
    EXPECT_EQ(device_count(server), 8);
    for (int gpu = 0; gpu < 8; ++gpu) {
        const auto link = std::ranges::find(server.nodes[0].links, gpu, &NodeLink::a);
        ASSERT_NE(link, server.nodes[0].links.end());
        EXPECT_EQ(link->bandwidth.value, Bandwidth{15.75e9});
    }
}

Machine with_everything() {
    Machine machine = load_machine("cori-knl");
    machine.name = "every \"thing\"\\";
    machine.summary = "tab\tnewline\nµ";
    DeviceClass& device = machine.classes[0];
    const Problem problem{Activation{Nonlinearity::relu, {3, 8, 8}}, Pass::forward, 4, DataType::f32};
    const Problem conv{Conv{3, 8, 8, 16, {.kernel_h = 3, .kernel_w = 3}, 1, true}, Pass::backward_data, 2,
                       DataType::f16};
    device.measured[to_string(problem)] = {Seconds{1.0 / 3e6}, 1.0 / 7, 31, "measured, me"};
    device.measured[to_string(conv)] = {Seconds{2e-3}, 0, 1, "measured, \"you\""};
    machine.fabric.topology = Torus{{22, 22, 22}, {Bandwidth{1e10 / 3}, "a third"}};
    machine.storage.push_back({"more", {Bandwidth{123456789.0}, "x"}, true});
    machine.storage.push_back({"shared", {Bandwidth{1e12}, "x"}, false, {}, {Bandwidth{1e10 / 3}, "a client"}});
    machine.inside.one_ring = true;
    machine.across.pieces = {{Bytes{8191}, Seconds{1.0 / 3e5}, Bandwidth{1e9 / 7}, "a \"piece\""},
                             {{}, Seconds{0}, Bandwidth{1e9}, "the rest"}};
    machine.inside.overlap = {{Seconds{1e-6 / 3}, "core"}, {Bandwidth{1e10 / 3}, "rate"}, {Seconds{5e-5}, "late"}};
    machine.in_situ = {0.01 / 3, 0.02, "three networks", "a \"busy\" host"};
    machine.shared_cores = {{1, {0, 2}, "me"}, {2, {5, 3, 7}, "me, \"too\""}};
    NodeKind other = machine.nodes[0];
    other.name = "other";
    other.count = 1;
    machine.nodes.push_back(other);
    return machine;
}

TEST(ToToml, KeepsEveryBitOfEveryField) {
    const Machine machine = with_everything();
    expect_equal(parse_machine(to_toml(machine), "again.toml"), machine);
}

TEST(ToToml, KeepsEveryFabric) {
    Machine machine = with_everything();
    machine.fabric.sums = {{Bandwidth{1e10 / 3}, "sums"}, {Seconds{1e-5 / 3}, "late"}};
    const Sourced<Bandwidth> rate{Bandwidth{1e11 / 7}, "a \"rate\""};
    for (const Topology& topology : {Topology{FatTree{{100, 200}, {2.5, 1}, {7, 3}, FatTree::Rails::joined}},
                                     Topology{FatTree{{20'000}, {1}, {}, FatTree::Rails::separate}},
                                     Topology{Dragonfly{30, 30, 30, rate, rate, FabricRouting::adaptive}},
                                     Topology{DragonflyPlus{30, 30, 30, rate, rate, FabricRouting::minimal}}}) {
        machine.fabric.topology = topology;
        expect_equal(parse_machine(to_toml(machine), "again.toml"), machine);
    }
}

TEST(ToToml, KeepsADoubtWhereNoTrainingStepsWereMeasured) {
    Machine machine = with_everything();
    machine.in_situ = {0, 0, "", "a busy host"};
    const Machine again = parse_machine(to_toml(machine), "again.toml");
    EXPECT_EQ(again.in_situ.doubt, "a busy host");
    EXPECT_EQ(again.in_situ.source, "");  // nothing was measured inside training steps: bands stay as wide
}

}  // namespace
}  // namespace rehearse::models
