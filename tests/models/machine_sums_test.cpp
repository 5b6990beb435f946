// SPDX-License-Identifier: Apache-2.0
// What the parts of a machine file add up to, held against the totals that its center or maker publishes. No row was
// computed from the file: where the figure of a part was derived from a total, that total stands in another row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/error.hpp"
#include "models/charge.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// 0: not published.
struct Stated {
    const char* machine;
    std::int64_t nodes, devices;
    double injection;  // bytes a second of a node's NICs, each direction
    double memory;     // bytes of the devices of a node
    double bisection;  // bytes a second, one direction, across the top of the fabric
    DataType type;
    double peak;  // operations a second of all devices, of that type
    const char* source;
};

constexpr DataType f32 = DataType::f32, f16 = DataType::f16;
constexpr Stated published[]{
    {"frontier", 9856, 78848, 100e9, 512e9, 4 * 25e9 * (77.0 * 76 / 2), f16, 9856 * 4 * 383e12,
     "guide of Frontier: 9,856 nodes, 8 dies of 64 GB, 100 GB/s; four links between each two of 77 groups; MI250X"},
    {"lumi-g", 2978, 23824, 100e9, 512e9, 0, f16, 2978 * 4 * 383e12, "LUMI's documentation: 2,978 nodes"},
    {"archer2-gpu", 4, 16, 25e9, 256e9, 0, f16, 16 * 181e12, "ARCHER2's documentation; data sheet of the MI210"},
    {"aurora", 10624, 2 * 63744, 200e9, 768e9, 1.38e15 / 2, f16, 63744 * 832e12,
     "ALCF: 10,624 nodes, 63,744 cards, 768 GB, eight NICs; Ibeid et al. 2025: 1.38 PB/s, both directions"},
    {"perlmutter", 1536, 6144, 100e9, 160e9, 0, f16, 0, "NERSC: 1,536 nodes of four A100 of 40 GB, four NICs"},
    {"perlmutter-cpu", 3072, 3072, 25e9, 512e9, 0, f32, 2 * 15.4e15, "NERSC: 3,072 nodes, one NIC, 15.4 PFLOPS f64"},
    {"polaris", 560, 2240, 50e9, 160e9, 0, f16, 0, "ALCF: 560 nodes of four A100 of 40 GB, two NICs"},
    {"delta", 100, 400, 25e9, 160e9, 0, f16, 0, "NCSA: 100 nodes of four A100 of 40 GB"},
    {"deltaai", 114, 456, 100e9, 384e9, 0, f16, 0, "NCSA: 114 nodes, 384 GB of HBM3, 4 x 200 GbE"},
    {"vista", 600, 600, 50e9, 96e9, 600 * 50e9 / 2, f16, 0, "TACC: 600 nodes of a GPU of 96 GB, 400 Gb/s, no taper"},
    {"stampede3-h100", 27, 108, 0, 4 * 96e9, 0, f16, 0, "TACC: 27 nodes of four H100 of 96 GB"},
    {"stampede3-pvc", 20, 160, 12.5e9, 4 * 128e9, 0, f16, 20 * 4 * 832e12, "TACC: 20 nodes of four, 832 TFLOPS"},
    {"leonardo", 3456, 13824, 50e9, 256e9, 0, f32, 309e15, "CINECA: 13,824 A100 of 64 GB, 400 Gb/s, 309 PFLOPS"},
    {"marenostrum5-acc", 1120, 4480, 100e9, 256e9, 0, f32, 260e15, "BSC: 4,480 H100 of 64 GB, 260 PFLOPS"},
    {"alps", 2688, 10752, 100e9, 384e9, 0, f16, 0, "CSCS: 2,688 nodes, 10,752 GPUs, four NICs a node"},
    {"jupiter", 6000, 24000, 100e9, 384e9, 0, f16, 0, "JSC: about 6,000 nodes of four, 4 x NDR200; 25 groups of 240"},
    {"juwels-booster", 936, 3744, 100e9, 160e9, 0, f16, 0, "JSC: 936 nodes of four A100, four HDR"},
    {"abci-a", 120, 960, 100e9, 320e9, 0, f16, 0, "AIST: 120 nodes (A) of eight A100 of 40 GB, four HDR"},
    {"piz-daint", 5320, 5320, 10.2e9, 16e9, 0, f16, 0, "CSCS: 5,320 nodes of a P100 of 16 GB"},
    {"horeka", 167, 668, 0, 160e9, 0, f16, 0, "KIT: 167 nodes of four A100"},
    {"isambard-ai", 1362, 5448, 100e9, 384e9, 0, f16, 0, "BriCS: 5,448 GPUs, four NICs a node"},
    {"el-capitan", 11136, 44544, 100e9, 512e9, 0, f16, 44544 * 980.6e12, "press of SC24; data sheet of the MI300A"},
    {"dgx-h100", 127, 1016, 400e9, 640e9, 0, f16, 1016 * 989e12, "NVIDIA: 127 nodes, 640 GB, eight of 400 Gb/s"},
    {"dgx-h200", 128, 1024, 400e9, 1128e9, 0, f16, 1024 * 989e12, "NVIDIA: 1,128 GB, eight of 400 Gb/s"},
    {"dgx-b200", 128, 1024, 400e9, 1440e9, 0, f16, 0, "NVIDIA: 1.4 TB, eight of 400 Gb/s"},
    {"dgx-gb200", 8, 576, 72 * 50e9, 13.4e12, 0, f16, 576 * 2.5e15, "NVIDIA: 13.4 TB and 180 PFLOPS (dense) a rack"},
    {"aws-p4d", 64, 512, 50e9, 320e9, 0, f16, 0, "Amazon: 8 GPUs, 320 GB, 400 Gb/s"},
    {"aws-p5", 64, 512, 400e9, 640e9, 0, f16, 0, "Amazon: 8 GPUs, 640 GB, 3,200 Gb/s"},
    {"azure-nd-h100-v5", 300, 2400, 400e9, 640e9, 0, f16, 0, "Microsoft: 8 GPUs, 3.2 Tb/s"},
    {"gcp-a3-high", 64, 512, 100e9, 640e9, 0, f16, 0, "Google: 8 GPUs, 4 x 200 Gb/s of 1,000 for them"},
    {"gcp-a3-mega", 64, 512, 200e9, 640e9, 0, f16, 0, "Google: 8 GPUs, 8 x 200 Gb/s of 1,800 for them"},
};

