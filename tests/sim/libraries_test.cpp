// SPDX-License-Identifier: Apache-2.0
// NCCL's channels, estimates and choice against figures worked out by hand from its stated rules, and the times against
// what no machine can do.
#include "sim/collective/libraries/library_times.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/collectives/library.hpp"
#include "core/error.hpp"
#include "fixture.hpp"
#include "models/models.hpp"
#include "sim/collective/price.hpp"
#include "tests/sim/times_of_library.hpp"

namespace rehearse::sim {
namespace {

constexpr double mebi = 1024.0 * 1024;

double bus(const LibraryTimes& times, double bytes) {
    const auto n = static_cast<double>(times.communicator().ranks());
    return bytes * 2 * (n - 1) / n / times.price(CollectiveKind::all_reduce, Bytes{bytes}).time.value / 1e9;
}

struct Found {
    std::string machine;
    std::int64_t nodes;
    int devices;
    std::int64_t count;
    double speed;
};

void PrintTo(const Found& found, std::ostream* out) {
    *out << found.machine << ", " << found.nodes << " nodes of " << found.devices;
}

class NcclChannels : public testing::TestWithParam<Found> {};

// As `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH` prints them: channels and the speed of each.
TEST_P(NcclChannels, AreAsManyAsItsSearchFinds) {
    const Found& found = GetParam();
    const LibraryTimes one = times(found.machine, found.nodes, found.devices);
    const Channels& channels = one.communicator().channels;
    EXPECT_EQ(channels.count, found.count) << found.machine;
    EXPECT_NEAR(channels.inside, found.speed, 1e-9) << found.machine;
}
INSTANTIATE_TEST_SUITE_P(Machines, NcclChannels,
                         testing::Values(Found{"dgx-a100", 1, 8, 12, 20}, Found{"eos", 1, 8, 12, 30},
                                         Found{"dgx-b200", 1, 8, 16, 45}, Found{"dgx1-v100", 1, 8, 6, 20},
                                         Found{"selene", 4, 8, 8, 24}, Found{"perlmutter", 4, 4, 4, 24},
                                         Found{"polaris", 8, 4, 2, 24}, Found{"eos", 8, 8, 8, 45},
                                         Found{"aws-p4d", 2, 8, 4, 12}, Found{"perlmutter", 4, 1, 1, 24}));

// Edge-disjoint Hamiltonian cycles of the first k of a DGX-1's GPUs, whose rates vTrain's tables show one by one: 22.6,
// 45.1, 85.4, (no ring), 45.7, 87.0 and 134.5 GB/s are 1, 2, 4, 0, 2, 4 and 6 times 22.4.
TEST(NcclRings, AreTheCyclesOfACubeMesh) {
    const std::int64_t expected[] = {1, 2, 4, 0, 2, 4, 6};
    const Machine machine = models::load_machine("dgx1-v100");
    for (int k = 2; k <= 8; ++k) {
        const NodeView view = view_of(machine, machine.collectives, machine.nodes[0], first(k));
        EXPECT_EQ(rings_inside(view, 20), expected[k - 2]) << k << " GPUs";
    }
}

// Ring by Simple on 8 A100: 8.4 + 14 steps of 3.4 us, and 12 x 20 GB/s of bus, 8/14 of it for the data.
TEST(NcclEstimates, AreItsTable) {
    Machine machine = models::load_machine("dgx-a100");
    machine.collectives.version = 0;  // the newest
    const LibraryTimes one{machine, machine.collectives, 0, 1, first(8)};
    const std::vector<Estimate> all = estimates(one.communicator(), CollectiveKind::all_reduce, 1024 * mebi);
    const Estimate ring = chosen(all, "ring", "simple");
    EXPECT_NEAR(ring.latency, 56, 1e-9);
    EXPECT_NEAR(ring.bandwidth, 240 * 8.0 / 14, 1e-9);
    const Estimate tree = chosen(estimates(one.communicator(), CollectiveKind::all_reduce, 1024), "tree", "ll");
    EXPECT_NEAR(tree.latency, 6.8 + 14 * 0.6, 1e-9);
    EXPECT_THROW(chosen(all, "nvls", ""), InputError) << "an A100's switches do not sum";
}

// Two nodes of four: a ring by Simple has 14 steps, two of them between nodes. Versions up to 2.22 count four: 8.4 us,
// 10 steps of three postings of 2 us and 4 of 14 us, times the plateau of 1.4. Those 22 us more make 2.18.3 take a tree
// for 4 MiB, as measured on Polaris (368 us; the ring's 8 MiB take 611).
TEST(NcclEstimates, UpTo2_22CountAStepBetweenNodesForEachNodeOfARing) {
    const Machine machine = models::load_machine("polaris");
    const auto of = [&](std::int64_t version) {
        CollectiveSoftware software = machine.collectives;
        software.version = version;
        return LibraryTimes{machine, software, 0, 2, first(4)};
    };
    const auto latency = [&](std::int64_t version) {
        const auto all = estimates(of(version).communicator(), CollectiveKind::all_reduce, 4 * mebi);
        return chosen(all, "ring", "simple").latency;
    };
    EXPECT_NEAR(latency(21803), (8.4 + 10 * 6 + 4 * 14) * 1.4, 1e-9);
    EXPECT_NEAR(latency(22300), (8.4 + 12 * 6 + 2 * 14) * 1.4, 1e-9);
    const LibraryPrice taken = of(21803).price(CollectiveKind::all_reduce, Bytes{4 * mebi});
    EXPECT_EQ(taken.algorithm, LibraryAlgorithm::tree);
    EXPECT_NEAR(taken.time.value * 1e6, 368, 0.1 * 368);
}

TEST(NcclChoice, TakesTreesForShortMessagesBetweenNodesAndRingsForLong) {
    const LibraryTimes sixteen = times("selene", 16, 8);
    EXPECT_EQ(sixteen.price(CollectiveKind::all_reduce, Bytes{8192}).algorithm, LibraryAlgorithm::tree);
    EXPECT_EQ(sixteen.price(CollectiveKind::all_reduce, Bytes{8e9}).algorithm, LibraryAlgorithm::ring);
    const LibraryTimes hopper = times("eos", 1, 8);
    EXPECT_EQ(hopper.price(CollectiveKind::all_reduce, Bytes{1e9}).algorithm, LibraryAlgorithm::nvls);
}

TEST(NcclTimes, GrowWithTheSizeByEachAlgorithmAndNeverBeatTheWires) {
    for (const auto& [name, nodes, devices] :
         {std::tuple{"perlmutter", 16, 4}, {"selene", 4, 8}, {"polaris", 2, 4}, {"eos", 8, 8}}) {
        const LibraryTimes one = times(name, nodes, devices);
        const NodeView& view = one.communicator().view;
        const double wires = static_cast<double>(view.rails) * view.nic_wire;
        for (const char* algorithm : {"ring", "tree"}) {
            Seconds last;
            for (double bytes = 1024; bytes < 8e9; bytes *= 2) {
                SCOPED_TRACE(std::string{name} + " " + algorithm + " " + std::to_string(bytes));
                const Seconds now = one.price(CollectiveKind::all_reduce, Bytes{bytes}, algorithm, "simple").time;
                EXPECT_GE(now, last * 0.999);
                last = now;
                // All but one part of the data leave a node, the sums come back; a tree of two nodes sends all once.
                const double least = nodes == 2 ? bytes : 2 * bytes * (1 - 1.0 / nodes);
                EXPECT_GE(now.value, least / (wires * 1e9)) << "faster than " << wires << " GB/s";
            }
        }
    }
}

// Wires and devices are as fast whichever version chooses among them.
TEST(NcclTimes, AreOfNoVersionWhereAlgorithmAndProtocolAreGiven) {
    const Machine machine = models::load_machine("perlmutter");
    const auto time = [&](std::int64_t version, const char* algorithm, const char* protocol) {
        CollectiveSoftware software = machine.collectives;
        software.version = version;
        const LibraryTimes four{machine, software, 0, 4, first(4)};
        return four.price(CollectiveKind::all_reduce, Bytes{4 * mebi}, algorithm, protocol).time;
    };
    for (const auto& [algorithm, protocol] : {std::pair{"ring", "simple"}, {"ring", "ll"}, {"tree", "simple"}}) {
        EXPECT_EQ(time(20400, algorithm, protocol), time(22300, algorithm, protocol)) << algorithm << protocol;
    }
}

// One node of 4 V100, 16 KiB by LL: one block (16 KiB are what its 512 threads ask for among 4 ranks), whose chunk of 4
// KiB passes each of 6 steps at 2.6 GB/s; 6.6 us to begin, 0.6 us a step, and 1.5 times the data at LL's 39 GB/s,
// times 1.11.
TEST(NcclTimes, OfShortMessagesByLlAreWhatOneBlockPassesOn) {
    const LibraryTimes one = times("abci", 1, 4);
    const double bytes = 16 * 1024;
    const double us = one.price(CollectiveKind::all_reduce, Bytes{bytes}, "ring", "ll").time.value * 1e6;
    EXPECT_NEAR(us, 6.6 + 6 * (0.6 + bytes / 4 / 2.6e3) + 1.5 * bytes / 39e3 / 1.11, 0.05);
    EXPECT_NEAR(us, 17.2, 0.2 * 17.2) << "measured (aistabci/abci2.0benchmark)";
}

// Polaris: 32 ranks, two rings of two blocks each through two cards. 1 MiB by LL is a message of 16 KiB a step, 62
// steps, each sent and received by a card for both blocks, 5 us each: 1,240 us, and 6.6 us to begin.
TEST(NcclTimes, OfRingsByLlBetweenNodesAreWhatTheirMessagesTakeToPost) {
    const LibraryTimes eight = times("polaris", 8, 4);
    const auto time = [&](CollectiveKind kind, double bytes) {
        return eight.price(kind, Bytes{bytes}, "ring", "ll").time;
    };
    EXPECT_NEAR(time(CollectiveKind::all_reduce, mebi).value * 1e6, 6.6 + 62 * 2 * 2 * 5, 0.5);
    EXPECT_NEAR(time(CollectiveKind::all_gather, mebi).value * 1e6, 6.6 + 31 * 2 * 2 * 5, 0.5);
    // Four times the data are two turns, each of chunks of 32 KiB.
    EXPECT_NEAR(time(CollectiveKind::all_reduce, 8 * mebi).value * 1e6, 6.6 + 2 * 62 * 2 * 2 * 5, 0.5);
}

// On two nodes an all-gather has 7 steps and NCCL 8 slots, so that all receives stand ready; an all-reduce has 14.
TEST(NcclTimes, OfCallsOfFewStepsFindTheirReceivesPosted) {
    const LibraryTimes two = times("polaris", 2, 4);
    const Bytes bytes{128 * 1024.0};
    const Seconds gather = two.price(CollectiveKind::all_gather, bytes, "ring", "ll").time;
    const Seconds reduce = two.price(CollectiveKind::all_reduce, bytes, "ring", "ll").time;
    EXPECT_LT(gather, Seconds{60e-6});
    EXPECT_GT(reduce, gather * 4.0);
}

// 192 bytes to each of four ranks on the other node, or more: the CPU stores the former, 14 us each.
TEST(NcclTimes, OfTinyMessagesToAllAreStoredByTheCpu) {
    const LibraryTimes two = times("polaris", 2, 4);
    const Seconds tiny = two.price(CollectiveKind::all_to_all, Bytes{8 * 192.0}).time;
    const Seconds small = two.price(CollectiveKind::all_to_all, Bytes{8 * 193.0}).time;
    EXPECT_NEAR((tiny - small).value * 1e6, 4 * 14, 0.1);
}

// 4 GiB on 4 x 4 devices: 3 GiB of each leave its node. Perlmutter has a card for each device, which carries what it
// does of a ring, 0.95 of 25 GB/s and 0.76 of that through the CPU. Of Polaris' four devices two are in a domain of
// memory with a card (ALCF's table of affinities), so that a quarter of the messages goes past the memory of both
// hosts; the others get 0.34 of the two cards. Of 15 peers a block serves 8 at once: 1 - e^-8 8^8 / 8! of the rate is
// left.
TEST(NcclTimes, OfAllToAllsAreLongerWhereDevicesAreFarFromACard) {
    const auto time = [](const char* machine) {
        return times(machine, 4, 4).price(CollectiveKind::all_to_all, Bytes{4096 * mebi}).time.value;
    };
    const double card = 25e9 * 0.95 * 0.76, met = 0.8604134680;
    EXPECT_NEAR(time("perlmutter"), 3072 * mebi / card / met, 100e-6)
        << "about 200 ms were measured (nccl-tests issue 139)";
    EXPECT_NEAR(time("polaris"), 4 * 3072 * mebi * (0.25 / (2 * card) + 0.75 / (2 * 25e9 * 0.34)) / met, 100e-6);
    // Two nodes of Polaris have 7 peers, all of which are served at once.
    const Seconds two = times("polaris", 2, 4).price(CollectiveKind::all_to_all, Bytes{1024 * mebi}).time;
    EXPECT_NEAR(two.value, 2048 * mebi * (0.25 / (2 * card) + 0.75 / (2 * 25e9 * 0.34)), 100e-6);
    EXPECT_NEAR(two.value, 107.5e-3, 0.1 * 107.5e-3) << "measured with the site's settings, 98.7 to 114.7 ms";
}

// src/graph/paths.cc: no GPUDirect from one socket to a card of another, but by PXN, over NVLink through a GPU whose
// card is behind the same PCIe switch.
TEST(NcclNode, SaysWhichDevicesReachACardPastTheHostsMemory) {
    const auto share = [](const char* name, int devices) {
        const Machine machine = models::load_machine(name);
        return view_of(machine, machine.collectives, machine.nodes[0], first(devices)).gpudirect;
    };
    EXPECT_EQ(share("polaris", 4), 0.5);
    EXPECT_EQ(share("polaris", 1), 0) << "GPU 0 has no card beside it";
    EXPECT_EQ(share("polaris", 2), 0.5);
    EXPECT_EQ(share("perlmutter", 4), 1) << "one socket";
    EXPECT_EQ(share("selene", 8), 1);
    EXPECT_EQ(share("aws-p4d", 8), 1);
    EXPECT_EQ(share("summit", 6), 1) << "a card on each socket";
}

// 8 H100, 16 channels: from 64 MiB to 1 GiB chunks of 64 KiB, 128 of them at once, so that two loops of 8 MiB come
// before the first sums. Twice the data are 2^28 bytes more at the switches' rate, which leaves the table's 25 us.
TEST(NcclTimes, OfSumsInSwitchesBeginWithTwoLoopsOfChunks) {
    const LibraryTimes eight = times("eos", 1, 8);
    const auto time = [&](double bytes) {
        return eight.price(CollectiveKind::all_reduce, Bytes{bytes}, "nvls", "").time.value;
    };
    const double rate = 256 * mebi / (time(512 * mebi) - time(256 * mebi));
    EXPECT_NEAR((time(512 * mebi) - (512 + 2 * 8) * mebi / rate) * 1e6, 25, 1e-3);
    EXPECT_NEAR((time(32 * mebi) - (32 + 2 * 4) * mebi / rate) * 1e6, 25, 1e-3) << "chunks of 32 KiB";
}

// p4d's EFA keeps the order of sends and receives only, so that LL's flags would come before its data.
TEST(NcclChoice, LeavesOutProtocolsWhoseOrderATransportDoesNotKeep) {
    const LibraryTimes two = times("aws-p4d", 2, 8), one = times("aws-p4d", 1, 8);
    EXPECT_EQ(two.price(CollectiveKind::all_reduce, Bytes{1024}).protocol, LibraryProtocol::simple);
    EXPECT_EQ(one.price(CollectiveKind::all_reduce, Bytes{1024}).protocol, LibraryProtocol::ll);
    EXPECT_THROW(two.price(CollectiveKind::all_reduce, Bytes{1024}, "", "ll"), InputError);
}

// Two p4d by Simple, whose block passes 32 KiB on when it has them, at half of the 24 GB/s of a channel: seven steps up
// a chain and one to the other node, and back. Two p4de were measured to take 60 us longer for 32 KiB than for 1 KiB.
TEST(NcclTimes, OfTreesBySimpleWaitForTheFirstChunk) {
    const LibraryTimes two = times("aws-p4d", 2, 8);
    const auto time = [&](double bytes) {
        return two.price(CollectiveKind::all_reduce, Bytes{bytes}, "tree", "simple").time.value * 1e6;
    };
    const double copied = 32.768 / 12;
    EXPECT_GT(time(32768) - time(8), 2 * 8 * copied);
    EXPECT_LT(time(32768) - time(8), 60 * 1.1) << "awsome-distributed-training, micro-benchmarks/nccl-tests";
}

// Eight nodes of four V100 and two EDR by LL: four blocks write 16 KiB each at 2.6 GB/s before their messages leave for
// three levels up and down, twice the bytes with flags, over 24 GB/s; by 16 KiB of data it is 4 KiB each, which are
// counted at every step. 88 us more were measured for 64 KiB than for 16 (aistabci/abci2.0benchmark).
TEST(NcclTimes, OfTreesByLlWaitForWholeMessagesBetweenNodes) {
    const LibraryTimes eight = times("abci", 8, 4);
    const auto time = [&](double bytes) {
        return eight.price(CollectiveKind::all_reduce, Bytes{bytes}, "tree", "ll").time.value * 1e6;
    };
    const double written = 6 * 3 * 4.096 / 2.6, sent = (6 - 1) * 3 * 4.096 * 2 * 4 / 24;
    EXPECT_GT(time(65536) - time(16384), written + sent);
    EXPECT_LT(time(65536) - time(16384), 88 * 1.1);
}

// What was wrong: one ring through one of four network cards.
// Switches that sum 5 GB/s of a card, four cards a node: 20 GB/s of data, whatever NCCL believes; a sum of 400 us is
// what short calls take.
TEST(NcclTimes, OfCollNetAreThoseOfTheFabricsSwitches) {
    Machine machine = models::load_machine("perlmutter");
    machine.collectives.sharp = true;
    machine.fabric.sums = {{Bandwidth{5e9}, "test"}, {Seconds{400e-6}, "test"}};
    const LibraryTimes sixteen{machine, machine.collectives, 0, 16, first(4)};
    const auto time = [&](double bytes) {
        return sixteen.price(CollectiveKind::all_reduce, Bytes{bytes}, "collnet").time.value;
    };
    EXPECT_NEAR(time(4e9) - time(2e9), 2e9 / 20e9, 1e-6);
    EXPECT_NEAR(time(1000), 400e-6 + 1000 / 20e9, 1e-9);
}

TEST(NcclTimes, UseAllNetworkCardsOfANode) {
    const LibraryTimes sixteen = times("perlmutter", 16, 4);
    EXPECT_GT(bus(sixteen, 1024 * mebi), 60) << "four cards of 25 GB/s";
    EXPECT_LT(bus(sixteen, 1024 * mebi), 80);
}

// What was wrong: four nodes with one GPU each were taken for one node with four.
TEST(NcclTimes, TellNodesWithOneDeviceFromOneNode) {
    const LibraryTimes apart = times("perlmutter", 4, 1), together = times("perlmutter", 1, 4);
    EXPECT_LT(bus(apart, 1024 * mebi), 25);
    EXPECT_GT(bus(together, 1024 * mebi), 180);
}

// What was wrong: steps of a ring through 512 GPUs, 5 ms, where a tree of 128 nodes has 14 steps between nodes.
TEST(NcclTimes, OfShortMessagesGrowWithTheLogarithmOfTheNodes) {
    const Seconds few = times("perlmutter", 4, 4).price(CollectiveKind::all_reduce, Bytes{1024}).time;
    const Seconds many = times("perlmutter", 128, 4).price(CollectiveKind::all_reduce, Bytes{1024}).time;
    EXPECT_LT(many, few * 4);
    EXPECT_LT(many, Seconds{300e-6});
}

constexpr std::string_view two_dies = R"(
schema = "rehearse.machine/1"
name = "dies"
summary = "nodes of one MI250X"
[[device]]
name = "mi250x"
like = "mi250x"
[[node]]
name = "node"
count = 4
devices = [{ class = "mi250x", name = "gpu", count = 2 }]
nics = [{ name = "nic" }]
bridges = [{ name = "card" }]
[[node.link]]
from = ["gpu0"]
to = "gpu1"
bandwidth = { value = "200GBps", source = "test" }
[[node.link]]
from = ["gpu0", "gpu1", "nic"]
to = "card"
bandwidth = { value = "50GBps", source = "test" }
[fabric]
link = { value = "25GBps", source = "test" }
latency = { value = "1us", source = "test" }
hop_latency = { value = "0.1us", source = "test" }
[fabric.fat-tree]
down = [4]
taper = [1]
[messaging.inside]
overhead = { value = "1us", source = "test" }
fraction = { value = 1.0, source = "test" }
reduce = { value = "100GBps", source = "test" }
error = 0.1
[messaging.across]
overhead = { value = "1us", source = "test" }
fraction = { value = 1.0, source = "test" }
reduce = { value = "100GBps", source = "test" }
error = 0.1
[collectives]
library = "rccl"
transport = "slingshot"
nics_at = "switch"
source = "test"
)";

// Two nodes of two dies and one card of 25 GB/s: one channel of 24. At 64 MiB (place 20 of its tables) the ring by
// Simple has 0.9 of that, 4/6 for the data, the tree 1.61 x 0.6 of it, half for the data; LL128 has a table on these
// chips.
TEST(RcclEstimates, AreTheTableOfItsChip) {
    const Machine machine = models::parse_machine(two_dies, "dies.toml");
    const LibraryTimes two{machine, machine.collectives, 0, 2, first(2)};
    const std::vector<Estimate> all = estimates(two.communicator(), CollectiveKind::all_reduce, 64 * mebi);
    const Estimate ring = chosen(all, "ring", "simple"), tree = chosen(all, "tree", "simple");
    EXPECT_NEAR(ring.bandwidth, 24 * 0.9 * 4 / 6, 1e-9);
    EXPECT_NEAR(ring.latency, 17 + 2 * 6 + 4 * 209.2, 1e-9);  // this version counts 2 N steps between nodes
    EXPECT_NEAR(tree.bandwidth, 24 * 1.61 * 0.6 / 2, 1e-9);
    EXPECT_NEAR(tree.latency, 17 + 2 * (2.5 + 47.6), 1e-9);
    EXPECT_NEAR(chosen(all, "ring", "ll128").bandwidth, 24 * 0.41 * 4 / 6, 1e-9);
    const Call call{.elements = 1 << 20, .algorithm = parse_algorithm("rccl")};
    EXPECT_GT(collective_time(call, Mesh{{{"data", 8}}}, machine, Mode::folded), Seconds{0});
    const Call other{.elements = 1 << 20, .algorithm = parse_algorithm("nccl")};
    EXPECT_THROW(collective_time(other, Mesh{{{"data", 8}}}, machine, Mode::folded), InputError);
}

// A long ring of four ranks moves 6/4 of its data through one card of 25 GB/s, of which 0.475 are reached; 17 us to
// begin and 0.3 of its steps, four of 6 us and two of 14, are not hidden.
TEST(MachineFigures, StandInForTheLibrarys) {
    const std::string own = std::string{two_dies} + "[collectives.figures]\nshare = 0.475\nsource = \"measured\"\n";
    const Machine half = models::parse_machine(own, "dies.toml"), whole = models::parse_machine(two_dies, "dies.toml");
    const auto time = [](const Machine& machine) {
        const LibraryTimes two{machine, machine.collectives, 0, 2, first(2)};
        return two.price(CollectiveKind::all_reduce, Bytes{8e9}, "ring", "simple").time;
    };
    EXPECT_NEAR(time(half).value, 8e9 * 6 / 4 / (0.475 * 25e9) + (17 + 0.3 * (4 * 6 + 2 * 14)) * 1e-6, 1e-6);
    EXPECT_LT(time(whole), time(half) * 0.6);
    const std::string written = models::to_toml(half);
    EXPECT_NE(written.find("[collectives.figures]\nshare = 0.475\n"), std::string::npos) << written;
    EXPECT_EQ(models::to_toml(whole).find("figures"), std::string::npos);
    for (const char* figure : {"share = 2", "step = -1", "shares = 0.5"}) {
        const std::string wrong = std::string{two_dies} + "[collectives.figures]\n" + figure + "\nsource = \"t\"\n";
        EXPECT_THROW(models::parse_machine(wrong, "dies.toml"), InputError) << figure;
    }
}

TEST(NcclWords, AreReadAndWritten) {
    EXPECT_EQ(to_string(parse_algorithm("rccl(ring,ll128)")), "rccl(ring,ll128)");
    EXPECT_EQ(to_string(parse_algorithm("nccl")), "nccl");
    EXPECT_EQ(to_string(parse_algorithm("nccl(tree,any)")), "nccl(tree,any)");
    EXPECT_EQ(parse_algorithm("nccl(tree,any)").across, "");
    EXPECT_THROW(parse_algorithm("nccl(trees,any)"), InputError);
    EXPECT_THROW(parse_algorithm("nccl(tree"), InputError);
    EXPECT_THROW(times("cori-knl", 1, 1), InputError) << "not a GPU";
}

}  // namespace
}  // namespace rehearse::sim
