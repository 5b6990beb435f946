// SPDX-License-Identifier: Apache-2.0
// There and back: a table goes in, and the machine that it was fitted to predicts its times.
#include "calibrate/message_fit.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/error.hpp"
#include "models/models.hpp"
#include "schedule/mesh.hpp"
#include "sim/collective/price.hpp"

namespace rehearse::calibrate {
namespace {

using namespace literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double few_percent = 0.03;

Machine machine_of(std::string_view node, std::int64_t nodes, std::string_view reduce, std::string_view fabric) {
    return models::parse_machine(fmt::format(R"(
name = "m"
summary = "m"
[[device]]
name = "card"
source = "made up"
memory = "80GB"
memory_bandwidth = "2000GBps"
launch = "4us"
[device.peak]
f32 = "19TFLOPS"
[[node]]
name = "node"
count = {0}
source = "made up"
{1}
[fabric]
source = "made up"
link = "25GBps"
latency = "{3}"
hop_latency = "100ns"
[fabric.star]
[messaging.inside]
source = "made up"
overhead = "2us"
fraction = 0.8
reduce = "{2}"
error = 0.3
[messaging.across]
source = "made up"
overhead = "5us"
fraction = 0.9
reduce = "{2}"
error = 0.3
)",
                                             nodes, node, reduce, fabric),
                                 "m.toml");
}

// Every two of four cards joined by 100 GB/s, and a network card for each.
constexpr std::string_view mesh_of_four = R"(
devices = [{ class = "card", name = "gpu", count = 4 }]
nics = [{ name = "nic", count = 4 }]
bridges = [{ name = "cpu", kind = "processor" }]
[[node.link]]
all_pairs = ["gpu0", "gpu1", "gpu2", "gpu3"]
bandwidth = "100GBps"
[[node.link]]
from = ["gpu0", "gpu1", "gpu2", "gpu3", "nic0", "nic1", "nic2", "nic3"]
to = "cpu"
bandwidth = "63GBps"
)";
constexpr std::string_view one_card = R"(
devices = [{ class = "card", name = "gpu", count = 1 }]
nics = [{ name = "nic" }]
bridges = [{ name = "cpu", kind = "processor" }]
[[node.link]]
from = ["gpu0", "nic"]
to = "cpu"
bandwidth = "63GBps"
)";

// Four cards on a switch that sums, 450 GB/s each.
constexpr std::string_view summing_switch = R"(
devices = [{ class = "card", name = "gpu", count = 4 }]
nics = [{ name = "nic", count = 4 }]
bridges = [{ name = "cpu", kind = "processor" }, { name = "switch", kind = "nvlink" }]
[[node.link]]
from = ["gpu0", "gpu1", "gpu2", "gpu3"]
to = "switch"
bandwidth = "450GBps"
[[node.link]]
from = ["gpu0", "gpu1", "gpu2", "gpu3", "nic0", "nic1", "nic2", "nic3"]
to = "cpu"
bandwidth = "63GBps"
[node.switch_sums]
rate = "315GBps"
latency = "25us"
)";

// As plans sum by default, of full nodes; a message as the round of an all-gather of two ranks.
Seconds simulated(const Machine& machine, const CollectiveRow& row) {
    const bool message = row.kind == "message", sums = row.kind == "all_reduce";
    const Mesh mesh{{{"data", message ? 2 : row.ranks}}};
    sim::Call call;
    call.kind = sums ? CollectiveKind::all_reduce : CollectiveKind::all_gather;
    call.elements = static_cast<std::int64_t>(row.bytes.value / 4) * (message ? 2 : 1);
    if (sums)
        call.algorithm =
            schedule::settled(schedule::choose_all_reduce({}, machine, mesh, 0), machine, mesh, 0, Bytes{1e18});
    return sim::collective_time(call, mesh, machine);
}

