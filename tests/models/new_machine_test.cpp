// SPDX-License-Identifier: Apache-2.0
// A cluster from answers and from what its tools print. Oracle: texts in those tools' documented forms, counted by
// hand.
#include "models/new_machine.hpp"

#include <gmock/gmock.h>

#include <numeric>

#include "core/error.hpp"
#include "models/lstopo_text.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Two sockets, four H100 with six links between every two, a card for each two.
const std::string topology =
    "\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV6\tNV6\tNV6\tPIX\tSYS\t0-31\t0\t\tN/A\n"
    "GPU1\tNV6\t X \tNV6\tNV6\tNODE\tSYS\t0-31\t0\t\tN/A\n"
    "GPU2\tNV6\tNV6\t X \tNV6\tSYS\tPIX\t32-63\t1\t\tN/A\n"
    "GPU3\tNV6\tNV6\tNV6\t X \tSYS\tNODE\t32-63\t1\t\tN/A\n"
    "NIC0\tPIX\tNODE\tSYS\tSYS\t X \tSYS\n"
    "NIC1\tSYS\tSYS\tPIX\tNODE\tSYS\t X \n\nLegend:\n\n  X    = Self\n";

// Two leaf switches of eight hosts each, four ports up.
std::string fabric() {
    std::string text = "#\n# Topology file: generated\n#\n";
    for (int leaf = 0; leaf < 2; ++leaf) {
        text +=
            "switchguid=0x1\nSwitch\t40 \"S-leaf" + std::to_string(leaf) + "\"\t\t# \"leaf\" enhanced port 0 lid 3\n";
        for (int host = 0; host < 8; ++host) {
            text += "[" + std::to_string(host + 1) + "]\t\"H-" + std::to_string(8 * leaf + host) +
                    "\"[1](1) \t\t# \"node\" lid 5 4xNDR\n";
        }
        for (int up = 0; up < 4; ++up)
            text += "[" + std::to_string(20 + up) + "]\t\"S-spine\"[" + std::to_string(4 * leaf + up) + "]\t# 4xNDR\n";
    }
    text += "Switch\t40 \"S-spine\"\t\t# \"spine\"\n[1]\t\"S-leaf0\"[20]\t# 4xNDR\n";
    for (int host = 0; host < 16; ++host) text += "Ca\t1 \"H-" + std::to_string(host) + "\"\t\t# \"node\"\n";
    return text;
}

NewMachine worked() {
    NewMachine machine;
    machine.name = "our-h100";
    machine.nics.value = 1;
    machine = with_ibnetdiscover(std::move(machine), fabric(), "fabric.txt");
    return with_nvidia_topology(std::move(machine), topology, "topo.txt");
}

TEST(NewMachine, OfSixteenNodesOfFourH100) {
    const NewMachine machine = worked();
    EXPECT_EQ(machine.nodes.value, 16);
    EXPECT_EQ(machine.devices.value, 4);
    EXPECT_EQ(machine.processors, 2);
    EXPECT_THAT(machine.device_at, ElementsAre(0, 0, 1, 1));
    EXPECT_THAT(machine.nic_at, ElementsAre(0, 1));
    EXPECT_EQ(machine.device_link->value, Bandwidth{150e9}) << "six links of 25 GB/s";
    EXPECT_FALSE(machine.switched);
    EXPECT_EQ(machine.nic.value, Bandwidth{50e9});
    EXPECT_THAT(machine.tree.value, ElementsAre(8, 2));
    EXPECT_THAT(machine.taper, ElementsAre(2, 1));
    const Machine read = parse_machine(to_toml(machine), "our.toml");
    EXPECT_EQ(node_count(read), 16);
    EXPECT_EQ(device_count(read), 64);
    const auto& tree = std::get<FatTree>(read.fabric.topology);
    EXPECT_THAT(tree.down, ElementsAre(8, 2));
    EXPECT_THAT(tree.taper, ElementsAre(2, 1));
    EXPECT_EQ(read.nodes.front().links.size(), 6U + 4U + 2U + 1U) << "six pairs, cards, NICs, sockets";
}

