// SPDX-License-Identifier: Apache-2.0
// Every mistake in a machine file is told with the line that it is on, counted by hand in the file below.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "models/models.hpp"

namespace rehearse::models {
namespace {

using testing::HasSubstr;

constexpr std::string_view good = R"(name = "mine"
summary = "two servers"
[[device]]
name = "gpu"
source = "sheet"
memory = "16GB"
memory_bandwidth = "900GBps"
peak.f32 = "15TFLOPS"
[[device.efficiency]]
kind = "conv2d"
fraction = 0.5
error = 0.1
[[node]]
name = "server"
count = 2
source = "sheet"
devices = [{ class = "gpu", name = "gpu", count = 2 }]
nics = [{ name = "nic" }]
bridges = [{ name = "switch" }]
[[node.link]]
from = ["gpu0", "gpu1", "nic"]
to = "switch"
bandwidth = "16GBps"
[fabric]
source = "sheet"
link = "100Gbps"
latency = "1us"
[fabric.fat-tree]
down = [2, 1]
taper = [2, 1]
[messaging.inside]
source = "sheet"
overhead = "1us"
fraction = 0.9
reduce = "50GBps"
error = 0.1
[[storage]]
name = "disk"
read = { value = "2GBps", source = "me" }
[messaging.across]
source = "sheet"
overhead = "2us"
fraction = 0.8
reduce = "50GBps"
error = 0.1
)";

struct Mistake {
    const char* name;
    const char* was;  // in the file above, the first time it occurs
    const char* is;
    int line;
    const char* message;
};

void PrintTo(const Mistake& it, std::ostream* out) { *out << it.name; }

class MachineFile : public testing::TestWithParam<Mistake> {};

TEST_P(MachineFile, TellsTheLineAndWhatIsWrong) {
    const Mistake& mistake = GetParam();
    std::string text(good);
    const std::size_t at = text.find(mistake.was);
    ASSERT_NE(at, std::string::npos) << mistake.was;
    text.replace(at, std::string_view(mistake.was).size(), mistake.is);
    try {
        parse_machine(text, "mine.toml");
        FAIL() << "it was taken";
    } catch (const InputError& error) {
        EXPECT_THAT(error.what(), testing::StartsWith(fmt::format("mine.toml:{}: ", mistake.line)));
        EXPECT_THAT(error.what(), HasSubstr(mistake.message));
    }
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, MachineFile,
    testing::Values(
        Mistake{"no_value", "summary = \"two servers\"", "summary =", 2, "not TOML"},
        Mistake{"open_string", "\"two servers\"", "\"two servers", 2, "not TOML"},
        Mistake{"key_twice", "count = 2\n", "count = 2\ncount = 3\n", 16, "not TOML"},
        Mistake{"fabric_twice", "[[storage]]", "[fabric]\n[[storage]]", 37, "not TOML"},
        Mistake{"no_name", "name = \"mine\"\n", "", 1, "'name' is missing"},
        Mistake{"empty_name", "\"mine\"", "\"\"", 1, "'name' is empty"},
        Mistake{"number_as_name", "\"mine\"", "5", 1, "'name' must be a string"},
        Mistake{"other_schema", "name = \"mine\"", "schema = \"rehearse.machine/9\"\nname = \"mine\"", 1,
                "reads 'rehearse.machine/1'"},
        Mistake{"unknown_key", "memory_bandwidth = ", "memory_bandwith = ", 7, "did you mean 'memory_bandwidth'?"},
        Mistake{"unknown_top_key", "[[storage]]", "[[storge]]", 37, "did you mean 'storage'?"},
        Mistake{"unknown_type", "peak.f32", "peak.f31", 8, "did you mean 'f32'?"},
        Mistake{"no_memory", "memory = \"16GB\"\n", "", 3, "device 'gpu': 'memory' is missing"},
        Mistake{"no_unit", "\"16GB\"", "\"16\"", 6, "memory: '16' is not a size: the unit is missing"},
        Mistake{
            "bare_number", "\"16GB\"", "16", 6,
            "memory has no unit: write it as a string: '16' is not a size: the unit is missing (write it like 25MB)"},
        Mistake{"other_quantity", "\"16GB\"", "\"16GBps\"", 6, "'16GBps' is not a size"},
        Mistake{"time_for_bandwidth", "\"900GBps\"", "\"900us\"", 7, "'900us' is not a bandwidth"},
        Mistake{"misspelt_unit", "\"100Gbps\"", "\"100Gps\"", 26, "unknown unit 'Gps'"},
        Mistake{"zero", "\"900GBps\"", "\"0GBps\"", 7, "it must be above zero"},
        Mistake{"negative", "\"900GBps\"", "\"-1GBps\"", 7, "it must be above zero"},
        Mistake{"negative_time", "\"1us\"", "\"-1us\"", 27, "it must be above zero"},
        Mistake{"no_source", "source = \"sheet\"\n", "", 5, "memory has no source"},
        Mistake{"no_source_in_table", "{ value = \"2GBps\", source = \"me\" }", "{ value = \"2GBps\" }", 39,
                "value has no source"},
        Mistake{"plain_figure_without_source", "{ value = \"2GBps\", source = \"me\" }", "\"2GBps\"", 39,
                "read has no source"},
        Mistake{"figure_with_other_key", "source = \"me\" }", "sauce = \"me\", source = \"me\" }", 39,
                "unknown key 'sauce'"},
        Mistake{"no_devices", "devices = [{ class = \"gpu\", name = \"gpu\", count = 2 }]\n", "", 13,
                "node 'server': it has no devices"},
        Mistake{"unknown_class", "class = \"gpu\"", "class = \"gpx\"", 17, "did you mean 'gpu'?"},
        Mistake{"class_twice", "[[node]]",
                "[[device]]\nname = \"gpu\"\nmemory = { value = \"1GB\", source = \"me\" }\n[[node]]", 14,
                "two devices are named 'gpu'"},
        Mistake{"vertex_twice", "{ name = \"switch\" }", "{ name = \"nic\" }", 19,
                "two vertices of the node are named 'nic'"},
        Mistake{"node_twice", "[fabric]\n",
                "[[node]]\nname = \"server\"\ndevices = [{ class = \"gpu\", name = \"g\" }]\n[fabric]\n", 25,
                "two kinds of node are named 'server'"},
        Mistake{
            "storage_twice", "read = { value = \"2GBps\", source = \"me\" }\n",
            "read = { value = \"2GBps\", source = \"me\" }\n[[storage]]\nname = \"disk\"\nread = { value = \"2GBps\", "
            "source = \"me\" }\n",
            41, "two storage tiers are named 'disk'"},
        Mistake{"client_of_a_node", "read = {",
                "per_node = true\nclient = { value = \"1GBps\", source = \"me\" }\nread = {", 40,
                "client is what one node gets of a shared tier"},
        Mistake{"no_nodes", "count = 2\n", "count = 0\n", 15, "it must be in 1.."},
        Mistake{"negative_nodes", "count = 2\n", "count = -2\n", 15, "it must be in 1.."},
        Mistake{"half_a_node", "count = 2\n", "count = 1.5\n", 15, "'count' must be a whole number"},
        Mistake{"no_nic", "nics = [{ name = \"nic\" }]\nbridges = [", "bridges = [{ name = \"nic\" }, ", 13,
                "2 nodes have to talk, and this kind has no nics"},
        Mistake{"unknown_bridge", "{ name = \"switch\" }", "{ name = \"switch\", kind = \"procesor\" }", 19,
                "no bridge is of kind 'procesor' (did you mean 'processor'?); the kinds are pcie, processor, nvlink"},
        Mistake{"unknown_vertex", "\"gpu1\", \"nic\"]", "\"gpu2\", \"nic\"]", 21, "no vertex 'gpu2' (did you mean"},
        Mistake{"unknown_end", "to = \"switch\"", "to = \"swich\"", 22, "did you mean 'switch'?"},
        Mistake{"link_to_itself", "to = \"switch\"", "to = \"gpu0\"", 21, "it joins 'gpu0' to itself"},
        Mistake{"no_end", "to = \"switch\"\n", "", 20, "'to' is missing"},
        Mistake{"two_ways_to_link", "to = \"switch\"", "to = \"switch\"\nall_pairs = [\"gpu0\", \"gpu1\"]", 20,
                "either from"},
        Mistake{"vertex_alone", "\"gpu0\", \"gpu1\", \"nic\"]", "\"gpu0\", \"nic\"]", 13,
                "no link joins 'gpu1' to 'gpu0'"},
        Mistake{"link_without_bandwidth", "bandwidth = \"16GBps\"\n", "", 20, "'bandwidth' is missing"},
        Mistake{"no_fabric_link", "link = \"100Gbps\"\n", "", 24, "'link' is missing"},
        Mistake{"small_tree", "down = [2, 1]", "down = [1, 1]", 29, "places for 1 nodes (1 x 1), the machine has 2"},
        Mistake{"short_taper", "taper = [2, 1]", "taper = [1]", 30, "1 values of taper for 2 levels"},
        Mistake{"widening_taper", "taper = [2, 1]", "taper = [0.5, 1]", 30, "a taper of 0.5: at least 1"},
        Mistake{"taper_of_nothing", "taper = [2, 1]", "taper = [1, 2]", 30,
                "a taper of 2 for the last level, which nothing is above"},
        Mistake{"sourced_widening_taper", "taper = [2, 1]", "taper = { value = [0.5, 1], source = \"me\" }", 30,
                "a taper of 0.5: at least 1"},
        Mistake{"unknown_key_of_a_taper", "taper = [2, 1]", "taper = { value = [2, 1], sauce = \"me\" }", 30,
                "fabric.fat-tree: taper: unknown key 'sauce'"},
        Mistake{"unknown_known_as", "name = \"gpu\"", "name = \"gpu\"\nknown_as = \"gpo\"", 5,
                "no device 'gpo' is known"},
        Mistake{"zero_taper", "taper = [2, 1]", "taper = [1, 0]", 30, "above zero"},
        Mistake{"few_cables", "taper = [2, 1]", "taper = [2, 1]\ncables = [2]", 31, "1 values of cables for 2 levels"},
        Mistake{"no_cables", "taper = [2, 1]", "taper = [2, 1]\ncables = [0, 1]", 31, "cables"},
        Mistake{"unknown_rails", "taper = [2, 1]", "taper = [2, 1]\nrails = \"joint\"", 31,
                "rails cannot be 'joint' (did you mean 'joined'?); it is one of joined, separate"},
        Mistake{"unknown_routing", "[fabric.fat-tree]\ndown = [2, 1]\ntaper = [2, 1]\n",
                "[fabric.dragonfly]\ngroups = 1\nrouters = 1\nnodes = 2\nrouting = \"valiant\"\n", 32,
                "routing cannot be 'valiant'; it is one of minimal, adaptive"},
        Mistake{"leaves_without_spines", "[fabric.fat-tree]\ndown = [2, 1]\ntaper = [2, 1]\n",
                "[fabric.dragonfly-plus]\ngroups = 1\nleaves = 2\nnodes = 1\n", 28, "'up' is missing"},
        Mistake{"sums_without_latency", "[messaging.inside]",
                "[fabric.switch_sums]\nrate = \"10GBps\"\nsource = \"sheet\"\n[messaging.inside]", 31,
                "'latency' is missing"},
        Mistake{"sums_faster_than_the_card", "[messaging.inside]",
                "[fabric.switch_sums]\nrate = \"13GBps\"\nlatency = \"9us\"\nsource = \"sheet\"\n[messaging.inside]",
                32, "13 GB/s are more than the link of 12.5 GB/s of a network card"},
        Mistake{"sums_faster_than_the_link", "[fabric]\n",
                "[node.switch_sums]\nrate = \"17GBps\"\nlatency = \"9us\"\n[fabric]\n", 25,
                "17 GB/s are more than the 16 GB/s that join a device to the switches"},
        Mistake{"no_levels", "down = [2, 1]", "down = []", 29, "'down' must be a list of whole numbers"},
        Mistake{"two_topologies", "[messaging.inside]", "[fabric.star]\n[messaging.inside]", 28, "2 topologies"},
        Mistake{"two_fabrics", "[fabric]\n", "[[fabric]]\n", 24, "'fabric' must be one table"},
        Mistake{"no_topology", "[fabric.fat-tree]\ndown = [2, 1]\ntaper = [2, 1]\n", "", 24, "0 topologies"},
        Mistake{"unknown_topology", "[fabric.fat-tree]", "[fabric.fatree]", 24, "0 topologies"},
        Mistake{
            "no_messaging",
            "[messaging.inside]\nsource = \"sheet\"\noverhead = \"1us\"\nfraction = 0.9\nreduce = \"50GBps\"\nerror = "
            "0.1\n",
            "", 34, "messaging: 'inside' is missing: give overhead, fraction, reduce and error"},
        Mistake{
            "no_messages_across",
            "[messaging.across]\nsource = \"sheet\"\noverhead = \"2us\"\nfraction = 0.8\nreduce = \"50GBps\"\nerror = "
            "0.1\n",
            "", 31, "2 nodes and no [messaging.across]"},
        Mistake{"a_device_passes_nothing_on", "from = [\"gpu0\", \"gpu1\", \"nic\"]\nto = \"switch\"",
                "from = [\"gpu0\", \"nic\", \"switch\"]\nto = \"gpu1\"", 13,
                "no path of links from 'gpu0' to any of the nics: only bridges pass data on"},
        Mistake{"software_in_tiles", "[[device.efficiency]]",
                "tiles = { processors = 1, large_tile = 1, small_tile = 1, depth = 1, unaligned = 1, memory = 1, error "
                "= 0, "
                "issue = \"4us\" }\n[[device.efficiency]]",
                9, "'issue' is a figure of the software: write it in the machine's [software]"},
        Mistake{"unknown_software", "summary = \"two servers\"", "software = \"megatron-lm-2020\"", 2,
                "no software 'megatron-lm-2020' is known (did you mean 'megatron-lm-2021'?)"},
        Mistake{"extends_nothing", "summary = \"two servers\"", "extends = \"eoss\"", 2, "did you mean 'eos'?"},
        Mistake{"too_fast_messages", "fraction = 0.9", "fraction = 1.1", 34, "cannot reach more than the whole"},
        Mistake{"negative_fraction", "fraction = 0.5", "fraction = -0.5", 11, "fraction must be above zero"},
        Mistake{"efficiency_in_percent", "fraction = 0.5", "fraction = 60", 11,
                "fraction is 60: it is a share of the roofline, 0.6 for 60 %"},
        Mistake{"two_efficiencies", "[[node]]\n",
                "[[device.efficiency]]\nkind = \"conv2d\"\nfraction = 0.9\nerror = 0.1\n[[node]]\n", 14,
                "'conv2d' has two efficiencies of any pass in any type"},
        Mistake{"spread_in_percent", "peak.f32 =", "step_spread = 8\npeak.f32 =", 8, "relative standard deviation"},
        Mistake{"volumes_of_no_model", "peak.f32 =", "volumes = \"by-sample\"\npeak.f32 =", 8,
                "it is for devices with price_model or likeness"},
        Mistake{"volumes_by_halves", "peak.f32 =", "volumes = \"halves\"\npeak.f32 =", 8,
                "'halves' is neither by-sample nor cut"},
        Mistake{"percent_as_error", "error = 0.1", "error = 30", 12, "relative to the price"},
        Mistake{"infinite_error", "error = 0.1", "error = inf", 12, "'error' must be a number"},
        Mistake{"unknown_kind", "kind = \"conv2d\"", "kind = \"conv2\"", 10, "did you mean 'conv2d'?"},
        Mistake{"unknown_pass", "kind = \"conv2d\"", "kind = \"conv2d\"\npass = \"backwards\"", 11,
                "choose one of forward, backward_data"},
        Mistake{"pieces_out_of_order", "[[storage]]",
                "[[messaging.inside.piece]]\nup_to = \"2kB\"\noverhead = \"1us\"\nrate = \"1GBps\"\n"
                "[[messaging.inside.piece]]\nup_to = \"1kB\"\noverhead = \"1us\"\nrate = \"1GBps\"\n"
                "[[messaging.inside.piece]]\noverhead = \"1us\"\nrate = \"1GBps\"\n[[storage]]",
                42, "in the order of their sizes"},
        Mistake{"end_of_the_last_piece", "[[storage]]",
                "[[messaging.inside.piece]]\nup_to = \"2kB\"\noverhead = \"1us\"\nrate = \"1GBps\"\n"
                "[[messaging.inside.piece]]\nup_to = \"1kB\"\noverhead = \"1us\"\nrate = \"1GBps\"\n[[storage]]",
                42, "the last piece is of all larger messages: leave up_to out"},
        Mistake{"piece_of_no_time", "[[storage]]",
                "[[messaging.inside.piece]]\nup_to = \"1kB\"\noverhead = \"1us\"\nrate = \"1GBps\"\n"
                "[[messaging.inside.piece]]\noverhead = \"-2us\"\nrate = \"1GBps\"\n[[storage]]",
                42, "a message of the smallest size of this piece would take less than no time"},
        Mistake{"endless_piece_first", "[[storage]]",
                "[[messaging.inside.piece]]\noverhead = \"1us\"\nrate = \"1GBps\"\n"
                "[[messaging.inside.piece]]\noverhead = \"1us\"\nrate = \"1GBps\"\n[[storage]]",
                37, "'up_to' is missing"},
        Mistake{"bias_in_percent", "[[storage]]", "[in_situ]\nbias = 30\nnoise = 0\nsource = \"me\"\n[[storage]]", 38,
                "relative standard deviation"},
        Mistake{"cores_for_all", "[[storage]]",
                "[[shared_cores]]\ncores = 2\ndevices = [0, 3]\nsource = \"me\"\n[[storage]]", 38,
                "fewer cores than devices"},
        Mistake{"cores_of_nobody", "[[storage]]",
                "[[shared_cores]]\ncores = 1\ndevices = [0, 4]\nsource = \"me\"\n[[storage]]", 39,
                "different whole numbers in 0..3"},
        Mistake{"cores_twice", "[[storage]]",
                "[[shared_cores]]\ncores = 1\ndevices = [0, 3]\nsource = \"me\"\n"
                "[[shared_cores]]\ncores = 1\ndevices = [1, 0]\nsource = \"me\"\n[[storage]]",
                43, "device 0 shares other cores already"},
        Mistake{"storage_neither", "name = \"disk\"", "name = \"disk\"\nper_node = 1", 39, "must be true or false"},
        Mistake{"factor_of_all", "[[node]]\n",
                "[[device.factor]]\nkind = \"*\"\nfactor = 1.1\nerror = 0.1\nkernels = 20\n[[node]]\n", 14,
                "say nothing of another"},
        Mistake{"factor_below_zero", "[[node]]\n",
                "[[device.factor]]\nkind = \"matmul\"\nfactor = -1.0\nerror = 0.1\nkernels = 20\n[[node]]\n", 15,
                "above zero"},
        Mistake{"price_of_nothing", "[[node]]\n",
                "[[device.price]]\nproblem = \"conv:1\"\nmedian = \"1ms\"\nerror = 0\nsamples = 1\n[[node]]\n", 14,
                "conv"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(MachineFile, WithTwoLinksBetweenTwoVerticesIsRefusedWithItsLine) {
    std::string text(good);
    text.insert(text.find("[fabric]"), "[[node.link]]\nfrom = [\"switch\"]\nto = \"gpu1\"\nbandwidth = \"50GBps\"\n");
    EXPECT_THAT([&] { parse_machine(text, "mine.toml"); },
                testing::ThrowsMessage<InputError>(
                    testing::AllOf(HasSubstr("mine.toml:24: "), HasSubstr("a second link joins 'switch' and 'gpu1'"))));
}

TEST(GoodMachineFile, IsTakenAsItIsWritten) {
    const Machine machine = parse_machine(good, "mine.toml");
    EXPECT_EQ(machine.origin, "mine.toml");
    EXPECT_EQ(machine.classes[0].memory.value, Bytes{16e9});
    EXPECT_EQ(machine.classes[0].memory.source, "sheet");
    EXPECT_EQ(machine.classes[0].peak.at(DataType::f32).value, FlopRate{15e12});
    EXPECT_EQ(machine.classes[0].efficiencies[0].source, "sheet");
    EXPECT_EQ(device_count(machine), 4);
    EXPECT_EQ(machine.nodes[0].links.size(), 3u);
    EXPECT_EQ(machine.fabric.link.value, Bandwidth{12.5e9});
    EXPECT_EQ(machine.inside.fraction.value, 0.9);
    EXPECT_EQ(machine.across.fraction.value, 0.8);
    EXPECT_EQ(machine.storage[0].read.source, "me");
}

TEST(GoodMachineFile, OfOneNodeNeedsNoFabric) {
    std::string text(good);
    text.replace(text.find("count = 2\n"), 10, "count = 1\n");
    text.erase(text.find("[fabric]"), text.find("[messaging") - text.find("[fabric]"));
    EXPECT_TRUE(std::holds_alternative<Star>(parse_machine(text, "one.toml").fabric.topology));
}

// Each part of a key is a table within the one before, and taken apart by a call of its own: 60,000 overflow the stack.
TEST(MachineFile, WithKeysOfManyPartsIsRefusedWithItsLine) {
    std::string key = "a";
    for (int part = 1; part < 32; ++part) key += ".a";
    const auto refusal = [](const std::string& text) -> std::string {
        try {
            parse_machine(text, "deep.toml");
        } catch (const InputError& error) {
            return error.what();
        }
        return "";
    };
    EXPECT_THAT(refusal(std::string{good} + key + " = 1\n"), testing::Not(HasSubstr("parts"))) << "32 may be";
    EXPECT_THAT(refusal("x = 1\n" + key + ".a = 1\n"), HasSubstr("deep.toml:2: "));
    EXPECT_THAT(refusal("[" + key + ".'a b']\n"), HasSubstr("more than 32 parts"));
    EXPECT_THAT(refusal("x = [\"" + key + ".a\", 1.5" + std::string(40, ',') + "]\n"),
                testing::Not(HasSubstr("parts")));
    while (key.size() < 120'000) key += '.' + key;
    EXPECT_THAT(refusal(key + " = 1\n"), HasSubstr("deep.toml:1: not TOML that is read here"));
}

}  // namespace
}  // namespace rehearse::models