/// What takes `start` + bytes x factor / rate, as a table of nccl-tests.
FileSamples table(std::int64_t ranks, std::int64_t hosts, double start, double factor, double rate,
                  double largest = 268435456) {
    FileSamples samples;
    samples.where = "table.txt";
    for (double bytes = 64; bytes <= largest; bytes *= 4) {
        const CollectiveRow row{"all_reduce", ranks, Bytes{bytes}, Seconds{start + bytes * factor / rate},
                                false,        hosts};
        const auto n = static_cast<double>(ranks);
        samples.collectives.push_back(row);
        samples.messages.push_back({row.bytes * (1 / n), row.time * (1 / (2 * (n - 1)))});
    }
    return samples;
}

void expect_times(const Machine& machine, const FileSamples& samples, Between between) {
    for (const CollectiveRow& each : samples.collectives) {
        const CollectiveRow row = placed(each, between, machine, "table.txt");
        SCOPED_TRACE(to_string(row.bytes));
        EXPECT_NEAR(simulated(machine, row) / row.time, 1, few_percent);
    }
}

void expect_met(const Machine& machine, const FileSamples& samples, Between between) {
    expect_times(machine, samples, between);
    const double error = between == Between::nodes ? machine.across.error : machine.inside.error;
    EXPECT_GE(error, 0.02) << "one table does not say how far the next one is off";
    EXPECT_LE(error, 0.05);
}

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

FileSamples between_sizes(const FileSamples& all, Bytes least, Bytes most) {
    FileSamples some;
    some.where = all.where;
    for (std::size_t i = 0; i < all.collectives.size(); ++i) {
        if (all.collectives[i].bytes < least || all.collectives[i].bytes > most) continue;
        some.collectives.push_back(all.collectives[i]);
        some.messages.push_back(all.messages[i]);
    }
    return some;
}

// Of 200 MB and more 15 us are less than their scatter, here 2 % up and down.
TEST(MessageFit, KeepsTheOverheadThatLargeMessagesDoNotTell) {
    const Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    FileSamples large = between_sizes(table(4, 1, 15e-6, 1.5, 226e9, 2e10), 200_MB, 20_GB);
    for (std::size_t i = 0; i < large.collectives.size(); ++i)
        large.collectives[i].time = large.collectives[i].time * (i % 2 == 0 ? 0.98 : 1.02);
    const Machine fitted = with_messages(machine, large, Between::devices, simulated);
    EXPECT_EQ(fitted.inside.overhead.value, machine.inside.overhead.value);
    EXPECT_EQ(fitted.inside.overhead.source, machine.inside.overhead.source);
    EXPECT_EQ(fitted.inside.pieces.front().overhead, machine.inside.overhead.value);
    for (const CollectiveRow& row : large.collectives)
        EXPECT_NEAR(simulated(fitted, row) / row.time, 1, 2 * few_percent);
    EXPECT_THAT(kept(machine, fitted, Between::devices),
                HasSubstr("the overhead of messages between devices stays 2 us"));
    const FileSamples all = table(4, 1, 15e-6, 1.5, 226e9);
    EXPECT_EQ(kept(machine, with_messages(machine, all, Between::devices, simulated), Between::devices), "");
}

TEST(MessageFit, KeepsTheRateThatSmallMessagesDoNotTell) {
    const Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    const FileSamples small = between_sizes(table(4, 1, 33e-6, 1.5, 226e9), 1_B, Bytes{5000});
    const Machine fitted = with_messages(machine, small, Between::devices, simulated);
    EXPECT_EQ(fitted.inside.fraction.value, machine.inside.fraction.value);
    EXPECT_EQ(fitted.inside.fraction.source, machine.inside.fraction.source);
    expect_times(fitted, small, Between::devices);
    EXPECT_EQ(fitted.inside.error, machine.inside.error) << "of the rate, which was not measured";
    EXPECT_EQ(fitted.inside.reduce.value, machine.inside.reduce.value) << "nor were sums";
    EXPECT_THAT(kept(machine, fitted, Between::devices),
                HasSubstr("the rate of messages between devices stays the links'"));
}