TEST(NewMachine, KnowsSwitchesByTheNumberOfLinks) {
    std::string eight = "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n";
    for (int i = 0; i < 3; ++i) {
        eight += "GPU" + std::to_string(i);
        for (int k = 0; k < 3; ++k) eight += i == k ? "\tX" : "\tNV18";
        eight += "\t0-63\t0\n";
    }
    const NewMachine machine = with_nvidia_topology({}, eight, "topo.txt");
    EXPECT_TRUE(machine.switched) << "18 links to each of two others are more than a card has";
    EXPECT_EQ(machine.device_link->value, Bandwidth{450e9});
    const Machine read = parse_machine(to_toml(machine), "our.toml");
    EXPECT_EQ(device_count(read), 3);
}

// As in a DGX-1, where not every two are linked, and some by two links.
TEST(NewMachine, KeepsLinksPairByPairWhereTheyDiffer) {
    const char* text =
        "\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\nGPU0\tX\tNV1\tNV2\tSYS\tPIX\t0-19\n"
        "GPU1\tNV1\tX\tSYS\tNV2\tPIX\t0-19\nGPU2\tNV2\tSYS\tX\tNV1\tPHB\t0-19\nGPU3\tSYS\tNV2\tNV1\tX\tPHB\t0-19\n"
        "mlx5_0\tPIX\tPIX\tPHB\tPHB\tX\n";
    NewMachine machine;
    machine.device = "v100-sxm2";
    machine = with_nvidia_topology(std::move(machine), text, "topo.txt");
    EXPECT_FALSE(machine.device_link);
    ASSERT_EQ(machine.pairs.size(), 4U);
    EXPECT_EQ(machine.pairs[1].second, 2);
    EXPECT_EQ(machine.pairs[1].link.value, Bandwidth{50e9});
    const Machine read = parse_machine(to_toml(machine), "our.toml");
    EXPECT_EQ(read.nodes.front().links.size(), 4U + 4U) << "pairs, and each device's link to the processor";
    machine.devices.value = 3;
    EXPECT_THAT([&] { to_toml(machine); }, ThrowsMessage<InputError>(HasSubstr("devices 1 and 3: there are 3")));
}

// Of drivers before 450, which print no NUMA nodes.
std::string without_numa(const std::string& first, const std::string& second) {
    return "\tGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tbnxt_re1\tCPU Affinity\n"
           "GPU0\t X \tNV2\tSYS\tSYS\tPIX\tSYS\t" +
           first + "\nGPU1\tNV2\t X \tSYS\tSYS\tPIX\tSYS\t" + first + "\nGPU2\tSYS\tSYS\t X \tNODE\tSYS\tPIX\t" +
           second + "\nGPU3\tSYS\tSYS\tNODE\t X \tSYS\tPIX\t" + second +
           "\nmlx5_0\tPIX\tPIX\tSYS\tSYS\t X \tSYS\t\nbnxt_re1\tSYS\tSYS\tPIX\tPIX\tSYS\t X \t\n";
}

TEST(NewMachine, PutsGpusAtProcessorsWithoutNumaNodes) {
    for (const auto& [first, second] : {std::pair{"0-19,40-59", "20-39,60-79"}, std::pair{"N/A", "N/A"}}) {
        const NewMachine machine = with_nvidia_topology({}, without_numa(first, second), "topo.txt");
        EXPECT_EQ(machine.processors, 2) << first;
        EXPECT_THAT(machine.device_at, ElementsAre(0, 0, 1, 1)) << first;
        EXPECT_THAT(machine.nic_at, ElementsAre(0, 1)) << first;
        EXPECT_EQ(device_count(parse_machine(to_toml(machine), "our.toml")), 4);
    }
    EXPECT_EQ(with_nvidia_topology({}, without_numa("0-79", "0-79"), "topo.txt").processors, 1)
        << "the tool says that all cores are as near";
}

TEST(NewMachine, SaysOfANetworkCardThatNoGpuIsNear) {
    const char* text =
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\tX\tSYS\tSYS\t0-7\t0\n"
        "GPU1\tSYS\tX\tSYS\t8-15\t1\nNIC0\tSYS\tSYS\tX\n";
    const NewMachine machine = with_nvidia_topology({}, text, "topo.txt");
    EXPECT_EQ(machine.processors, 2);
    EXPECT_THAT(machine.nic_at, ElementsAre(0));
    EXPECT_THAT(machine.notes, ElementsAre(HasSubstr("no GPU is near NIC0")));
}

