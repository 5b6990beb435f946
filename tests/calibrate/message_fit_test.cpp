// SPDX-License-Identifier: Apache-2.0
// There and back: a table goes in, and the machine that it was fitted to predicts its times.
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "tests/calibrate/message_tables.hpp"

namespace rehearse::calibrate {
namespace {

using namespace literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

// All-reduces by NVLS: 240 GB/s of the switches' 315, from 33 us on; all-gathers of the same table are messages.
TEST(MessageFit, FitsSwitchesThatSum) {
    const Machine machine = machine_of(summing_switch, 4, "1000GBps", "1us");
    FileSamples samples = table(4, 1, 33e-6, 1.25, 240e9);
    const Machine fitted = with_messages(machine, samples, Between::devices, simulated);
    expect_times(fitted, samples, Between::devices);
    EXPECT_EQ(fitted.inside.error, machine.inside.error) << "of messages, which were not measured";
    EXPECT_NEAR(fitted.nodes.front().sums.rate.value.value, 240e9, 5e9);
    EXPECT_NEAR(fitted.nodes.front().sums.latency.value.value, 33e-6, 2e-6);
    EXPECT_THAT(fitted.nodes.front().sums.rate.source, HasSubstr("measured, table.txt, 12 samples"));
    EXPECT_EQ(fitted.inside.fraction.value, machine.inside.fraction.value);
    EXPECT_EQ(fitted.inside.reduce.value, machine.inside.reduce.value);

    FileSamples gathers = table(4, 1, 12e-6, 0.75, 330e9);
    for (CollectiveRow& row : gathers.collectives) row.kind = "all_gather";
    samples.collectives.insert(samples.collectives.end(), gathers.collectives.begin(), gathers.collectives.end());
    samples.messages.insert(samples.messages.end(), gathers.messages.begin(), gathers.messages.end());
    expect_met(with_messages(machine, samples, Between::devices, simulated), samples, Between::devices);

    EXPECT_THAT([&] { with_messages(machine, table(4, 1, 33e-6, 1.25, 600e9), Between::devices, simulated); },
                ThrowsMessage<InputError>(HasSubstr("its links carry 450 GB/s on machine 'm'")));
}

// 226 GB/s of busbw go by six rings over three links a card: more than one link has, and less than four have.
TEST(MessageFit, UndoesTheRingsOfAMesh) {
    const Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    for (const double busbw : {226e9, 80e9, 285e9}) {
        SCOPED_TRACE(busbw);
        const FileSamples samples = table(4, 1, 15e-6, 1.5, busbw);
        expect_met(with_messages(machine, samples, Between::devices, simulated), samples, Between::devices);
    }
}

// 2 us + bytes / 20 GB/s with the fabric's 1 us in them.
TEST(MessageFit, CountsTheFabricsLatencyOnce) {
    FileSamples samples;
    samples.where = "osu.txt";
    for (const double bytes : {8.0, 64.0, 1024.0, 65536.0, 1048576.0, 4194304.0}) {
        samples.messages.push_back({Bytes{bytes}, Seconds{2e-6 + bytes / 20e9}});
        samples.collectives.push_back({"message", 2, Bytes{bytes}, samples.messages.back().one_way});
    }
    for (const char* latency : {"1us", "0us"}) {
        SCOPED_TRACE(latency);
        const Machine machine = machine_of(one_card, 4, "1000GBps", latency);
        expect_met(with_messages(machine, samples, Between::nodes, simulated), samples, Between::nodes);
    }
}

// The time of an all-reduce has its sums in it, however slow the machine said they were.
TEST(MessageFit, CountsSumsOnce) {
    for (const char* reduce : {"100GBps", "400GBps", "1000GBps"}) {
        SCOPED_TRACE(reduce);
        const Machine machine = machine_of(one_card, 4, reduce, "1us");
        const FileSamples samples = table(4, 4, 30e-6, 1.5, 20e9);
        expect_met(with_messages(machine, samples, Between::nodes, simulated), samples, Between::nodes);
    }
}

// 59.4 GB/s of busbw on four network cards of 25 GB/s a node. What goes on inside nodes is measured first: without it
// small ones would take longer by the file's 2 us a message than they do, which is told.
TEST(MessageFit, SharesNetworkCardsAsThePredictionDoes) {
    const Machine machine = machine_of(mesh_of_four, 4, "1000GBps", "1us");
    const FileSamples inside = table(4, 1, 6e-6, 1.5, 226e9), across = table(16, 4, 40e-6, 1.875, 59.4e9);
    const Machine first = with_messages(machine, inside, Between::devices, simulated);
    const Machine both = with_messages(first, across, Between::nodes, simulated);
    expect_met(both, inside, Between::devices);
    expect_met(both, across, Between::nodes);
    EXPECT_EQ(both.fabric.link.value, 25_GBps);

    const FileSamples short_ones = table(16, 4, 8e-6, 1.875, 59.4e9);
    const Machine alone = with_messages(machine, short_ones, Between::nodes, simulated);
    std::vector<RoundTrip> trips;
    for (const CollectiveRow& row : short_ones.collectives) trips.push_back({row, simulated(alone, row)});
    EXPECT_NEAR(trips.back().error(), 0, few_percent);
    EXPECT_THAT(not_met(trips), HasSubstr("calibrate messages between devices first"));
    EXPECT_EQ(not_met({trips.back()}), "");
}

TEST(MessageFit, RefusesWhatTheMachineContradicts) {
    const auto refused = [](const Machine& machine, const FileSamples& samples, Between between, const char* why) {
        EXPECT_THAT([&] { with_messages(machine, samples, between, simulated); },
                    ThrowsMessage<InputError>(HasSubstr(why)));
    };
    const Machine mesh = machine_of(mesh_of_four, 4, "1000GBps", "1us");
    const Machine single = machine_of(one_card, 4, "1000GBps", "1us");
    refused(mesh, table(4, 1, 15e-6, 1.5, 400e9), Between::devices,
            "table.txt: all_reduce of 268.4 MB among 4 ranks on 1 node");
    refused(mesh, table(4, 1, 15e-6, 1.5, 400e9), Between::devices, "carry 300 GB/s at most");
    refused(single, table(4, 4, 15e-6, 1.5, 30e9), Between::nodes, "carry 25 GB/s at most");
    refused(mesh, table(32, 8, 15e-6, 1.5, 20e9), Between::nodes, "machine 'm' has 4 nodes");
    refused(mesh, table(8, 1, 15e-6, 1.5, 20e9), Between::devices, "a node of machine 'm' has 4 devices");
    refused(mesh, table(4, 1, 15e-6, 1.5, 20e9), Between::nodes, "no message between nodes is in its time");
    FileSamples flat = table(4, 1, 15e-6, 0, 1);
    refused(mesh, flat, Between::devices, "does not grow with their size");
}

TEST(MessageFit, AsksBetweenWhatMessagesWereOnlyWhereTheFileDoesNotTell) {
    const Machine several = machine_of(one_card, 4, "1000GBps", "1us"),
                  one = machine_of(one_card, 1, "1000GBps", "1us");
    const auto between = [&](std::int64_t hosts, std::optional<Between> asked, const Machine& machine) {
        return between_of({"all_reduce", 4, 1_MB, 1_ms, false, hosts}, asked, machine, "t.txt");
    };
    EXPECT_EQ(between(1, {}, several), Between::devices);
    EXPECT_EQ(between(2, {}, several), Between::nodes);
    EXPECT_EQ(between(0, Between::nodes, several), Between::nodes);
    EXPECT_EQ(between(0, {}, one), Between::devices);
    EXPECT_THAT([&] { between(0, {}, several); },
                ThrowsMessage<InputError>(HasSubstr("t.txt: it does not say whether the ranks share a node: give")));
    EXPECT_THAT([&] { between(1, Between::nodes, several); },
                ThrowsMessage<InputError>(HasSubstr("on 1 host, so messages are between devices")));
}

TEST(MessageFit, AsksForTheNodesWhereSeveralNumbersWouldDo) {
    const Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    const auto hosts = [&](std::int64_t ranks, const Machine& on) {
        return placed({"all_reduce", ranks, 1_MB, 1_ms}, Between::nodes, on, "osu.txt").hosts;
    };
    EXPECT_THAT([&] { hosts(16, machine); }, ThrowsMessage<InputError>(HasSubstr(
                                                 "osu.txt: 16 ranks may be on 4 or 8 or 16 nodes of machine 'm', and "
                                                 "the file does not tell: give --nodes N")));
    EXPECT_EQ(hosts(2, machine), 2);
    EXPECT_EQ(hosts(64, machine), 16);
    EXPECT_EQ(hosts(16, machine_of(mesh_of_four, 4, "1000GBps", "1us")), 4);
    EXPECT_EQ(hosts(4, machine_of(one_card, 4, "1000GBps", "1us")), 4);
}

TEST(MessageFit, NamesSwitchesThatMaySum) {
    std::string node{summing_switch};
    node.erase(node.find("[node.switch_sums]"));
    const Machine machine = machine_of(node, 4, "1000GBps", "1us");
    FileSamples samples = table(4, 1, 33e-6, 1.5, 480e9);
    for (CollectiveRow& row : samples.collectives) row.algorithm = "ring";
    EXPECT_THAT([&] { with_messages(machine, samples, Between::devices, simulated); },
                ThrowsMessage<InputError>(testing::AllOf(
                    HasSubstr("among 4 ranks on 1 node by ring: large ones go at"),
                    HasSubstr("give the switches that sum ([node.switch_sums]), as that is more than the 450 GB/s"))));
}

}  // namespace
}  // namespace rehearse::calibrate