// A rate that a table of all sizes told stays, where another one of small messages follows, and so do pieces of larger
// messages.
TEST(MessageFit, KeepsThePiecesThatSmallMessagesDoNotTell) {
    const Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    const Machine first = with_messages(machine, table(4, 1, 15e-6, 1.5, 40e9), Between::devices, simulated);
    ASSERT_EQ(first.inside.pieces.size(), 1U);
    const FileSamples small = between_sizes(table(4, 1, 33e-6, 1.5, 40e9), 1_B, Bytes{5000});
    const Machine again = with_messages(first, small, Between::devices, simulated);
    expect_times(again, small, Between::devices);
    ASSERT_EQ(again.inside.pieces.size(), 1U);
    EXPECT_EQ(again.inside.pieces.front().rate, first.inside.pieces.front().rate);
    EXPECT_EQ(again.inside.pieces.front().source, first.inside.pieces.front().source);
    EXPECT_EQ(again.inside.pieces.front().overhead, again.inside.overhead.value);
    EXPECT_THAT(kept(first, again, Between::devices),
                HasSubstr("stays " + to_string(first.inside.pieces.front().rate)));

    Machine protocols = machine;
    protocols.inside.pieces = {{64_kB, 2_us, 10_GBps, "eager"}, {{}, 9_us, 90_GBps, "rendezvous"}};
    const Machine kept_large = with_messages(protocols, small, Between::devices, simulated);
    expect_times(kept_large, small, Between::devices);
    ASSERT_EQ(kept_large.inside.pieces.size(), 2U);
    EXPECT_EQ(kept_large.inside.pieces.back().overhead, 9_us);
    EXPECT_EQ(kept_large.inside.pieces.back().rate, 90_GBps);
}

// And pieces of smaller ones, where large ones do not tell how messages start.
TEST(MessageFit, KeepsThePiecesThatLargeMessagesDoNotTell) {
    Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    machine.inside.pieces = {{64_kB, 2_us, 10_GBps, "eager"}, {{}, 9_us, 90_GBps, "rendezvous"}};
    const FileSamples large = between_sizes(table(4, 1, 0, 1.5, 226e9, 2e10), 200_MB, 20_GB);
    const Machine fitted = with_messages(machine, large, Between::devices, simulated);
    expect_times(fitted, large, Between::devices);
    ASSERT_EQ(fitted.inside.pieces.size(), 2U);
    EXPECT_EQ(fitted.inside.pieces.front().source, "eager");
    EXPECT_EQ(fitted.inside.pieces.back().overhead, 9_us);
    EXPECT_EQ(fitted.inside.error, machine.inside.error);
}

// 64 messages in flight hide where each starts: with a test of single ones both are met, alone the overhead stays.
TEST(MessageFit, TakesNoOverheadFromMessagesInFlight) {
    const Machine machine = machine_of(one_card, 4, "1000GBps", "1us");
    FileSamples alone, streamed;
    alone.where = streamed.where = "osu.txt";
    const auto add = [](FileSamples& to, double bytes, double time, bool many) {
        to.messages.push_back({Bytes{bytes}, Seconds{time}});
        to.collectives.push_back({"message", 2, Bytes{bytes}, Seconds{time}, false, 0, many});
    };
    for (double bytes = 8; bytes < 5e6; bytes *= 4) add(alone, bytes, 3e-6 + bytes / 20e9, false);
    for (double bytes = 131072; bytes < 5e6; bytes *= 2) add(streamed, bytes, bytes / 20e9, true);
    const Machine rate_only = with_messages(machine, streamed, Between::nodes, simulated);
    EXPECT_EQ(rate_only.across.overhead.value, machine.across.overhead.value);
    EXPECT_EQ(rate_only.across.overhead.source, machine.across.overhead.source);
    EXPECT_NEAR(rate_only.across.pieces.back().rate.value, 20e9, 0.3e9);
    FileSamples both = alone;
    both.messages.insert(both.messages.end(), streamed.messages.begin(), streamed.messages.end());
    both.collectives.insert(both.collectives.end(), streamed.collectives.begin(), streamed.collectives.end());
    for (const FileSamples& samples : {streamed, both}) {
        const Machine fitted = with_messages(machine, samples, Between::nodes, simulated);
        for (const CollectiveRow& each : samples.collectives) {
            const CollectiveRow row = placed(each, Between::nodes, machine, "osu.txt");
            EXPECT_NEAR(shown_by(fitted, row, simulated) / row.time, 1, few_percent) << to_string(row.bytes);
        }
    }
}