// GA102: 14.0625 GB/s a link and direction. Of a card that nobody has told us of, 25 GB/s are assumed and said to be.
TEST(NewMachine, NvLinksAreAsFastAsTheCardHasThem) {
    const char* text = "\tGPU0\tGPU1\tCPU Affinity\nGPU0\tX\tNV4\t0-15\nGPU1\tNV4\tX\t0-15\n";
    NewMachine machine;
    machine.device = "rtx3090";
    const NewMachine known = with_nvidia_topology(machine, text, "topo.txt");
    EXPECT_EQ(known.device_link->value, Bandwidth{56.25e9});
    EXPECT_THAT(known.device_link->source,
                HasSubstr("4 NVLinks of 14.0625 GB/s (NVIDIA's white paper of GA102) between every two"));
    EXPECT_FALSE(known.switched);
    EXPECT_THAT(known.notes, ElementsAre());
    machine.device = "mi210";
    const NewMachine unknown = with_nvidia_topology(machine, text, "topo.txt");
    EXPECT_EQ(unknown.device_link->value, Bandwidth{100e9});
    EXPECT_THAT(unknown.device_link->source, HasSubstr("25 GB/s (assumed of this device)"));
    EXPECT_THAT(unknown.notes, ElementsAre(HasSubstr("rehearse knows no NVLink of mi210: 25 GB/s a link is assumed")));
}

TEST(NewMachine, SaysWhatIsAssumed) {
    NewMachine machine;
    machine.nodes = {4, "told"};
    const std::string text = to_toml(machine);
    EXPECT_THAT(text, HasSubstr("assumed"));
    EXPECT_EQ(device_count(parse_machine(text, "mine.toml")), 4);
    machine.devices.value = 4;
    machine.device_link = Answer<Bandwidth>{Bandwidth{50e9}, "data sheet"};
    machine.processors = 2;
    EXPECT_EQ(device_count(parse_machine(to_toml(machine), "mine.toml")), 16);
}

// Eight devices with 18 NVLinks of 25 GB/s each to switches: of Hopper's NCCL has 20.6 GB/s, and 0.85 of it in sums.
TEST(NewMachine, SwitchesOfDevicesThatHaveNvlsSum) {
    NewMachine machine;
    machine.devices.value = 8;
    machine.switched = true;
    machine.device_link = Answer<Bandwidth>{Bandwidth{450e9}, "told"};
    const auto read = [&] { return parse_machine(to_toml(machine), "mine.toml"); };
    EXPECT_EQ(read().nodes.front().sums.rate.value, Bandwidth{315e9});
    EXPECT_DOUBLE_EQ(read().nodes.front().sums.latency.value.value, 25e-6);
    EXPECT_THAT(read().nodes.front().sums.rate.source, HasSubstr("0.85 of it by NVLS on Hopper"));
    EXPECT_THAT(notes_of(machine), ElementsAre(HasSubstr("[node.switch_sums]")));
    EXPECT_EQ(read().inside.reduce.value, Bandwidth{949e9}) << "three accesses a byte at 0.85 of 3,350 GB/s";
    const NodeKind eos = load_machine("eos").nodes.front();
    EXPECT_EQ(eos.sums.rate.value, read().nodes.front().sums.rate.value);
    machine.device = "b200-sxm";
    machine.device_link = Answer<Bandwidth>{Bandwidth{900e9}, "told"};
    EXPECT_EQ(read().nodes.front().sums.rate.value, load_machine("dgx-b200").nodes.front().sums.rate.value);
    machine.device = "a100-40gb";
    EXPECT_EQ(read().nodes.front().sums.rate.source, "") << "an NVSwitch of A100 does not sum";
    EXPECT_EQ(read().inside.reduce.value, Bandwidth{441e9}) << "of 1,555 GB/s";
    machine.device = "h100-sxm";
    machine.switched = false;
    EXPECT_EQ(read().nodes.front().sums.rate.source, "");
    EXPECT_THAT(notes_of(machine), ElementsAre());
}