double injection(const Machine& machine) {
    const auto nics = std::ranges::count(machine.nodes[0].vertices, VertexKind::nic, &Vertex::kind);
    return static_cast<double>(nics) * machine.fabric.link.value.value;
}

double memory_of_node(const Machine& machine) {
    double sum = 0;
    for (const Vertex& vertex : machine.nodes[0].vertices)
        if (vertex.kind == VertexKind::device)
            sum += machine.classes[static_cast<std::size_t>(vertex.device_class)].memory.value.value;
    return sum;
}

// Half of the up-links of all children of the top switch, or half of all links between groups.
double bisection(const Machine& machine) {
    if (const auto* fly = std::get_if<Dragonfly>(&machine.fabric.topology))
        return static_cast<double>(fly->groups * (fly->groups - 1)) * fly->global.value.value / 2;
    const auto& tree = std::get<FatTree>(machine.fabric.topology);
    double taper = 1;
    for (std::size_t level = 0; level + 1 < tree.taper.size(); ++level) taper *= tree.taper[level];
    return static_cast<double>(node_count(machine)) * injection(machine) / taper / 2;
}

void PrintTo(const Stated& it, std::ostream* out) { *out << it.machine; }

class Sums : public testing::TestWithParam<Stated> {};

// A fiftieth covers what is published rounded ("309 PFLOPS", "about 6,000 nodes").
TEST_P(Sums, AreThoseThatArePublished) {
    const Stated& stated = GetParam();
    SCOPED_TRACE(stated.source);
    const Machine machine = load_machine(stated.machine);
    EXPECT_EQ(node_count(machine), stated.nodes);
    EXPECT_EQ(device_count(machine), stated.devices);
    const auto near = [](double value, double wanted) { return wanted == 0 || std::abs(value / wanted - 1) < 0.02; };
    EXPECT_PRED2(near, injection(machine), stated.injection);
    EXPECT_PRED2(near, memory_of_node(machine), stated.memory);
    if (stated.bisection > 0) {
        EXPECT_PRED2(near, bisection(machine), stated.bisection);
    }
    if (stated.peak > 0) {
        const double peak = class_of(machine, 0).peak.at(stated.type).value.value;
        EXPECT_PRED2(near, peak * static_cast<double>(stated.devices), stated.peak);
    }
}

INSTANTIATE_TEST_SUITE_P(Machines, Sums, testing::ValuesIn(published), [](const auto& test) {
    std::string name = test.param.machine;
    std::ranges::replace(name, '-', '_');
    return name;
});

double links_to(const Machine& machine, std::size_t vertex, const std::function<bool(const Vertex&)>& other) {
    const NodeKind& node = machine.nodes[0];
    double sum = 0;
    for (const NodeLink& link : node.links) {
        const auto a = static_cast<std::size_t>(link.a), b = static_cast<std::size_t>(link.b);
        if (a != vertex && b != vertex) continue;
        if (other(node.vertices[a == vertex ? b : a])) sum += link.bandwidth.value.value;
    }
    return sum;
}