// 1 GB tells its rate by the overhead that the machine says, 1 kB the overhead by its rate.
TEST(MessageFit, OneSizeTellsOneFigure) {
    const Machine machine = machine_of(mesh_of_four, 16, "1000GBps", "1us");
    const FileSamples all = table(4, 1, 33e-6, 1.5, 80e9);
    const FileSamples large = between_sizes(all, 200_MB, 1_GB), small = between_sizes(all, 500_B, 2_kB);
    ASSERT_EQ(large.collectives.size(), 1U);
    ASSERT_EQ(small.collectives.size(), 1U);
    const Machine rate = with_messages(machine, large, Between::devices, simulated);
    expect_times(rate, large, Between::devices);
    EXPECT_EQ(rate.inside.overhead.value, machine.inside.overhead.value);
    EXPECT_THAT(kept(machine, rate, Between::devices), HasSubstr("the overhead of messages between devices stays"));
    const Machine overhead = with_messages(machine, small, Between::devices, simulated);
    expect_times(overhead, small, Between::devices);
    EXPECT_EQ(overhead.inside.fraction.value, machine.inside.fraction.value);
    const FileSamples hasty = between_sizes(table(4, 1, 1e-6, 1.5, 200e9), 60_kB, 70_kB);
    ASSERT_EQ(hasty.collectives.size(), 1U);
    EXPECT_THAT([&] { with_messages(machine, hasty, Between::devices, simulated); },
                ThrowsMessage<InputError>(HasSubstr("table.txt: all_reduce of 65.54 kB among 4 ranks on 1 node: of "
                                                    "messages between devices one size was measured")));
    const Machine summing = machine_of(summing_switch, 4, "1000GBps", "1us");
    const Machine sums = with_messages(summing, between_sizes(table(4, 1, 33e-6, 1.25, 240e9), 200_MB, 1_GB),
                                       Between::devices, simulated);
    EXPECT_EQ(sums.nodes.front().sums.latency.value, 25_us);
    EXPECT_NEAR(sums.nodes.front().sums.rate.value.value, 240e9, 5e9);
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

TEST(MessageFit, KeepsWhatSumsOfSwitchesDoNotTell) {
    const Machine machine = machine_of(summing_switch, 4, "1000GBps", "1us");
    const FileSamples all = table(4, 1, 33e-6, 1.25, 240e9);
    const FileSamples most = between_sizes(table(4, 1, 33e-6, 1.25, 240e9, 2e10), 200_MB, 20_GB);
    const Machine large = with_messages(machine, most, Between::devices, simulated);
    EXPECT_EQ(large.nodes.front().sums.latency.value, 25_us);
    EXPECT_NEAR(large.nodes.front().sums.rate.value.value, 240e9, 10e9);
    EXPECT_THAT(kept(machine, large, Between::devices), HasSubstr("the latency of switches' sums"));
    const Machine small = with_messages(machine, between_sizes(all, 1_B, Bytes{70000}), Between::devices, simulated);
    EXPECT_EQ(small.nodes.front().sums.rate.value, 315_GBps);
    EXPECT_NEAR(small.nodes.front().sums.latency.value.value, 33e-6, 2e-6);
    EXPECT_THAT(kept(machine, small, Between::devices), HasSubstr("the rate of switches' sums"));
}

}  // namespace
}  // namespace rehearse::calibrate