// A table without network cards, of a node that lstopo found two cards of at the second socket.
TEST(NewMachine, KeepsNetworkCardsThatTheTableDoesNotList) {
    NewMachine machine;
    machine.nics = {2, "lstopo"};
    machine.nic_at = {1, 1};
    machine.processors = 2;
    machine.device_at = {1, 1, 0, 0};
    const std::string table =
        "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV6\tNV6\tNV6\t0-31\t1\n"
        "GPU1\tNV6\t X \tNV6\tNV6\t0-31\t1\nGPU2\tNV6\tNV6\t X \tNV6\t32-63\t0\n"
        "GPU3\tNV6\tNV6\tNV6\t X \t32-63\t0\n";
    const NewMachine both = with_nvidia_topology(machine, table, "topo.txt");
    EXPECT_EQ(both.nics.value, 2);
    EXPECT_EQ(both.nics.source, "lstopo");
    EXPECT_THAT(both.nic_at, ElementsAre(1, 1));
    EXPECT_THAT(both.device_at, ElementsAre(1, 1, 0, 0)) << "by lstopo's numbers, as the network cards are";
    EXPECT_EQ(both.device_link->value, Bandwidth{150e9});
    const NewMachine listed = with_nvidia_topology(machine, topology, "topo.txt");
    EXPECT_THAT(listed.nic_at, ElementsAre(0, 1));
    EXPECT_EQ(with_nvidia_topology({}, table, "topo.txt").nics.value, 1) << "assumed";
}

TEST(NewMachine, RefusesAnswersThatCannotBe) {
    NewMachine machine;
    machine.nodes = {20, "told"};
    machine.tree.value = {8, 2};
    EXPECT_THAT([&] { to_toml(machine); },
                ThrowsMessage<InputError>(HasSubstr("8 x 2 has places for 16 nodes, not for 20")));
    machine.nodes = {0, "told"};
    EXPECT_THAT([&] { to_toml(machine); }, ThrowsMessage<InputError>(HasSubstr("nodes 0: more than 0")));
    machine.nodes = {16, "told"};
    machine.taper = {1, 2};
    EXPECT_THAT([&] { to_toml(machine); }, ThrowsMessage<InputError>(HasSubstr("taper 2 of the last level")));
    EXPECT_EQ(port_rate("NDR"), Bandwidth{50e9});
    EXPECT_EQ(port_rate("200Gbps"), Bandwidth{25e9});
    EXPECT_THAT([] { port_rate("fast"); }, ThrowsMessage<InputError>(HasSubstr("no rate of a port")));
}

TEST(NewMachine, RefusesOtherTexts) {
    EXPECT_THAT([] { with_nvidia_topology({}, "hello\n", "x.txt"); },
                ThrowsMessage<InputError>(HasSubstr("x.txt: no table of nvidia-smi topo -m")));
    EXPECT_THAT([] { with_nvidia_topology({}, "\tGPU0\tGPU1\nGPU0\tX\n", "x.txt"); },
                ThrowsMessage<InputError>(HasSubstr("x.txt:2: GPU0 has 1 entries for 2 columns")));
    EXPECT_THAT([] { with_nvidia_topology({}, "GPU0 GPU1\nGPU0 0 15\nGPU1 15 0\n", "x.txt"); },
                ThrowsMessage<InputError>(HasSubstr("x.txt:2: '0' is no connection")));
    EXPECT_THAT([] { with_nvidia_topology({}, "GPU0\tX\tNV4\nGPU1\tNV4\tX\n", "x.txt"); },
                ThrowsMessage<InputError>(HasSubstr("x.txt:1: the line above, which names the columns, is missing")))
        << "else it is a node of one device";
    EXPECT_THAT([] { with_nvidia_topology({}, "\tGPU0\tGPU1\nGPU0\tX\tNV4\n", "x.txt"); },
                ThrowsMessage<InputError>(HasSubstr("x.txt: the row of GPU1 is missing")));
    EXPECT_THAT([] { with_ibnetdiscover({}, "Switch 40 leaf\n", "x.txt"); },
                ThrowsMessage<InputError>(HasSubstr("x.txt:1: no name in quotation marks")));
    EXPECT_THAT([] { with_ibnetdiscover({}, "", "x.txt"); },
                ThrowsMessage<InputError>(HasSubstr("no switch with a host")));
    EXPECT_THAT([] { with_lstopo({}, "/nowhere.xml"); }, ThrowsMessage<InputError>(HasSubstr("/nowhere.xml")));
}