// LUMI's documentation: five links of 50 GB/s leave a card; the two dies of one are joined by 200 GB/s.
TEST(Mi250x, FiveLinksLeaveEachCard) {
    const auto device = [](const Vertex& vertex) { return vertex.kind == VertexKind::device; };
    for (const char* name : {"frontier", "lumi-g"}) {
        const Machine machine = load_machine(name);
        for (std::size_t card = 0; card < 4; ++card) {
            const double both = links_to(machine, 2 * card, device) + links_to(machine, 2 * card + 1, device);
            EXPECT_EQ(both, 2 * 200e9 + 5 * 50e9) << name << ", card " << card;
        }
    }
}

// NVIDIA: 130 TB/s of NVLink a rack; Google: 3.6 TB/s of a node. Both directions together.
TEST(NvSwitch, CarriesWhatIsPublished) {
    const auto total = [](const char* name) {
        const Machine machine = load_machine(name);
        double sum = 0;
        for (std::size_t i = 0; i < machine.nodes[0].vertices.size(); ++i)
            if (machine.nodes[0].vertices[i].kind == VertexKind::device)
                sum += 2 * links_to(machine, i, [](const Vertex& v) { return v.bridge == BridgeKind::nvlink; });
        return sum;
    };
    EXPECT_NEAR(total("dgx-gb200"), 130e12, 0.5e12);
    EXPECT_NEAR(total("gcp-a3-high") / 2, 3.6e12, 1);
    EXPECT_NEAR(total("dgx-h200"), 7.2e12, 1);
}

TEST(Charge, IsWhatTheCenterPublishes) {
    const auto vista = load_charge("vista"), delta = load_charge("delta"), archer = load_charge("archer2-gpu");
    ASSERT_TRUE(vista && delta && archer);
    EXPECT_EQ(vista->unit, "SU");
    EXPECT_EQ(vista->factor.value, 1);
    EXPECT_EQ(delta->factor.value, 4);   // "a job that runs on a 4-way GPU node for one hour": 4 SUs
    EXPECT_EQ(archer->factor.value, 0);  // "your budget will not be charged"
    EXPECT_EQ(longest_queue(*vista, 8)->name, "gh");
    EXPECT_EQ(longest_queue(*vista, 64)->wall, Seconds{48.0 * 3600});
    EXPECT_FALSE(longest_queue(*vista, 65));
    EXPECT_EQ(longest_queue(*load_charge("aurora"), 1024)->name, "small");
    EXPECT_FALSE(load_charge("dgx2"));
    EXPECT_TRUE(load_charge("perlmutter"));
}

TEST(Charge, OfAMachineThatExtendsAnotherIsItsOwn) {
    EXPECT_EQ(load_charge("jupiter")->queues.front().most, 6000);
    EXPECT_EQ(load_charge("isambard-ai")->queues.size(), 1U);
}

TEST(Charge, OfNonsenseIsRefused) {
    const std::string one =
        "name = \"m\"\n[[device]]\nname = \"card\"\nlike = \"p40\"\n"
        "[[node]]\nname = \"n\"\ndevices = [{ class = \"card\", name = \"gpu\" }]\n"
        "[charge]\nunit = \"SU\"\nfactor = { value = 1, source = \"x\" }\n";
    EXPECT_NO_THROW(parse_machine(one, "m.toml"));
    const std::string queue = "[[charge.queue]]\nname = \"q\"\nwall = \"2h\"\nsource = \"x\"\n";
    EXPECT_THAT([&] { parse_machine(one + queue, "m.toml"); }, ThrowsMessage<InputError>(HasSubstr("'nodes'")));
    EXPECT_THAT([&] { parse_machine(one + queue + "nodes = [4, 2]\n", "m.toml"); },
                ThrowsMessage<InputError>(HasSubstr("fewest and the most")));
    EXPECT_THAT([&] { parse_machine(one + "uni = 3\n", "m.toml"); }, ThrowsMessage<InputError>(HasSubstr("uni")));
}

// Devices of the catalog that no shipped machine has.
TEST(DevicesAlone, WithoutAMachineCanBeTaken) {
    for (const char* name : {"mi300x", "l4", "l40s", "rtx3090", "rtx4090"}) {
        const std::string text = std::string("name = \"m\"\n[[device]]\nname = \"card\"\nlike = \"") + name +
                                 "\"\n[[node]]\nname = \"n\"\ndevices = [{ class = \"card\", name = \"gpu\" }]\n";
        const Machine machine = parse_machine(text, "m.toml");
        EXPECT_GT(machine.classes[0].peak.at(DataType::f16).value.value, 70e12) << name;
        EXPECT_NE(machine.classes[0].tiles, nullptr) << name;
    }
}

}  // namespace
}  // namespace rehearse::models