const std::string declared =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<!-- > -->\n";

// Two sockets; a card of three libraries at the second; a card at the first and two ports of one network card there.
TEST(Lstopo, CountsEachCardOnceAtItsSocket) {
    const lstopo::Node node = lstopo::parse(
        declared +
            "<topology version=\"2.0\"><object type=\"Machine\" os_index=\"0\" cpuset='0x3'>\n"
            "<info name=\"Backend\" value=\"a>b\"/>"
            "<object type=\"Package\" os_index=\"0\"><object type=\"NUMANode\"/><object type=\"PU\"/>\n"
            "<object type=\"Bridge\"><object type=\"PCIDev\"><object type=\"OSDev\" osdev_type=\"5\"/></object>\n"
            "<object type=\"PCIDev\"><object type=\"OSDev\" name=\"ib0\" osdev_type=\"2\"/>\n"
            "<object type=\"OSDev\" name=\"mlx5_0\" osdev_type=\"3\"/></object>\n"
            "<object type=\"PCIDev\"><object type=\"OSDev\" name=\"mlx5_1\" osdev_type=\"3\"/></object></object>\n"
            "</object><object type=\"Package\" os_index=\"1\"><object type=\"Group\"><object type=\"PCIDev\">\n"
            "<object type=\"OSDev\" name=\"cuda0\" osdev_type=\"5\"/><object type=\"OSDev\" osdev_type=\"1\"/>"
            "<object type=\"OSDev\" name=\"opencl0d0\" osdev_type=\"5\" /></object></object></object>\n"
            "<object type=\"PCIDev\"><object type=\"OSDev\" osdev_type=\"5\"/></object></object>\n"
            "<distances2 nbobjs=\"2\"><indexes length=\"3\">0 1</indexes></distances2></topology>\n",
        "node.xml");
    EXPECT_EQ(node.packages, 2);
    EXPECT_THAT(node.cards, ElementsAre(0, 1, 0)) << "the last one is at no socket";
    EXPECT_THAT(node.ports, ElementsAre(0, 0));
    const lstopo::Node old = lstopo::parse(
        "<topology><object type=\"Machine\"><object type=\"Socket\"/><object type=\"Socket\"/></object></topology>",
        "node.xml");
    EXPECT_EQ(old.packages, 2) << "hwloc 1 calls them so";
}

/// A machine with these objects in a package, and these outside of it.
lstopo::Node node_of(const std::string& within, const std::string& outside = "") {
    return lstopo::parse("<topology version=\"2.0\"><object type=\"Machine\"><object type=\"Package\">" + within +
                             "</object>" + outside + "</object></topology>",
                         "node.xml");
}
std::string pci(const std::string& objects, const std::string& type = "0302 [10de:2330] [10de:16c1] a1") {
    return "<object type=\"PCIDev\" pci_type=\"" + type + "\">" + objects + "</object>";
}
std::string os_device(const std::string& name, int type, const std::string& within = "") {
    return "<object type=\"OSDev\" name=\"" + name + "\" osdev_type=\"" + std::to_string(type) + "\">" + within +
           "</object>";
}

TEST(Lstopo, CountsCardsOfEachLibraryAndNoneTwice) {
    for (const char* library : {"rsmi", "nvml"}) {
        const std::string name = library;
        EXPECT_EQ(node_of(pci(os_device(name + "0", 1)) + pci(os_device(name + "1", 1))).cards.size(), 2U) << name;
    }
    EXPECT_EQ(node_of(pci(os_device("cuda0", 5) + os_device("nvml0", 1))).cards.size(), 1U);
    EXPECT_EQ(node_of(pci(os_device("ze0", 5, os_device("ze0.0", 5) + os_device("ze0.1", 5)))).cards.size(), 1U)
        << "parts of one card";
    EXPECT_EQ(node_of(pci(os_device("card0", 1) + os_device("renderD128", 1), "0300 [1a03:2000] [15d9:1b0f] 41") +
                      pci(os_device("card1", 1) + os_device("nvml0", 1)))
                  .cards.size(),
              1U)
        << "the screen of the board's management is none";
}

TEST(Lstopo, AProcessorOfOpenClIsNoCard) {
    const std::string pocl = os_device("opencl0d0", 5, "<info name=\"OpenCLDeviceType\" value=\"CPU\"/>");
    const std::string gpus = pci(os_device("cuda0", 5)) + pci(os_device("cuda1", 5));
    EXPECT_EQ(node_of(gpus, pocl).cards.size(), 2U);
    EXPECT_EQ(node_of("", pocl).cards.size(), 0U);
    EXPECT_EQ(node_of(gpus, os_device("opencl0d0", 5) + os_device("opencl0d1", 5)).cards.size(), 2U)
        << "the same ones, of which OpenCL did not say where they are";
}

TEST(Lstopo, CardsWithoutAPciDeviceCountByTheirLibrary) {
    const std::string loose = os_device("cuda0", 5) + os_device("cuda1", 5) + os_device("nvml0", 1);
    EXPECT_THAT(node_of("", loose).cards, ElementsAre(0, 0));
    EXPECT_EQ(node_of("", os_device("mlx5_0", 3) + os_device("mlx5_1", 3)).ports.size(), 2U);
}

TEST(Lstopo, DisplayControllersCountWhereNoLibraryHasADevice) {
    const lstopo::Node node =
        node_of(pci("") + pci(os_device("card1", 1)) + pci(os_device("card0", 1), "0300 [1a03:2000] [15d9:1b0f] 41"));
    EXPECT_EQ(node.cards.size(), 2U);
    EXPECT_TRUE(node.by_class);
    EXPECT_FALSE(node_of(pci(os_device("cuda0", 5)) + pci("")).by_class);
    EXPECT_EQ(node_of(pci(os_device("cuda0", 5)) + pci("")).cards.size(), 1U);
}

TEST(Lstopo, PortsOfSlingshotCount) {
    const std::string card = pci(os_device("hsn0", 2) + os_device("cxi0", 3), "0200 [17db:0501] [17db:0000] 00");
    EXPECT_EQ(node_of(card + pci(os_device("hsn1", 2), "0200 [17db:0501] [17db:0000] 00") + pci(os_device("eth0", 2)))
                  .ports.size(),
              2U);
}

TEST(Lstopo, RefusesWhatIsNoSuchXml) {
    const std::pair<const char*, const char*> refused[] = {
        {"", "node.xml:1: No document element found"},
        {"hello", "node.xml:1: No document element found"},
        {"<topology>\n</topology>", "node.xml:1: no object of hwloc"},
        {"\n<html><object/></html>", "node.xml:2: no topology of hwloc"},
        {"<topology><object/></topology>\n<topology/>", "node.xml:2: no topology of hwloc"},
        {"\n<topology version=\"3.0\"><object/></topology>", "node.xml:2: version 3.0 of the file is not read here"},
        {"<topology>\n<object type=\"Machine\"></topology>", "node.xml:2: Start-end tags mismatch"},
        {"</topology>", "Start-end tags mismatch"},
        {"<topology><object/>", "node.xml:1: "},
        {"<topology><object type=\"Machine", "Error parsing element attribute"},
        {"<topology><object type", "node.xml:1: "},
        {"<topology><object type=5/></topology>", "Error parsing element attribute"},
        {"<topology>\n\n< object/></topology>", "node.xml:3: "},
        {"<topology><!-- <object/></topology>", "Error parsing comment"},
    };
    for (const auto& [text, message] : refused) {
        EXPECT_THAT(([text = text] { lstopo::parse(text, "node.xml"); }),
                    ThrowsMessage<InputError>(
                        AllOf(HasSubstr(message), HasSubstr("right would be the XML that `lstopo node.xml` writes"))));
    }
}

}  // namespace
}  // namespace rehearse::models
